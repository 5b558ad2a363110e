//! The client of a model behind an API.

use std::time::Duration;

use async_trait::async_trait;
use tokio::select;
use tokio::time::{Instant, timeout_at};

use super::dialect::{Dialect, MAX_TOKENS_REDUCED, ReaderState};
use super::model_names::accepts_pictures;
use super::response_body::BodyReader;
use crate::assembly::ResponseAssembly;
use crate::http::{AttemptFailure, Endpoint, HttpResponse, Secret};
use toolwit_agent::model::{ChatModel, ChatRequest, ChatResponse, ModelError};
use toolwit_core::with_alternating_roles;

/// A client of one model behind an API of its provider.
///
/// Each inference is one request, limited in time and bytes. Its response is streamed unless the client is built with
/// [`ResponseMode::Complete`](crate::ResponseMode::Complete). The client retries a request after a failure that may be
/// temporary, such as an overloaded or unreachable provider, unless a person has read a part of the response. The key is sent
/// only to the host of the base URL, and does not appear in logs or errors. A proxy is used only if the builder names one.
#[derive(Clone, Debug)]
pub struct ModelClient<D> {
    model: String,
    /// The issuer of the provider blocks in responses: the API and the host, as `API:HOST`. Provider blocks of the history are
    /// sent back to their issuer only.
    block_issuer: String,
    endpoint: Endpoint,
    dialect: D,
}

/// The maximum wait for the end of a body after the response is complete. Usually, the end arrives with the last data.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(5);

/// A failed attempt to send a request and to read its response.
struct FailedAttempt {
    failure: AttemptFailure,
    /// Whether a person has read a part of the response.
    is_shown: bool,
}

impl<D: Dialect> ModelClient<D> {
    pub(super) fn new(model: String, block_issuer: String, endpoint: Endpoint, dialect: D) -> Self {
        Self {
            model,
            block_issuer,
            endpoint,
            dialect,
        }
    }

    /// Sends a request, and sends it again after a failure that may be temporary.
    async fn send_with_retries(&self, request: ChatRequest<'_>, body: &[u8]) -> Result<ChatResponse, ModelError> {
        let mut attempts = self.endpoint.limits().retry.attempts();
        loop {
            let key = self.endpoint.key();
            let FailedAttempt { failure, is_shown } = match self.send_once(request, body, key.as_ref()).await {
                Ok(response) => return Ok(response),
                Err(failed_attempt) => failed_attempt,
            };
            let failure = failure.cleaned(|text| self.endpoint.redact(text, key.as_ref()));
            if is_shown {
                return Err(attempts.give_up(failure));
            }
            attempts.wait_after(failure).await?;
        }
    }

    /// Sends a request once, and returns its response.
    async fn send_once(
        &self,
        request: ChatRequest<'_>,
        body: &[u8],
        key: Option<&Secret>,
    ) -> Result<ChatResponse, FailedAttempt> {
        let bytes_max = self.endpoint.limits().response_bytes_max;
        let mut response = ResponseAssembly::new(request, &self.block_issuer, bytes_max);
        match self.read_response(body, key, &mut response).await {
            Ok(()) => Ok(self.fit_to_schemas(response.finish(), request)),
            Err(failure) => Err(FailedAttempt {
                failure,
                is_shown: response.is_shown(),
            }),
        }
    }

    /// Sends a request and reads its response into `response`.
    async fn read_response(
        &self,
        body: &[u8],
        key: Option<&Secret>,
        response: &mut ResponseAssembly<'_>,
    ) -> Result<(), AttemptFailure> {
        let mut http_response = self.endpoint.send(body.to_vec(), key).await?;
        let limits = self.endpoint.limits();
        let mut body_reader = BodyReader::new(self.dialect.reader(), limits.response_bytes_max);
        // The time until which further events are awaited, once the response is complete.
        let mut end_wait: Option<Instant> = None;
        loop {
            let next_piece = http_response.next_piece();
            let piece = match end_wait {
                None => next_piece.await,
                Some(until) => match timeout_at(until, next_piece).await {
                    Ok(piece) => piece,
                    Err(_) => return body_reader.finish_response(response),
                },
            };
            let piece = match piece {
                // A failure of the connection after the end of the response is ignored.
                Err(_) if body_reader.is_complete(response) => return body_reader.finish_response(response),
                result => result?,
            };
            let Some(piece) = piece else {
                return body_reader.finish(&http_response.content_type(), response);
            };
            let earlier_events = body_reader.event_count();
            if body_reader.push(piece.as_ref(), response)? == ReaderState::Done {
                drain(&mut http_response).await;
                return Ok(());
            }
            // Token counts can follow the last piece of the response. Keep-alive texts do not extend the wait.
            if body_reader.is_complete(response) && body_reader.event_count() > earlier_events {
                end_wait = Some(Instant::now() + limits.end_timeout);
            }
        }
    }

