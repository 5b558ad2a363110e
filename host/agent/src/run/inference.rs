//! One inference: a request to the model, and its response in the history.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use tracing::Instrument;

use super::compaction::{compact_after_refusal, compact_if_full};
use super::pictures::messages_for_model;
use super::prepared_call::{PreparedCall, prepare_calls};
use super::run_state::RunState;
use super::spans;
use super::stop::StopSignal;
use crate::event::Event;
use crate::journal::{Journal, history_tokens};
use crate::millis::millis;
use crate::model::{
    ChatDelta, ChatModel, ChatOptions, ChatRequest, ChatResponse, Cost, DeclaredTool, FinishReason, ModelError,
    ToolChoice, ToolDelivery,
};
use crate::outcome::RunFailure;
use crate::process::ModelUsageKind;
use toolwit_core::text::json_sha256;
use toolwit_core::{Error, ErrorKind, Message, Origin, OutputSink, Phase};

/// Maximum number of times that a paused response is continued.
const PAUSES_MAX: u32 = 8;

/// The model's response, with its calls ready to run.
pub(super) struct ModelReply {
    pub(super) content: String,
    pub(super) finish: FinishReason,
    pub(super) calls: Vec<PreparedCall>,
}

impl ModelReply {
    /// Returns whether the provider paused the response, so that another request continues it.
    fn is_paused(&self) -> bool {
        self.finish == FinishReason::Paused && self.calls.is_empty()
    }
}

/// Performs an inference. If the provider pauses the response, further inferences continue the response, as long as the
/// limits allow them.
///
/// # Errors
/// The errors of [`infer`].
pub(super) async fn infer_until_complete(run: &mut RunState<'_>) -> Result<ModelReply, RunFailure> {
    let mut pauses = 0;
    loop {
        let reply = infer(run, None).await?;
        let may_continue = pauses < PAUSES_MAX && run.tally.iterations < run.conversation.limits.iterations_max;
        if !reply.is_paused() || !may_continue {
            return Ok(reply);
        }
        pauses += 1;
    }
}

/// Performs one inference and appends the response to the history. If the provider refuses the request because it exceeds
/// the context of the model, and a compaction can shorten the history, the request is sent again. `choice` replaces the
/// tool choice of the options.
///
/// # Errors
/// [`RunFailure`] if a budget is exhausted, the run must stop, or the model or the journal fails.
pub(super) async fn infer(run: &mut RunState<'_>, choice: Option<ToolChoice>) -> Result<ModelReply, RunFailure> {
    if let Some(exhausted) = run.account.reached_limit() {
        return Err(exhausted);
    }
    compact_if_full(run).await?;
    run.tally.iterations += 1;
    let conversation = &*run.conversation;
    let toolbox = &conversation.toolbox;
    run.emit(&Event::IterationStarted {
        iteration: run.tally.iterations,
        tools: toolbox.declared().len(),
        providers: toolbox.entities().len(),
    });
    let mut options = conversation.options.clone();
    options.tool_choice = choice.unwrap_or_else(|| tool_choice(&options, run.tally.iterations));
    if let Some(schema) = &run.answer_schema {
        options.answer_schema = Some(schema.clone());
    }
    let started = Instant::now();
    let response = match send_request(run, &options).await {
        Err(RunFailure::Model(ModelError::ContextExceeded { .. })) if compact_after_refusal(run).await? => {
            send_request(run, &options).await?
        }
        response => response?,
    };
    Ok(record_response(run, response, started.elapsed()))
}

/// Sends a request to the model, and returns its response.
async fn send_request(run: &mut RunState<'_>, options: &ChatOptions) -> Result<ChatResponse, RunFailure> {
    announce_request(run, options).await?;
    let conversation = &*run.conversation;
    let toolbox = &conversation.toolbox;
    let inference = Inference {
        model: &*conversation.model,
        messages: &messages_for_model(conversation.history.messages(), conversation.model.accepts_pictures()),
        tools: toolbox.declared(),
        delivery: toolbox.delivery(),
        options,
        output: run.context.output(),
        origin: conversation.observers.origin(),
        stop: &run.stop,
        streamed_text: &run.tally.streamed_text,
    };
    run.tally.take_streamed_text();
    let span = spans::chat_span(inference.model, inference.options);
    let response = inference.run().instrument(span.clone()).await;
    spans::record_response(&span, &response);
    response
}

/// Records the next request in the journal, before it is sent. The request of an agent is recorded too.
async fn announce_request(run: &RunState<'_>, options: &ChatOptions) -> Result<(), RunFailure> {
    let conversation = &*run.conversation;
    let Some(journal) = Journal::of(&run.context) else {
        return Ok(());
    };
    let tools = conversation.toolbox.declared().iter();
    let tools: Vec<_> = tools.map(|tool| (&tool.name, &*tool.definition)).collect();
    let digest = json_sha256(&(conversation.history.roles_and_texts(), tools, options)).map_err(|error| {
        let message = "the request to the model has no JSON form";
        RunFailure::Tool(Error::new(ErrorKind::Internal, Phase::Model, message).with_source(error))
    })?;
    run.emit(&Event::ModelAsked {
        iteration: run.tally.iterations,
        request: digest,
    });
    journal
        .commit()
        .await
        .map_err(|error| RunFailure::Tool(Error::from(error)))
}

