//! A request through WASI 0.2.

use wasip2::http::outgoing_handler::handle;
use wasip2::http::types::{Fields, OutgoingRequest, Scheme};
use wasip2::io::streams::StreamError;

/// The schema of the arguments.
pub(crate) const SCHEMA: &str =
    r#"{"type": "object", "properties": {"authority": {"type": "string", "maxLength": 23}}, "required": ["authority"]}"#;

/// Arguments in CBOR are these bytes, one with the length of the text, and the text.
const AUTHORITY: &[u8] = b"\xa1\x69authority";

/// Returns the page of a server.
pub(crate) fn fetch(arguments: &[u8]) -> Result<String, String> {
    let text = arguments.strip_prefix(AUTHORITY).and_then(|text| text.get(1..));
    let authority = String::from_utf8_lossy(text.unwrap_or_default());
    let request = OutgoingRequest::new(Fields::new());
    request.set_scheme(Some(&Scheme::Http)).map_err(|()| "scheme refused")?;
    request.set_authority(Some(&authority)).map_err(|()| "authority refused")?;
    request.set_path_with_query(Some("/")).map_err(|()| "path refused")?;
    let response = handle(request, None).map_err(|error| error.to_string())?;
    response.subscribe().block();
    let response = response.get().ok_or("no response")?.map_err(|()| "taken")?.map_err(|error| error.to_string())?;
    let body = response.consume().map_err(|()| "no body")?;
    let stream = body.stream().map_err(|()| "no stream")?;
    let mut bytes = Vec::new();
    loop {
        match stream.blocking_read(64 << 10) {
            Ok(piece) => bytes.extend(piece),
            Err(StreamError::Closed) => return Ok(String::from_utf8_lossy(&bytes).into_owned()),
            Err(error) => return Err(format!("body: {error}")),
        }
    }
}
