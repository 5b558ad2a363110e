//! "The first time in this loop?"

use std::collections::{HashSet, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::ToolContext;

/// How many loops a memo remembers. One that is used longer ago counts as new, which costs a repetition.
const LOOPS_MAX: usize = 256;

/// How many keys a memo remembers of one loop.
const KEYS_MAX: usize = 1_024;

/// Remembers what happened in a loop, by the loop's id in the context.
///
/// Outside a loop everything is the first time: nothing is ever locked away by mistake.
///
/// ```
/// use toolwit_core::{LOOP_ID, LoopMemory, ToolContext};
///
/// let memo = LoopMemory::new();
/// let context = ToolContext::new().with(LOOP_ID, "a");
/// assert!(memo.first_time(&context, "rules"));
/// assert!(!memo.first_time(&context, "rules"));
/// assert!(memo.first_time(&ToolContext::new().with(LOOP_ID, "b"), "rules"));
/// ```
#[derive(Debug, Default)]
pub struct LoopMemory {
    /// The loops, the one used longest ago first.
    loops: Mutex<VecDeque<(String, HashSet<String>)>>,
}

impl LoopMemory {
    /// Makes a memo that remembers nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Tells whether this is the first time in the context's loop, and remembers it.
    pub fn first_time(&self, context: &ToolContext, key: &str) -> bool {
        let first = !self.is_known(context, key);
        self.remember(context, key);
        first
    }

    /// Tells whether the key was remembered in the context's loop.
    #[must_use]
    pub fn is_known(&self, context: &ToolContext, key: &str) -> bool {
        let Some(id) = context.loop_id() else { return false };
        let loops = self.lock();
        let keys = loops.iter().find(|(known, _)| known == id);
        keys.is_some_and(|(_, keys)| keys.contains(key))
    }

    /// Remembers the key in the context's loop.
    pub fn remember(&self, context: &ToolContext, key: &str) {
        let Some(id) = context.loop_id() else { return };
        let mut loops = self.lock();
        let at = loops.iter().position(|(known, _)| known == id);
        let known = at.and_then(|at| loops.remove(at));
        let mut entry = known.unwrap_or_else(|| (id.to_owned(), HashSet::new()));
        if entry.1.len() < KEYS_MAX {
            entry.1.insert(key.to_owned());
        }
        loops.push_back(entry);
        if loops.len() > LOOPS_MAX {
            loops.pop_front();
        }
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<(String, HashSet<String>)>> {
        self.loops.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use serde_json::json;

    use super::*;
    use crate::{Arguments, LOOP_ID, NativeTool, Tool, ToolExt, ToolResult};

    fn in_loop(id: &str) -> ToolContext {
        ToolContext::new().with(LOOP_ID, id)
    }

    fn skill(broken: Arc<AtomicBool>) -> impl Tool {
        let made = NativeTool::new("skill", "", json!({"type": "object"}), move |_, _| {
            let broken = broken.load(Ordering::Relaxed);
            async move {
                Ok(match broken {
                    true => ToolResult::error("no such file"),
                    false => ToolResult::text("the body"),
                })
            }
        });
        made.unwrap().one_shot_per_loop("Write your script now.")
    }

    async fn call(tool: &impl Tool, context: &ToolContext) -> String {
        tool.call(Arguments::new(), context).await.unwrap().for_llm
    }

    // accept: 82
    #[tokio::test]
    async fn the_second_call_in_a_loop_is_told_that_the_body_is_there() {
        let skill = skill(Arc::default());
        assert_eq!(call(&skill, &in_loop("a")).await, "the body");
        let again = call(&skill, &in_loop("a")).await;
        assert!(again.starts_with("ALREADY LOADED. The body of 'skill'"), "{again}");
        assert!(again.ends_with("Write your script now."), "{again}");
        assert_eq!(
            call(&skill, &in_loop("b")).await,
            "the body",
            "another loop begins anew"
        );
        assert_eq!(call(&skill, &ToolContext::new()).await, "the body");
        assert_eq!(call(&skill, &ToolContext::new()).await, "the body", "no loop, no lock");
    }

    // accept: 147
    #[tokio::test]
    async fn a_first_call_that_failed_does_not_count() {
        let broken = Arc::new(AtomicBool::new(true));
        let skill = skill(broken.clone());
        assert_eq!(call(&skill, &in_loop("a")).await, "no such file");
        broken.store(false, Ordering::Relaxed);
        assert_eq!(call(&skill, &in_loop("a")).await, "the body");
    }

    // accept: 83
    #[test]
    fn a_memo_knows_each_key_of_each_loop_and_forgets_the_oldest_loop() {
        let memo = LoopMemory::new();
        assert!(memo.first_time(&in_loop("a"), "x") && memo.first_time(&in_loop("a"), "y"));
        assert!(!memo.first_time(&in_loop("a"), "x"));
        assert!(memo.first_time(&ToolContext::new(), "x") && memo.first_time(&ToolContext::new(), "x"));
        for other in 0..LOOPS_MAX {
            memo.first_time(&in_loop(&format!("other-{other}")), "x");
        }
        assert!(memo.first_time(&in_loop("a"), "x"), "it was used longest ago");
        assert_eq!(memo.lock().len(), LOOPS_MAX);
    }
}
