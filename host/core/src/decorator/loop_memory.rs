//! The keys that each loop has used. A loop is one run of a conversation or an agent.

use std::collections::{HashSet, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::ToolContext;

/// Maximum number of loops in a memory. If there are more, the loop with the oldest last [`insert`](LoopMemory::insert) is
/// removed. Its keys then count as new.
const LOOPS_MAX: usize = 256;

/// Maximum number of keys of one loop. Further keys are not stored, and therefore always count as new.
const KEYS_MAX: usize = 1_024;

/// A set of keys for each loop. The value [`LOOP_ID`](crate::LOOP_ID) in the context identifies the loop.
///
/// Outside a loop, no key is stored, so every key is new.
///
/// ```
/// use toolwit_core::{LOOP_ID, LoopMemory, ToolContext};
///
/// let memory = LoopMemory::new();
/// let context = ToolContext::new().with(LOOP_ID, "a");
/// assert!(memory.insert(&context, "rules"));
/// assert!(!memory.insert(&context, "rules"));
/// assert!(memory.insert(&ToolContext::new().with(LOOP_ID, "b"), "rules"));
/// ```
#[derive(Debug, Default)]
pub struct LoopMemory {
    /// The ids and keys of the loops. The loop with the oldest last insertion is the first.
    loops: Mutex<VecDeque<(String, HashSet<String>)>>,
}

impl LoopMemory {
    /// Creates an empty memory.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the key to the set of the current loop. Returns whether the key is new.
    pub fn insert(&self, context: &ToolContext, key: &str) -> bool {
        let is_new = !self.contains(context, key);
        self.store(context, key);
        is_new
    }

    /// Returns whether the set of the current loop has the key.
    #[must_use]
    pub fn contains(&self, context: &ToolContext, key: &str) -> bool {
        let Some(id) = context.loop_id() else { return false };
        let loops = self.lock();
        let current = loops.iter().find(|(loop_id, _)| loop_id == id);
        current.is_some_and(|(_, keys)| keys.contains(key))
    }

    /// Adds the key to the set of the current loop, and makes the loop the most recent one.
    fn store(&self, context: &ToolContext, key: &str) {
        let Some(id) = context.loop_id() else { return };
        let mut loops = self.lock();
        let position = loops.iter().position(|(loop_id, _)| loop_id == id);
        let existing_loop = position.and_then(|position| loops.remove(position));
        let (loop_id, mut keys) = existing_loop.unwrap_or_else(|| (id.to_owned(), HashSet::new()));
        if keys.len() < KEYS_MAX {
            keys.insert(key.to_owned());
        }
        loops.push_back((loop_id, keys));
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

    fn skill(is_broken: Arc<AtomicBool>) -> impl Tool {
        let tool = NativeTool::new("skill", "", json!({"type": "object"}), move |_, _| {
            let is_broken = is_broken.load(Ordering::Relaxed);
            async move {
                Ok(if is_broken {
                    ToolResult::error("no such file")
                } else {
                    ToolResult::text("the body")
                })
            }
        });
        tool.unwrap().one_shot_per_loop("Write your script now.")
    }

    async fn call(tool: &impl Tool, context: &ToolContext) -> String {
        tool.call(Arguments::new(), context).await.unwrap().for_llm
    }

    // accept: 82
    #[tokio::test]
    async fn second_call_in_a_loop_refers_to_the_history() {
        let skill = skill(Arc::default());
        assert_eq!(call(&skill, &in_loop("a")).await, "the body");
        let second_text = call(&skill, &in_loop("a")).await;
        assert!(
            second_text.starts_with("ALREADY LOADED. The body of 'skill'"),
            "{second_text}"
        );
        assert!(second_text.ends_with("Write your script now."), "{second_text}");
        assert_eq!(
            call(&skill, &in_loop("b")).await,
            "the body",
            "another loop has its own keys"
        );
        assert_eq!(call(&skill, &ToolContext::new()).await, "the body");
        assert_eq!(
            call(&skill, &ToolContext::new()).await,
            "the body",
            "outside a loop, every call runs"
        );
    }

    // accept: 147
    #[tokio::test]
    async fn failed_first_call_does_not_count() {
        let is_broken = Arc::new(AtomicBool::new(true));
        let skill = skill(is_broken.clone());
        assert_eq!(call(&skill, &in_loop("a")).await, "no such file");
        is_broken.store(false, Ordering::Relaxed);
        assert_eq!(call(&skill, &in_loop("a")).await, "the body");
    }

    // accept: 83
    #[test]
    fn a_full_memory_removes_the_loop_with_the_oldest_last_insertion() {
        let memory = LoopMemory::new();
        assert!(memory.insert(&in_loop("a"), "x") && memory.insert(&in_loop("a"), "y"));
        assert!(!memory.insert(&in_loop("a"), "x"));
        assert!(memory.insert(&ToolContext::new(), "x") && memory.insert(&ToolContext::new(), "x"));
        for number in 0..LOOPS_MAX {
            memory.insert(&in_loop(&format!("other-{number}")), "x");
        }
        assert!(
            memory.insert(&in_loop("a"), "x"),
            "the key of the removed loop `a` is new again"
        );
        assert_eq!(memory.lock().len(), LOOPS_MAX);
    }
}
