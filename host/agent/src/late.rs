//! Results that come after their call was answered.

use std::collections::{HashMap, VecDeque};

use tokio_util::sync::CancellationToken;

use super::event::Event;
use super::tool_loop::ToolLoop;
use toolwit_core::{Arguments, BackgroundTasks, LateResult, NamedTool, Signal, ToolCall, ToolContext, ToolResult};

/// The calls of a conversation that go on in the background, and what came of them.
pub(super) struct LateResults {
    background: BackgroundTasks,
    /// The calls whose result is still to come.
    open: HashMap<String, OpenCall>,
    /// What came and was not told yet.
    arrived: VecDeque<LateResult>,
}

/// A call that was answered as one that goes on.
struct OpenCall {
    call: ToolCall,
    arguments: Arguments,
    tool: NamedTool,
}

impl LateResults {
    pub(super) fn new(conversation: &CancellationToken) -> Self {
        Self {
            background: BackgroundTasks::new(conversation),
            open: HashMap::new(),
            arrived: VecDeque::new(),
        }
    }

    /// Gives a call the means to go on in the background.
    pub(super) fn offer(&self, call: &str, context: &ToolContext) -> ToolContext {
        self.background.offer(call, context)
    }

    /// Notes how a call was answered, and tells whether a result is still to come: it must go on and have promised one. The
    /// promise of a call that is done is void.
    pub(super) fn note(
        &mut self,
        call: &ToolCall,
        arguments: &Arguments,
        tool: &NamedTool,
        result: &ToolResult,
    ) -> bool {
        let goes_on = result.is_pending() && self.background.is_promised(&call.id);
        if goes_on {
            let open = OpenCall {
                call: call.clone(),
                arguments: arguments.clone(),
                tool: tool.clone(),
            };
            self.open.insert(call.id.clone(), open);
        } else {
            self.background.forget(&call.id);
        }
        goes_on
    }

    /// Returns how many results are still to come.
    pub(super) fn outstanding(&self) -> usize {
        self.open.len()
    }

    /// Waits until a result is there; `false` when none is to come. Nothing is lost when the wait is dropped.
    pub(super) async fn wait(&mut self) -> bool {
        while self.arrived.is_empty() {
            if self.open.is_empty() {
                return false;
            }
            match self.background.next().await {
                Some(late) if self.open.contains_key(&late.call) => self.arrived.push_back(late),
                Some(_) => {}
                None => return false,
            }
        }
        true
    }

    fn next(&mut self) -> Option<(OpenCall, ToolResult)> {
        loop {
            let late = self.arrived.pop_front().or_else(|| self.background.try_next())?;
            self.background.forget(&late.call);
            if let Some(open) = self.open.remove(&late.call) {
                return Some((open, late.result));
            }
        }
    }
}

impl ToolLoop<'_> {
    /// Tells the model the results that came meanwhile, in the order in which they came. Returns what they ask of the run.
    ///
    /// Providers take one answer a call, and right after it. So a late result stands in the history as a call of its own, with
    /// the arguments of the first one: in the tool's voice, never in the user's.
    pub(super) fn tell_late_results(&mut self) -> Option<Signal> {
        let mut signal = None;
        while let Some((open, result)) = self.conversation.late.next() {
            let OpenCall { call, arguments, tool } = open;
            let history = &mut self.conversation.history;
            let again = ToolCall {
                id: history.claim_id(""),
                ..call.clone()
            };
            history.respond(String::new(), vec![again.clone()]);
            let heading = format!("[what came of the call {}, which went on]\n", call.id);
            let (name, id, is_error) = (tool.name.clone(), tool.definition.id.clone(), result.is_error());
            tracing::debug!(tool = %name, is_error, "a late result came");
            let followed = self.follow(&again, tool, arguments, result, heading, false);
            self.emit(&Event::LateResult {
                id: again.id.clone(),
                call: call.id,
                name: name.clone(),
                tool: id,
                is_error,
                content: followed.content.clone(),
                artifacts: followed.artifacts.clone(),
            });
            let consequence = self.settle(again.id, &name, followed);
            signal = signal.or(consequence.signal);
        }
        signal
    }
}
