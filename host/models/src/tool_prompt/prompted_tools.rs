//! A model whose tools are described in its prompt.

use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;

use super::answer_stream::AnswerStream;
use super::messages::{PromptFormat, prompt_messages};
use super::reply::{InvalidReply, Reply};
use super::reply_schema::reply_schema;
use super::text_stream::TextStream;
use super::{call_text, json_reply};
use toolwit_agent::model::{
    ChatDelta, ChatModel, ChatOptions, ChatRequest, ChatResponse, FinishReason, ModelError, Price, TokenUsage,
    ToolChoice,
};
use toolwit_core::{Message, ToolCall, push_joined};

/// A model without an API for tools, whose prompt describes the tools and whose calls are read from its text.
///
/// Requests to the decorated model have messages of the system, the user and the model only. The description of the tools, and
/// in the JSON format the schema of the response, are built from the visible tools for each request. A response is read
/// strictly: a call that is truncated, quoted or ambiguous is not executed. A response that cannot be read is requested once
/// more, with the reason.
///
/// ```
/// use std::sync::Arc;
/// use toolwit_models::{OpenAi, PromptedTools};
///
/// let base = OpenAi::builder("gemma-3-270m").base_url("http://127.0.0.1:8080/v1").build()?;
/// let model = PromptedTools::json(Arc::new(base));
/// # let _ = model;
/// # Ok::<(), toolwit_agent::model::ModelError>(())
/// ```
#[derive(Clone, Debug)]
pub struct PromptedTools<M> {
    model: M,
    format: PromptFormat,
}

impl<M: ChatModel> PromptedTools<M> {
    /// Decorates a model that calls tools in JSON, which its server constrains to a schema.
    #[must_use]
    pub fn json(model: M) -> Self {
        let format = PromptFormat::Json;
        Self { model, format }
    }

    /// Decorates a model that calls tools in text with marks, such as `<tool_call>{…}</tool_call>`.
    #[must_use]
    pub fn text(model: M) -> Self {
        let format = PromptFormat::Text;
        Self { model, format }
    }

    /// Returns the options for the decorated model. If the request has tools, [`reply_schema`] replaces the answer schema in the
    /// JSON format, and the text format has no answer schema.
    fn inner_options(&self, request: &ChatRequest<'_>) -> ChatOptions {
        let mut options = request.options.clone();
        if self.format == PromptFormat::Json && !request.tools.is_empty() {
            options.answer_schema = Some(reply_schema(request));
        } else if !request.tools.is_empty() {
            // A schema would exclude the marks of a call.
            options.answer_schema = None;
        }
        // The inner request has no tools. The prompt and the schema state the tool choice.
        options.tool_choice = ToolChoice::Auto;
        options
    }

    /// Sends messages to the decorated model, and passes the text for the user and the reasoning to the listener of the
    /// request.
    async fn infer(
        &self,
        messages: &[Message],
        options: &ChatOptions,
        request: &ChatRequest<'_>,
    ) -> Result<ChatResponse, ModelError> {
        let inner_request = ChatRequest::new(messages, &[], options, request.cancel);
        if !request.has_listener() {
            return self.model.chat(inner_request).await;
        }
        let stream = Mutex::new(self.reply_stream(request));
        let listener = |delta: ChatDelta<'_>| match delta {
            ChatDelta::Text(piece) => {
                let text = stream.lock().unwrap_or_else(PoisonError::into_inner).push(piece);
                if !text.is_empty() {
                    request.emit_text(&text);
                }
            }
            other => request.emit(other),
        };
        let inner_request = inner_request
            .with_listener(&listener)
            .with_shown_pieces(request.shows_pieces());
        self.model.chat(inner_request).await
    }

    /// Reads a response of the decorated model. Of an incomplete response, such as a truncated one, only the text is returned.
    fn read(&self, response: &ChatResponse, request: &ChatRequest<'_>) -> Result<Reply, InvalidReply> {
        let content = &response.content;
        if request.tools.is_empty() {
            return Ok(Reply::text(content));
        }
        if !response.finish.is_complete() {
            return Ok(Reply::text(self.reply_stream(request).push(content)));
        }
        match self.format {
            PromptFormat::Json => json_reply::read(content),
            PromptFormat::Text => {
                let is_tool = |name: &str| request.tools.iter().any(|tool| tool.name.as_str() == name);
                call_text::read(content, is_tool)
            }
        }
    }

    fn reply_stream(&self, request: &ChatRequest<'_>) -> ReplyStream {
        match self.format {
            _ if request.tools.is_empty() => ReplyStream::Plain,
            PromptFormat::Json => ReplyStream::Json(AnswerStream::default()),
            PromptFormat::Text => ReplyStream::Text(TextStream::default()),
        }
    }

    /// Emits the text that was not emitted while the response arrived, and the calls.
    fn emit_unsent(&self, content: &str, reply: &Reply, request: &ChatRequest<'_>) {
        let streamed_bytes = self.reply_stream(request).push(content).len();
        let unsent_text = reply.text.get(streamed_bytes..).unwrap_or_default();
        if !unsent_text.is_empty() {
            request.emit_text(unsent_text);
        }
        for (index, call) in reply.calls.iter().enumerate() {
            let (name, arguments) = (call.name.as_str(), call.arguments.as_str());
            request.emit(ChatDelta::Call { index, name, arguments });
        }
    }
}

