//! `tracing` spans for telemetry. Their names and attributes follow OpenTelemetry's semantic conventions for generative
//! AI. Attributes that only this crate has begin with `toolwit.`.
//!
//! The content of messages and calls is not in the spans. It is in events with the target [`CONTENT`] and the
//! level `TRACE`.

use tracing::field::Empty;
use tracing::{Instrument, Level, Span, enabled, info_span, trace};

use super::call_queue::{CallOutcome, FinishedCall};
use crate::model::{ChatModel, ChatOptions, ChatResponse, FinishReason};
use crate::outcome::{RunError, RunFailure, RunOutcome};
use crate::process::AgentName;
use crate::state::ConversationState;
use toolwit_core::{Arguments, NamedTool, ToolResult};

/// The target of events with the content of messages and calls.
pub(super) const CONTENT: &str = "toolwit::content";

/// Opens the span of a run. If an agent runs, the span has the name of the agent.
pub(super) fn invoke_agent_span(conversation: &ConversationState) -> Span {
    let model = &conversation.model;
    let agent: Option<&AgentName> = conversation.context.extension();
    let agent = agent.map(|AgentName(name)| name.as_str());
    let name = match agent {
        Some(agent) => format!("invoke_agent {agent}"),
        None => "invoke_agent".to_owned(),
    };
    info_span!(
        target: "toolwit::telemetry",
        "invoke_agent",
        otel.name = name,
        otel.kind = "internal",
        gen_ai.operation.name = "invoke_agent",
        gen_ai.provider.name = model.provider(),
        gen_ai.agent.name = agent,
        gen_ai.conversation.id = conversation.observers.origin().process.as_str(),
        gen_ai.request.model = model.name(),
        gen_ai.usage.input_tokens = Empty,
        gen_ai.usage.output_tokens = Empty,
        gen_ai.usage.cache_read.input_tokens = Empty,
        toolwit.usage.injected_tokens = Empty,
        "error.type" = Empty,
    )
}

/// Awaits a turn inside the span of its run, and records the outcome of the run in the span.
pub(super) async fn run_in_span(
    span: Span,
    turn: impl Future<Output = Result<RunOutcome, RunError>>,
) -> Result<RunOutcome, RunError> {
    let result = turn.instrument(span.clone()).await;
    record_run_outcome(&span, &result);
    result
}

/// Records the outcome of a run in its span.
fn record_run_outcome(span: &Span, result: &Result<RunOutcome, RunError>) {
    let outcome = match result {
        Ok(outcome) => outcome,
        Err(error) => {
            span.record("error.type", format!("{:?}", error.outcome.stop));
            &error.outcome
        }
    };
    let tokens = &outcome.usage.tokens;
    span.record("gen_ai.usage.input_tokens", tokens.input_tokens);
    span.record("gen_ai.usage.output_tokens", tokens.output_tokens);
    let optional_counts = [
        ("gen_ai.usage.cache_read.input_tokens", tokens.cached_tokens),
        ("toolwit.usage.injected_tokens", outcome.usage.injected_tokens),
    ];
    for (name, count) in optional_counts.into_iter().filter(|(_, count)| *count > 0) {
        span.record(name, count);
    }
}

/// Opens the span of an inference.
pub(super) fn chat_span(model: &dyn ChatModel, options: &ChatOptions) -> Span {
    let name = model.name();
    let span = info_span!(
        target: "toolwit::telemetry",
        "chat",
        otel.name = format!("chat {name}"),
        otel.kind = "client",
        gen_ai.operation.name = "chat",
        gen_ai.provider.name = model.provider(),
        gen_ai.request.model = name,
        gen_ai.request.max_tokens = Empty,
        gen_ai.request.temperature = Empty,
        gen_ai.response.finish_reasons = Empty,
        gen_ai.usage.input_tokens = Empty,
        gen_ai.usage.output_tokens = Empty,
        gen_ai.usage.cache_read.input_tokens = Empty,
        "error.type" = Empty,
    );
    if let Some(max_tokens) = options.max_tokens {
        span.record("gen_ai.request.max_tokens", u64::from(max_tokens));
    }
    if let Some(temperature) = options.temperature {
        span.record("gen_ai.request.temperature", temperature);
    }
    span
}

/// Records the response in the span of its inference.
pub(super) fn record_response(span: &Span, response: &Result<ChatResponse, RunFailure>) {
    match response {
        Ok(response) => {
            span.record("gen_ai.response.finish_reasons", finish_reason_name(&response.finish));
            span.record("gen_ai.usage.input_tokens", response.usage.input_tokens);
            span.record("gen_ai.usage.output_tokens", response.usage.output_tokens);
            if response.usage.cached_tokens > 0 {
                span.record("gen_ai.usage.cache_read.input_tokens", response.usage.cached_tokens);
            }
            if enabled!(target: CONTENT, Level::TRACE) {
                span.in_scope(|| trace!(target: CONTENT, { gen_ai.output.messages = response.text() }, "content"));
            }
        }
        Err(failure) => {
            span.record("error.type", format!("{:?}", failure.stop()));
        }
    }
}

/// Returns the name of a finish reason for a span.
fn finish_reason_name(finish: &FinishReason) -> &str {
    match finish {
        FinishReason::Stop => "stop",
        FinishReason::ToolCalls => "tool_calls",
        FinishReason::Length => "length",
        FinishReason::ContentFilter => "content_filter",
        FinishReason::Refusal => "refusal",
        FinishReason::Paused => "pause",
        FinishReason::Other(reason) => reason,
    }
}

/// Opens the span of a tool call.
pub(super) fn execute_tool_span(tool: &NamedTool, id: &str, arguments: &Arguments) -> Span {
    let name = tool.name.as_str();
    let span = info_span!(
        target: "toolwit::telemetry",
        "execute_tool",
        otel.name = format!("execute_tool {name}"),
        otel.kind = "internal",
        gen_ai.operation.name = "execute_tool",
        gen_ai.tool.name = name,
        gen_ai.tool.call.id = id,
        "gen_ai.tool.type" = "function",
        "error.type" = Empty,
    );
    if enabled!(target: CONTENT, Level::TRACE) {
        let arguments = serde_json::to_string(arguments).unwrap_or_default();
        span.in_scope(|| trace!(target: CONTENT, { gen_ai.tool.call.arguments = arguments }, "content"));
    }
    span
}

/// Records the outcome in the span of its call.
pub(super) fn record_call_outcome(span: &Span, finished: &FinishedCall) {
    let error_type = match &finished.outcome {
        CallOutcome::Returned(returned) => match &**returned {
            Ok(result) => {
                emit_result(span, result);
                result.is_error().then(|| "tool".to_owned())
            }
            Err(error) => Some(error.report().kind.to_string()),
        },
        CallOutcome::NotPermitted(error) => Some(error.kind.to_string()),
        CallOutcome::Panicked => Some("panic".to_owned()),
        CallOutcome::Abandoned => Some("cancelled".to_owned()),
    };
    if let Some(error_type) = error_type {
        span.record("error.type", error_type);
    }
}

/// Emits the text of a result as a content event, if content events are enabled.
fn emit_result(span: &Span, result: &ToolResult) {
    if enabled!(target: CONTENT, Level::TRACE) {
        span.in_scope(|| trace!(target: CONTENT, { gen_ai.tool.call.result = result.for_llm.as_str() }, "content"));
    }
}
