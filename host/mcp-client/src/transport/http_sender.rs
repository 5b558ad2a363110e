//! Sends requests to a server over HTTP, for the protocol library `rmcp`.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures::{FutureExt, StreamExt, stream};
use http::header::{
    ACCEPT, ACCEPT_ENCODING, AUTHORIZATION, CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue,
    WWW_AUTHENTICATE,
};
use http::{Method, StatusCode};
use reqwest::{Client, RequestBuilder, Response};
use rmcp::model::{ClientJsonRpcMessage, ClientRequest, RequestId, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_client::{
    AuthRequiredError, StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
};

use super::http_client;
use super::http_failure::{HttpFailure, error_message, request_failed};
use super::http_response::{answer_to, has_media_type, header, read_body};
use super::message;
use super::oauth::{Challenge, TokenSource};
use super::redirect::same_origin_target;
use super::request_limit::RequestLimit;
use super::sse::{self, Events};
use crate::value::Redaction;
use toolwit_core::limits::MCP_MESSAGE_BYTES_MAX;
use toolwit_core::text::printable;

/// The maximum number of redirects that a request follows.
const REDIRECTS_MAX: usize = 3;

/// The maximum number of bytes that are read from the body of an error response.
const ERROR_BYTES_MAX: usize = 64 << 10;

/// The maximum number of characters of an error response that an error message quotes.
const QUOTED_BODY_CHARS_MAX: usize = 200;

/// The maximum time until the server accepts a message that is not a request.
const NOTIFICATION_WALL_MAX: Duration = Duration::from_secs(10);

const SESSION_ID: &str = "mcp-session-id";
const LAST_EVENT_ID: &str = "last-event-id";
const JSON: &str = "application/json";
const EVENT_STREAM: &str = "text/event-stream";

type Failure = StreamableHttpError<HttpFailure>;

/// Sends requests to a server. Follows redirects within the origin of the server only, uses no proxy, and reads only responses of
/// limited size.
#[derive(Clone)]
pub(crate) struct HttpSender {
    client: Client,
    headers: HeaderMap,
    tokens: Option<TokenSource>,
    /// The secrets that the server received.
    redaction: Redaction,
    request_limit: RequestLimit,
    /// The maximum time until a response has arrived, or its stream of events has begun. A stream of events that answers
    /// a request ends after this time. A stream of [`Self::get_stream`] ends after this time without data.
    wall_max: Duration,
}

impl HttpSender {
    /// Creates a sender for a server.
    ///
    /// # Errors
    /// The reason why TLS cannot be configured.
    pub(crate) fn new(
        is_encrypted: bool,
        mut headers: HeaderMap,
        wall_max: Duration,
        redaction: Redaction,
    ) -> Result<Self, String> {
        headers
            .entry(ACCEPT_ENCODING)
            .or_insert(HeaderValue::from_static("identity"));
        headers.values_mut().for_each(|value| value.set_sensitive(true));
        let client = http_client::client(is_encrypted)?;
        Ok(Self {
            client,
            headers,
            tokens: None,
            redaction,
            request_limit: RequestLimit::default(),
            wall_max,
        })
    }

    /// Sets the source of the token for each request. With a configured OAuth client, a configured header
    /// `authorization` is removed, because the token replaces it.
    pub(crate) fn with_tokens(mut self, tokens: Option<TokenSource>) -> Self {
        if matches!(tokens, Some(TokenSource::Client(_))) {
            self.headers.remove(AUTHORIZATION);
        }
        self.tokens = tokens;
        self
    }

    /// Sends a request and returns the response. A redirect to another origin, a lost session and a required authorization are
    /// errors. The caller checks all other statuses.
    async fn send(
        &self,
        method: Method,
        uri: &str,
        session: Option<&str>,
        headers: HashMap<HeaderName, HeaderValue>,
        body: Option<Vec<u8>>,
    ) -> Result<Response, Failure> {
        let mut uri = Cow::Borrowed(uri);
        let mut redirects = 0;
        let headers: HeaderMap = headers.into_iter().collect();
        let response = loop {
            let mut request = self
                .client
                .request(method.clone(), &*uri)
                .headers(self.headers.clone())
                .headers(headers.clone());
            if let Some(session) = session {
                request = request.header(SESSION_ID, session);
            }
            if let Some(body) = &body {
                request = request.header(CONTENT_TYPE, JSON).body(body.clone());
            }
            let response = self.send_with_token(request).await?;
            // After 303, the server has processed the request.
            if !matches!(response.status().as_u16(), 301 | 302 | 307 | 308) {
                break response;
            }
            let location = header(&response, "location").unwrap_or_default();
            let target = same_origin_target(&uri, &location).filter(|_| redirects < REDIRECTS_MAX);
            let Some(target) = target else {
                let location = self.redaction.quoted(&location);
                return Err(Failure::Client(HttpFailure::Redirect { location }));
            };
            redirects += 1;
            uri = Cow::Owned(target);
        };
        let status = response.status();
        if status == StatusCode::NOT_FOUND && session.is_some() {
            return Err(Failure::SessionExpired);
        }
        let challenge = response.headers().get(WWW_AUTHENTICATE);
        if let Some(challenge) = challenge.filter(|_| status == StatusCode::UNAUTHORIZED) {
            let challenge = printable(&String::from_utf8_lossy(challenge.as_bytes()));
            return Err(Failure::AuthRequired(AuthRequiredError::new(challenge)));
        }
        Ok(response)
    }

    /// Sends a request, with a token if there is a source of tokens. If the server refuses the token, sends the request
    /// once more with another token.
    async fn send_with_token(&self, request: RequestBuilder) -> Result<Response, Failure> {
        let Some(tokens) = &self.tokens else {
            return request.send().await.map_err(request_failed);
        };
        let token_failure = |failure| Failure::Client(HttpFailure::Token(failure));
        let token = tokens.header().await.map_err(token_failure)?;
        let second_request = request.try_clone();
        let response = with_token(request, token.clone()).send().await;
        let response = response.map_err(request_failed)?;
        let challenge = Challenge::from_response(response.status(), response.headers());
        let (Some(challenge), Some(second_request)) = (challenge, second_request) else {
            return Ok(response);
        };
        let token = tokens.answer_challenge(token, challenge).await.map_err(token_failure)?;
        let response = with_token(second_request, Some(token)).send().await;
        let response = response.map_err(request_failed)?;
        let challenge = Challenge::from_response(response.status(), response.headers());
        match challenge.and_then(|challenge| tokens.record_second_refusal(&challenge)) {
            Some(failure) => Err(token_failure(failure)),
            None => Ok(response),
        }
    }

    /// Posts a message.
    async fn post(
        &self,
        uri: &str,
        message: &ClientJsonRpcMessage,
        session: Option<&str>,
        mut headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        headers.insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
        let body = serde_json::to_vec(message)?;
        let response = self.send(Method::POST, uri, session, headers, Some(body)).await?;
        let status = response.status();
        if matches!(status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT) {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        let session = header(&response, SESSION_ID);
        let content_type = header(&response, "content-type").unwrap_or_default();
        if !status.is_success() {
            return self.error_response(response, message, session).await;
        }
        let request_id = match message {
            ClientJsonRpcMessage::Request(request) => Some(request.id.clone()),
            _ => None,
        };
        if has_media_type(&content_type, EVENT_STREAM) {
            let events = sse::events(response.bytes_stream(), self.request_limit.clone(), request_id);
            let deadline = tokio::time::sleep(self.wall_max);
            return Ok(StreamableHttpPostResponse::Sse(
                events.take_until(deadline).boxed(),
                session,
            ));
        }
        let Some(request_id) = request_id else {
            return Ok(StreamableHttpPostResponse::Accepted);
        };
        if response.headers().contains_key(CONTENT_ENCODING) {
            return Err(Failure::Client(HttpFailure::Compressed));
        }
        // Some servers declare no type, or plain text.
        let may_be_json = content_type.is_empty()
            || [JSON, "text/plain"]
                .iter()
                .any(|json| has_media_type(&content_type, json));
        if !may_be_json {
            return Err(Failure::UnexpectedContentType(Some(printable(&content_type))));
        }
        let body = read_body(response, MCP_MESSAGE_BYTES_MAX)
            .await?
            .ok_or(Failure::Client(HttpFailure::TooLarge))?;
        let answer = message::parse(body).and_then(|message| answer_to(&request_id, message));
        let answer = answer.map_err(|error| Failure::Client(error.into()))?;
        Ok(StreamableHttpPostResponse::Json(answer, session))
    }

    /// Returns the JSON-RPC error in the body of an error response, or else the error [`HttpFailure::Status`].
    async fn error_response(
        &self,
        response: Response,
        request: &ClientJsonRpcMessage,
        session: Option<String>,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        let status = response.status();
        let body = read_body(response, ERROR_BYTES_MAX).await?.unwrap_or_default();
        if let (Ok(ServerJsonRpcMessage::Error(mut error)), ClientJsonRpcMessage::Request(request)) =
            (message::parse(&body), request)
        {
            // A server that could not read the request answers with another id, or with none.
            error.id = Some(request.id.clone());
            return Ok(StreamableHttpPostResponse::Json(
                ServerJsonRpcMessage::Error(error),
                session,
            ));
        }
        let text = String::from_utf8_lossy(&body);
        let body_start = self.redaction.beginning(text.trim(), QUOTED_BODY_CHARS_MAX);
        Err(Failure::Client(HttpFailure::Status { status, body_start }))
    }

    /// Returns a stream of events. Its first read sends the request, and its events contain the response. So a late
    /// response does not delay other requests, and dropping the stream cancels the request.
    fn deferred_response(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        id: RequestId,
        session: Option<Arc<str>>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Events {
        let sender = self.clone();
        let response = async move {
            let response = sender.post(&uri, &message, session.as_deref(), headers);
            let response = tokio::time::timeout(sender.wall_max, response).await;
            let response = response.unwrap_or(Err(Failure::Client(HttpFailure::Timeout(sender.wall_max))));
            match response {
                Ok(StreamableHttpPostResponse::Sse(events, _)) => events,
                Ok(StreamableHttpPostResponse::Json(message, _)) => {
                    let text = serde_json::to_string(&message).unwrap_or_default();
                    stream::once(async { Ok(sse::message_event(text)) }).boxed()
                }
                Ok(_) => stream::empty().boxed(),
                Err(failure) => {
                    stream::once(async move { Ok(sse::message_event(error_message(&id, &failure))) }).boxed()
                }
            }
        };
        response.flatten_stream().boxed()
    }
}

/// Reads a stream of events up to the response, and returns the response as one message.
///
/// It is used for lists of tools, in which the protocol library must find the arguments that it sends as headers. The
/// library ignores a list in a stream that ends before the library has processed the last event.
async fn read_to_response(mut events: Events) -> StreamableHttpPostResponse {
    while let Some(Ok(event)) = events.next().await {
        let message = event.data.and_then(|data| serde_json::from_str(&data).ok());
        if let Some(response @ (ServerJsonRpcMessage::Response(_) | ServerJsonRpcMessage::Error(_))) = message {
            return StreamableHttpPostResponse::Json(response, None);
        }
    }
    // For a stream without a response, the library reports an error.
    StreamableHttpPostResponse::Sse(stream::empty().boxed(), None)
}

impl StreamableHttpClient for HttpSender {
    type Error = HttpFailure;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        _auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        if let ClientJsonRpcMessage::Request(request) = &message
            && !matches!(
                request.request,
                ClientRequest::InitializeRequest(_) | ClientRequest::DiscoverRequest(_)
            )
        {
            let id = request.id.clone();
            let is_tool_list = matches!(request.request, ClientRequest::ListToolsRequest(_));
            let events = self.deferred_response(uri, message, id, session_id, custom_headers);
            return Ok(if is_tool_list {
                read_to_response(events).await
            } else {
                StreamableHttpPostResponse::Sse(events, None)
            });
        }
        let wall_max = match message {
            ClientJsonRpcMessage::Request(_) => self.wall_max,
            _ => NOTIFICATION_WALL_MAX,
        };
        let response = self.post(&uri, &message, session_id.as_deref(), custom_headers);
        let response = tokio::time::timeout(wall_max, response).await;
        response.unwrap_or(Err(Failure::Client(HttpFailure::Timeout(wall_max))))
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session_id: Arc<str>,
        _auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), Failure> {
        // Other statuses than those that `send` checks are ignored, because the session is not used again.
        self.send(Method::DELETE, &uri, Some(&session_id), custom_headers, None)
            .await
            .map(drop)
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        _auth_header: Option<String>,
        mut custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<Events, Failure> {
        custom_headers.insert(ACCEPT, HeaderValue::from_static(EVENT_STREAM));
        if let Some(id) = last_event_id.and_then(|id| HeaderValue::try_from(id).ok()) {
            custom_headers.insert(HeaderName::from_static(LAST_EVENT_ID), id);
        }
        let response = self.send(Method::GET, &uri, session_id.as_deref(), custom_headers, None);
        let Ok(response) = tokio::time::timeout(self.wall_max, response).await else {
            // The library reopens a stream that has ended, but gives up after an error of this function.
            return Ok(stream::empty().boxed());
        };
        let response = response?;
        let status = response.status();
        if status == StatusCode::METHOD_NOT_ALLOWED {
            return Err(Failure::ServerDoesNotSupportSse);
        }
        if !status.is_success() {
            let body_start = String::new();
            return Err(Failure::Client(HttpFailure::Status { status, body_start }));
        }
        let content_type = header(&response, "content-type").unwrap_or_default();
        if !has_media_type(&content_type, EVENT_STREAM) {
            return Err(Failure::UnexpectedContentType(Some(printable(&content_type))));
        }
        Ok(sse::long_lived_events(
            response.bytes_stream(),
            self.request_limit.clone(),
            self.wall_max,
        ))
    }
}

fn with_token(request: RequestBuilder, token: Option<HeaderValue>) -> RequestBuilder {
    match token {
        Some(token) => request.header(AUTHORIZATION, token),
        None => request,
    }
}

#[cfg(test)]
mod tests;
