//! The start of a call: its permission, then its announcement, then the tool.

use std::panic::AssertUnwindSafe;

use futures::FutureExt;

use super::call_queue::{FinishedCall, run_tool};
use super::refusal::{not_run, with_expectation};
use crate::event::{Event, Observers};
use toolwit_core::{Arguments, CallChain, Error, ErrorKind, NamedTool, PermittedCall, StartingCall, ToolContext};

/// A call that is about to start.
pub(super) struct CallStart {
    /// The id of the model's call.
    pub(super) id: String,
    pub(super) tool: NamedTool,
    pub(super) arguments: Arguments,
    pub(super) context: ToolContext,
    pub(super) observers: Observers,
}

impl CallStart {
    /// Starts the call. Without a guard, it is announced at once, otherwise after its permission. The returned future borrows nothing.
    pub(super) fn start(self) -> impl Future<Output = FinishedCall> + Send + use<> {
        let is_guarded = self.context.guard().is_some();
        if !is_guarded {
            self.announce();
        }
        async move {
            if is_guarded {
                self.run_if_permitted().await
            } else {
                self.run().await
            }
        }
    }

    fn announce(&self) {
        self.observers.emit(&Event::ToolStarted {
            id: self.id.clone(),
            name: self.tool.name.clone(),
            tool: self.tool.definition.id.clone(),
        });
    }

    async fn run_if_permitted(mut self) -> FinishedCall {
        let permitted = match self.permit().await {
            Ok(permitted) => permitted,
            Err(error) => return FinishedCall::refused(error),
        };
        let edited = permitted.is_edited.then(|| permitted.arguments.clone());
        self.arguments = permitted.arguments;
        self.announce();
        FinishedCall {
            edited,
            ..self.run().await
        }
    }

    /// Decides whether the call may start. A panic of the approver or of the tool refuses the call.
    async fn permit(&self) -> Result<PermittedCall, Error> {
        let NamedTool { name, definition, tool } = &self.tool;
        let call = StartingCall::new(self.id.clone(), &**tool, self.arguments.clone(), &self.context);
        match AssertUnwindSafe(self.context.permit(call)).catch_unwind().await {
            Ok(permitted) => permitted.map_err(|error| with_expectation(error, definition, name).into()),
            Err(_) => {
                tracing::error!(tool = %name, "the decision on a call panicked; the call does not run");
                Err(not_run(ErrorKind::Internal, "the decision whether it may run failed"))
            }
        }
    }

    async fn run(self) -> FinishedCall {
        let context = CallChain::enter(self.context, &self.tool.definition.id, self.id);
        run_tool(self.tool, self.arguments, context).await
    }
}