/// Extracts the text for the user from a response that arrives in pieces.
enum ReplyStream {
    /// The complete response is text.
    Plain,
    Json(AnswerStream),
    Text(TextStream),
}

impl ReplyStream {
    fn push(&mut self, piece: &str) -> String {
        match self {
            Self::Plain => piece.to_owned(),
            Self::Json(stream) => stream.push(piece),
            Self::Text(stream) => stream.push(piece),
        }
    }
}

#[async_trait]
impl<M: ChatModel> ChatModel for PromptedTools<M> {
    fn name(&self) -> &str {
        self.model.name()
    }

    async fn chat(&self, request: ChatRequest<'_>) -> Result<ChatResponse, ModelError> {
        let mut messages = prompt_messages(&request, self.format);
        let options = self.inner_options(&request);
        let mut usage = TokenUsage::default();
        let mut repeats_left = 1;
        loop {
            let mut response = self.infer(&messages, &options, &request).await?;
            usage += response.usage;
            response.usage = usage;
            // The decorated model can return calls of its own, although the request to it had no tools.
            if response.refusal.is_some() || !response.tool_calls.is_empty() {
                return Ok(response);
            }
            match self.read(&response, &request) {
                Ok(reply) => {
                    self.emit_unsent(&response.content, &reply, &request);
                    return Ok(convert_response(response, reply, &request));
                }
                Err(invalid) if repeats_left == 0 => return Err(malformed(&invalid)),
                Err(invalid) => {
                    repeats_left -= 1;
                    tracing::debug!(%invalid, "the response is requested once more");
                    let invalid_message = Message::assistant(response.content, Vec::new());
                    push_joined(&mut messages, invalid_message);
                    let problem =
                        format!("Your last response was not executed: {invalid}. Write it again, in the given form.");
                    push_joined(&mut messages, Message::user(problem));
                }
            }
        }
    }

    fn provider(&self) -> Option<&str> {
        self.model.provider()
    }

    fn context_tokens(&self) -> Option<u64> {
        self.model.context_tokens()
    }

    fn accepts_pictures(&self) -> bool {
        self.model.accepts_pictures()
    }

    fn price(&self) -> Option<Price> {
        self.model.price()
    }

    fn end_use(&self) -> Result<(), ModelError> {
        self.model.end_use()
    }
}

/// Replaces the content of a response with the text and the calls that were read from it. Drops the provider blocks, because
/// they belong to the provider's own format.
fn convert_response(mut response: ChatResponse, reply: Reply, request: &ChatRequest<'_>) -> ChatResponse {
    let earlier_calls: usize = request.messages.iter().map(|message| message.tool_calls().len()).sum();
    let calls = reply.calls.into_iter().enumerate().map(|(index, call)| ToolCall {
        id: format!("call_{}", earlier_calls + index + 1),
        name: call.name,
        arguments: call.arguments,
    });
    response.tool_calls = calls.collect();
    response.content = reply.text;
    response.blocks = Vec::new();
    if !response.tool_calls.is_empty() {
        response.finish = FinishReason::ToolCalls;
    }
    response
}

fn malformed(invalid: &InvalidReply) -> ModelError {
    ModelError::Malformed {
        message: format!("the text of the model is neither an answer nor a call: {invalid}"),
    }
}