/// Returns the tool choice for an iteration. A required tool call is required only in the first iteration, because the
/// model could never answer otherwise.
fn tool_choice(options: &ChatOptions, iteration: u32) -> ToolChoice {
    match options.tool_choice {
        ToolChoice::Required if iteration > 1 => ToolChoice::Auto,
        choice => choice,
    }
}

/// A request to the model, and the output to which its response is streamed.
struct Inference<'r> {
    model: &'r dyn ChatModel,
    messages: &'r [Message],
    tools: &'r [DeclaredTool],
    delivery: ToolDelivery,
    options: &'r ChatOptions,
    output: &'r dyn OutputSink,
    origin: &'r Origin,
    stop: &'r StopSignal,
    /// The text that the user has seen.
    streamed_text: &'r Mutex<String>,
}

impl Inference<'_> {
    /// Sends the request, streams the response to the user, and returns the response.
    async fn run(&self) -> Result<ChatResponse, RunFailure> {
        let (announced_count, is_streamed) = (AtomicUsize::new(0), AtomicBool::new(false));
        let stream = |delta: ChatDelta<'_>| {
            let emit = || match delta {
                ChatDelta::Text(text) => {
                    is_streamed.store(true, Ordering::Relaxed);
                    // A request whose pieces are not shown is repeated after a failure.
                    if self.output.shows_chunks(self.origin) {
                        self.lock_streamed_text().push_str(text);
                    }
                    self.output.model_text(text, self.origin);
                }
                ChatDelta::Reasoning(text) => self.output.reasoning(text, self.origin),
                ChatDelta::Call { index, name, .. } => {
                    // Each piece of a call contains its name. Only the first piece announces the call.
                    let is_first = announced_count.fetch_max(index + 1, Ordering::Relaxed) <= index;
                    if is_first {
                        self.output.call_announced(name, self.origin);
                    }
                }
            };
            if catch_unwind(AssertUnwindSafe(emit)).is_err() {
                tracing::warn!("the output sink panicked; some text is lost");
            }
        };
        let request = ChatRequest::new(self.messages, self.tools, self.options, self.stop.token())
            .with_delivery(self.delivery)
            .with_listener(&stream)
            .with_shown_pieces(self.output.shows_chunks(self.origin));
        let response = tokio::select! {
            biased;
            failure = self.stop.wait() => return Err(failure),
            response = self.model.chat(request) => response,
        };
        // The text of a model that does not stream is emitted in one piece.
        if let (Ok(response), false) = (&response, is_streamed.load(Ordering::Relaxed))
            && !response.text().is_empty()
        {
            stream(ChatDelta::Text(response.text()));
        }
        response.map_err(|error| match error {
            ModelError::Cancelled => RunFailure::Cancelled,
            error => RunFailure::Model(error),
        })
    }

    fn lock_streamed_text(&self) -> MutexGuard<'_, String> {
        self.streamed_text.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Appends a response to the history, charges its usage to the account, and emits its events. Returns the response with
/// its calls ready to run.
fn record_response(run: &mut RunState<'_>, response: ChatResponse, wall: Duration) -> ModelReply {
    let content = response.text().to_owned();
    // The response is complete, so the history gets its text from here.
    run.tally.take_streamed_text();
    let history = &mut run.conversation.history;
    let message_tokens = history_tokens(history.messages());
    let requested_calls = response.tool_calls.clone();
    let calls = prepare_calls(response.tool_calls, &response.finish, history);
    let tool_calls: Vec<_> = calls.iter().map(|prepared| prepared.history_call.clone()).collect();
    // The event has the calls as the model wrote them only if they differ from the calls in the history.
    let requested = if requested_calls == tool_calls {
        Vec::new()
    } else {
        requested_calls
    };
    history.append_response(content.clone(), tool_calls.clone(), response.blocks.clone());
    let model = &run.conversation.model;
    let cost = model.price().map_or(Cost::ZERO, |price| price.cost(&response.usage));
    run.account
        .charge(ModelUsageKind::Chat, model.name(), response.usage, cost);
    let injected = run.tally.add_injection_cost(message_tokens, &response.usage);
    if !content.is_empty() {
        run.tally.last_text = Some(content.clone());
    }
    run.emit(&Event::ModelAnswered {
        iteration: run.tally.iterations,
        wall_ms: millis(wall),
        finish: response.finish.clone(),
        usage: response.usage,
        content: content.clone(),
        reasoning: response.reasoning,
        tool_calls,
        requested,
        blocks: response.blocks,
        injected,
    });
    for prepared in calls.iter().filter(|prepared| prepared.is_repaired) {
        run.emit(&Event::ArgumentsRepaired {
            id: prepared.history_call.id.clone(),
            name: prepared.history_call.name.clone(),
        });
    }
    ModelReply {
        content,
        finish: response.finish,
        calls,
    }
}
