//! The output sink of a running call.

use std::sync::Arc;

use crate::event::{Event, Observers};
use toolwit_core::{LogLevel, Origin, OutputSink, ToolContext};

/// The output sink of one call. It emits progress as an event, and passes everything to the output sink of the user.
pub(super) struct ObservedOutput {
    user_output: Option<Arc<dyn OutputSink>>,
    observers: Observers,
    /// The id of the model's call.
    call_id: String,
}

impl ObservedOutput {
    /// Returns the context with an output sink that emits the progress of a call.
    ///
    /// If a nested agent makes the call, the context already has the sink of the outer call, in which the agent runs. The new
    /// sink then replaces the sink of the outer call. So only the process of the nested agent emits the progress, and the
    /// outer process does not emit it again.
    pub(super) fn observe(context: ToolContext, observers: &Observers, call_id: &str) -> ToolContext {
        let output = context.shared_output();
        let outer = context.extension::<Arc<Self>>();
        let user_output = match (output, outer) {
            (Some(output), Some(outer)) if std::ptr::addr_eq(Arc::as_ptr(output), Arc::as_ptr(outer)) => {
                outer.user_output.clone()
            }
            _ => output.cloned(),
        };
        let observed = Arc::new(Self {
            user_output,
            observers: observers.clone(),
            call_id: call_id.to_owned(),
        });
        context.with_output(observed.clone()).with_extension(observed)
    }
}

impl OutputSink for ObservedOutput {
    fn progress(&self, text: &str) {
        self.observers.emit(&Event::Progress {
            id: self.call_id.clone(),
            text: text.to_owned(),
        });
        if let Some(output) = &self.user_output {
            output.progress(text);
        }
    }

    fn communicate(&self, text: &str) {
        if let Some(output) = &self.user_output {
            output.communicate(text);
        }
    }

    fn accepts_log(&self) -> bool {
        self.user_output.as_ref().is_some_and(|output| output.accepts_log())
    }

    fn log(&self, level: LogLevel, logger: &str, text: &str) {
        if let Some(output) = &self.user_output {
            output.log(level, logger, text);
        }
    }

    fn model_text(&self, text: &str, origin: &Origin) {
        if let Some(output) = &self.user_output {
            output.model_text(text, origin);
        }
    }

    fn shows_chunks(&self, origin: &Origin) -> bool {
        let output = self.user_output.as_ref();
        output.is_some_and(|output| output.shows_chunks(origin))
    }

    fn reasoning(&self, text: &str, origin: &Origin) {
        if let Some(output) = &self.user_output {
            output.reasoning(text, origin);
        }
    }

    fn call_announced(&self, name: &str, origin: &Origin) {
        if let Some(output) = &self.user_output {
            output.call_announced(name, origin);
        }
    }
}
