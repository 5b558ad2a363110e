//! Results that arrive after their call was answered.

use std::collections::{HashMap, VecDeque};

use tokio_util::sync::CancellationToken;

use toolwit_core::{Arguments, BackgroundTasks, Caller, LateResult, NamedTool, ToolCall, ToolContext, ToolResult};

/// The background calls of a conversation, and the results that the model has not read yet.
pub(crate) struct LateResults {
    background: BackgroundTasks,
    /// The background calls whose result the model has not read, by their ids.
    open_calls: HashMap<String, BackgroundCall>,
    /// The results that have arrived and that the model has not read.
    arrived_results: VecDeque<LateResult>,
}

/// A call that continues in the background.
pub(crate) struct BackgroundCall {
    pub(crate) call: ToolCall,
    pub(crate) arguments: Arguments,
    pub(crate) tool: NamedTool,
    /// The caller who made the call; `None` for a call of an earlier process.
    pub(crate) caller: Option<Caller>,
}

impl LateResults {
    pub(crate) fn new(conversation: &CancellationToken) -> Self {
        Self {
            background: BackgroundTasks::new(conversation),
            open_calls: HashMap::new(),
            arrived_results: VecDeque::new(),
        }
    }

    /// Returns the context for a call. With this context, the tool can continue the call as a background task, and deliver
    /// a late result.
    pub(crate) fn context_for_call(&self, call_id: &str, context: &ToolContext) -> ToolContext {
        self.background.context_for_call(call_id, context)
    }

    /// Tracks a call if it continues in the background, and returns whether it does. A call continues in the background
    /// if its result is pending and its tool has created a background task. The late results of other calls are
    /// discarded.
    pub(crate) fn track(
        &mut self,
        (call, arguments, tool): (&ToolCall, &Arguments, &NamedTool),
        caller: Caller,
        result: &ToolResult,
    ) -> bool {
        let is_background = result.is_pending() && self.background.has_task(&call.id);
        if is_background {
            let background_call = BackgroundCall {
                call: call.clone(),
                arguments: arguments.clone(),
                tool: tool.clone(),
                caller: Some(caller),
            };
            self.open_calls.insert(call.id.clone(), background_call);
        } else {
            self.background.forget(&call.id);
        }
        is_background
    }

    /// Adds an error as the late result of a background call that an earlier process began. The background task of the
    /// call ended with that process.
    pub(crate) fn fail(&mut self, call: BackgroundCall) {
        let id = call.call.id.clone();
        self.open_calls.insert(id.clone(), call);
        self.arrived_results.push_back(LateResult {
            call_id: id,
            result: ToolResult::error(
                "the background work ended with the process that ran it; it may have taken effect",
            ),
        });
    }

    /// Returns the number of background calls whose result the model has not read.
    pub(crate) fn open_call_count(&self) -> usize {
        self.open_calls.len()
    }

    /// Waits until a late result has arrived. Returns `false` if no result is expected. If the future is dropped, no
    /// result is lost.
    pub(crate) async fn wait(&mut self) -> bool {
        while self.arrived_results.is_empty() {
            if self.open_calls.is_empty() {
                return false;
            }
            match self.background.next().await {
                Some(late) if self.open_calls.contains_key(&late.call_id) => self.arrived_results.push_back(late),
                Some(_) => {}
                None => return false,
            }
        }
        true
    }

    /// Removes and returns the oldest late result that has arrived, with its call. Returns `None` if no result has
    /// arrived.
    pub(crate) fn next(&mut self) -> Option<(BackgroundCall, ToolResult)> {
        loop {
            let late = self
                .arrived_results
                .pop_front()
                .or_else(|| self.background.try_next())?;
            self.background.forget(&late.call_id);
            if let Some(background_call) = self.open_calls.remove(&late.call_id) {
                return Some((background_call, late.result));
            }
        }
    }
}
