//! The client of a model behind an API.

use std::time::Duration;

use async_trait::async_trait;
use tokio::select;

use super::dialect::{Dialect, ReaderState};
use super::response_body::BodyReader;
use crate::assembly::ResponseAssembly;
use crate::http::{AttemptFailure, Endpoint, HttpResponse, Secret};
use toolwit_agent::model::{ChatModel, ChatRequest, ChatResponse, ModelError};
use toolwit_core::with_alternating_roles;

/// A client of one model behind an API of its provider.
///
/// Each inference is one request, limited in time and bytes. Its response is streamed unless the client is built with
/// [`ResponseMode::Complete`](crate::ResponseMode::Complete). The client retries a request after a failure that may be
/// temporary, such as an overloaded or unreachable provider, unless the listener of the request has received a part of the
/// response. The key is sent only to the host of the base URL, and does not appear in logs or errors. Proxies from the
/// environment are not used.
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
    /// Whether the listener of the request received a part of the response.
    has_emitted: bool,
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
            let FailedAttempt { failure, has_emitted } = match self.send_once(request, body, key.as_ref()).await {
                Ok(response) => return Ok(response),
                Err(failed_attempt) => failed_attempt,
            };
            let failure = failure.cleaned(|text| match &key {
                Some(key) => key.redact(text),
                None => text.to_owned(),
            });
            if has_emitted {
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
                has_emitted: response.has_emitted(),
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
        let mut body_reader = BodyReader::new(self.dialect.reader(), self.endpoint.limits().response_bytes_max);
        loop {
            let piece = match http_response.next_piece().await {
                // A failure of the connection after the end of the response is ignored.
                Err(_) if body_reader.is_complete(response) => return body_reader.finish_response(response),
                result => result?,
            };
            let Some(piece) = piece else {
                return body_reader.finish(&http_response.content_type(), response);
            };
            if body_reader.push(piece.as_ref(), response)? == ReaderState::Done {
                drain(&mut http_response).await;
                return Ok(());
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

    fn supports_deferred_tools(&self) -> bool {
        D::DEFERS_TOOLS
    }

    async fn chat(&self, request: ChatRequest<'_>) -> Result<ChatResponse, ModelError> {
        let mut options = request.options.clone();
        let default_max_tokens = || self.dialect.max_tokens(&self.model, options.reasoning_effort);
        options.max_tokens = Some(options.max_tokens.unwrap_or_else(default_max_tokens));
        let mut request = request;
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

/// Reads the body to its end, so that the connection can be used again. Normally, the end has already arrived.
async fn drain(http_response: &mut HttpResponse) {
    let end = async { while let Ok(Some(_)) = http_response.next_piece().await {} };
    let _ = tokio::time::timeout(DRAIN_TIMEOUT, end).await;
}
