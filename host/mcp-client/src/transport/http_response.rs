//! The responses of a server over HTTP.

use reqwest::Response;
use rmcp::model::{RequestId, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_client::StreamableHttpError;

use super::http_failure::{HttpFailure, request_failed};
use super::message::MessageError;

/// Reads the body of a response. Returns `None` if the body is larger than `bytes_max`.
pub(super) async fn read_body(
    mut response: Response,
    bytes_max: usize,
) -> Result<Option<Vec<u8>>, StreamableHttpError<HttpFailure>> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(request_failed)? {
        if body.len() + chunk.len() > bytes_max {
            return Ok(None);
        }
        body.extend_from_slice(&chunk);
    }
    Ok(Some(body))
}

/// Returns a header of a response.
pub(super) fn header(response: &Response, name: &str) -> Option<String> {
    let value = response.headers().get(name)?;
    value.to_str().ok().map(str::to_owned)
}

/// Returns whether the media type of a response is `media_type`, whatever its parameters are.
pub(super) fn has_media_type(content_type: &str, media_type: &str) -> bool {
    let declared = content_type.split(';').next().unwrap_or_default();
    declared.trim().eq_ignore_ascii_case(media_type)
}

/// Returns the message of a response as the answer to the request of the response. The id of an error is ignored: a server that could
/// not read the request cannot know its id.
///
/// # Errors
/// [`MessageError::NotAMessage`] if the message is not an answer, or answers another request.
pub(super) fn answer_to(id: &RequestId, message: ServerJsonRpcMessage) -> Result<ServerJsonRpcMessage, MessageError> {
    match message {
        ServerJsonRpcMessage::Error(mut error) => {
            error.id = Some(id.clone());
            Ok(ServerJsonRpcMessage::Error(error))
        }
        ServerJsonRpcMessage::Response(mut response) if response.id.to_string() == id.to_string() => {
            response.id = id.clone();
            Ok(ServerJsonRpcMessage::Response(response))
        }
        ServerJsonRpcMessage::Response(_) => Err(MessageError::NotAMessage("it answers another request".to_owned())),
        _ => Err(MessageError::NotAMessage("it is not an answer".to_owned())),
    }
}
