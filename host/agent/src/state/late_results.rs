//! Results that arrive after their call was answered.

use std::collections::{HashMap, VecDeque};

use tokio_util::sync::CancellationToken;

use toolwit_core::{Arguments, BackgroundTasks, LateResult, NamedTool, ToolCall, ToolContext, ToolResult};

/// The background calls of a conversation, and the results that the model has not read yet.
pub(crate) struct LateResults {
    background: BackgroundTasks,
    /// The calls whose result the model has not read, by their ids.
    open: HashMap<String, BackgroundCall>,
    /// The results that have arrived and that the model has not read.
    arrived: VecDeque<LateResult>,
}

/// A call that continues in the background.
pub(crate) struct BackgroundCall {
    pub(crate) call: ToolCall,
    pub(crate) arguments: Arguments,
    pub(crate) tool: NamedTool,
}

impl LateResults {
    pub(crate) fn new(conversation: &CancellationToken) -> Self {
        Self {
            background: BackgroundTasks::new(conversation),
            open: HashMap::new(),
            arrived: VecDeque::new(),
        }
    }

    /// Returns the context of a call, with which its tool can promise a late result.
    pub(crate) fn offer(&self, call_id: &str, context: &ToolContext) -> ToolContext {
        self.background.offer(call_id, context)
    }

    /// Tracks a call if it continues in the background, and returns whether it does. A call continues in the background
    /// if its result is pending and its tool has promised a late result. Otherwise, a late result of the call is
    /// discarded.
    pub(crate) fn track(
        &mut self,
        call: &ToolCall,
        arguments: &Arguments,
        tool: &NamedTool,
        result: &ToolResult,
    ) -> bool {
        let is_background = result.is_pending() && self.background.has_task(&call.id);
        if is_background {
            let open = BackgroundCall {
                call: call.clone(),
                arguments: arguments.clone(),
                tool: tool.clone(),
            };
            self.open.insert(call.id.clone(), open);
        } else {
            self.background.forget(&call.id);
        }
        is_background
    }

    /// Adds an error as the late result of a background call that an earlier process began. The work of the call ended
    /// with that process.
    pub(crate) fn fail(&mut self, call: BackgroundCall) {
        let id = call.call.id.clone();
        self.open.insert(id.clone(), call);
        self.arrived.push_back(LateResult {
            call: id,
            result: ToolResult::error(
                "the background work ended with the process that ran it; it may have taken effect",
            ),
        });
    }

    /// Returns the number of background calls whose result the model has not read.
    pub(crate) fn open_call_count(&self) -> usize {
        self.open.len()
    }

    /// Waits until a late result has arrived. Returns `false` if no result is expected. If the future is dropped, no
    /// result is lost.
    pub(crate) async fn wait(&mut self) -> bool {
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

    /// Removes and returns the oldest late result that has arrived, with its call. Returns `None` if no result has
    /// arrived.
    pub(crate) fn next(&mut self) -> Option<(BackgroundCall, ToolResult)> {
        loop {
            let late = self.arrived.pop_front().or_else(|| self.background.try_next())?;
            self.background.forget(&late.call);
            if let Some(open) = self.open.remove(&late.call) {
                return Some((open, late.result));
            }
        }
    }
}