    /// Changes the calls and the answer of a response to fit the original schemas of the tools and of the answer. The dialect
    /// may have sent converted schemas to the provider.
    fn fit_to_schemas(&self, mut response: ChatResponse, request: ChatRequest<'_>) -> ChatResponse {
        for call in &mut response.tool_calls {
            if let Some(tool) = request.tools.iter().find(|tool| tool.name.as_str() == call.name) {
                self.dialect.restore_arguments(call, tool);
            }
        }
        if let Some(schema) = &request.options.answer_schema
            && let Some(answer) = self.dialect.restore_answer(&response.content, schema)
        {
            response.content = answer;
        }
        response
    }
}

#[async_trait]
impl<D: Dialect> ChatModel for ModelClient<D> {
    fn name(&self) -> &str {
        &self.model
    }

    fn provider(&self) -> Option<&str> {
        Some(D::PROFILE.telemetry_name(self.block_issuer.split_once(':')?.1))
    }

    fn accepts_pictures(&self) -> bool {
        accepts_pictures(&self.model)
    }

    fn supports_deferred_tools(&self) -> bool {
        D::DEFERS_TOOLS
    }

    async fn chat(&self, request: ChatRequest<'_>) -> Result<ChatResponse, ModelError> {
        let default_max_tokens = self.dialect.max_tokens(&self.model, request.options.reasoning_effort);
        let max_tokens = request.options.max_tokens.unwrap_or(default_max_tokens);
        let error = match self.infer(request, max_tokens).await {
            Err(error) if request.options.max_tokens.is_none() && refuses_max_tokens(&error, max_tokens) => error,
            result => return result,
        };
        tracing::debug!(%error, max_tokens, "the provider refused the default maximum of tokens; a smaller one is sent");
        self.infer(request, MAX_TOKENS_REDUCED).await
    }
}

impl<D: Dialect> ModelClient<D> {
    /// Performs one inference with this maximum number of tokens of the response.
    async fn infer(&self, mut request: ChatRequest<'_>, max_tokens: u32) -> Result<ChatResponse, ModelError> {
        let mut options = request.options.clone();
        options.max_tokens = Some(max_tokens);
        request.options = &options;
        let messages = with_alternating_roles(request.messages);
        request.messages = &messages;
        let body = self
            .dialect
            .body(&self.model, request, &self.block_issuer, self.endpoint.mode());
        let body = body.to_string().into_bytes();
        select! {
            biased;
            () = request.cancel.cancelled() => Err(ModelError::Cancelled),
            response = self.send_with_retries(request, &body) => response,
        }
    }
}

/// Returns whether the provider refused a request because it allows fewer tokens of a response. The refusal then contains the
/// number that was sent. Providers have no common code for it.
fn refuses_max_tokens(error: &ModelError, max_tokens: u32) -> bool {
    let (ModelError::Refused {
        status: 400 | 422,
        message,
    }
    | ModelError::ContextExceeded { message, .. }) = error
    else {
        return false;
    };
    let is_number = |text: &str| text == max_tokens.to_string();
    max_tokens > MAX_TOKENS_REDUCED && message.split(|c: char| !c.is_ascii_digit()).any(is_number)
}

/// Reads the body to its end, so that the connection can be used again. Normally, the end has already arrived.
async fn drain(http_response: &mut HttpResponse) {
    let end = async { while let Ok(Some(_)) = http_response.next_piece().await {} };
    let _ = tokio::time::timeout(DRAIN_TIMEOUT, end).await;
}
