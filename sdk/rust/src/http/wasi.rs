//! The exchange of a request and its response with `wasi:http`.

use wasip2::http::outgoing_handler::handle;
use wasip2::http::types::{
    ErrorCode, Fields, IncomingBody, IncomingResponse, Method, OutgoingBody, OutgoingRequest, RequestOptions, Scheme,
};
use wasip2::io::streams::StreamError;

use super::{HttpError, Request, Response, url::Url};

/// The maximum number of bytes that one call of a stream writes.
const WRITE_BYTES_MAX: usize = 4096;

/// The maximum number of bytes that one call of a stream reads.
const READ_BYTES_MAX: u64 = 64 << 10;

/// Sends a request and reads its response.
pub(super) fn exchange(request: &Request, url: &Url) -> Result<Response, HttpError> {
    let failed = |message: String| HttpError::Failed {
        host: url.authority.clone(),
        message,
    };
    let outgoing = outgoing_request(request, url)?;
    let body = request.body.as_deref().map(|bytes| (outgoing.body(), bytes));
    let future = handle(outgoing, request_options(request)).map_err(|error| failed(reason(&error)))?;
    if let Some((body, bytes)) = body {
        let body = body.map_err(|()| failed("the body is not available".to_owned()))?;
        write_body(body, bytes).map_err(&failed)?;
    }
    future.subscribe().block();
    let response = match future.get() {
        Some(Ok(Ok(response))) => response,
        Some(Ok(Err(error))) => return Err(failed(reason(&error))),
        Some(Err(())) | None => return Err(failed("there is no response".to_owned())),
    };
    let status = response.status();
    let headers = response.headers().entries();
    let body = read_body(&response, request.body_bytes_max, &failed)?;
    Ok(Response { status, headers, body })
}

fn outgoing_request(request: &Request, url: &Url) -> Result<OutgoingRequest, HttpError> {
    let invalid = |name: &str| HttpError::Header { name: name.to_owned() };
    let headers = Fields::new();
    for (name, value) in &request.headers {
        headers.append(name, value.as_bytes()).map_err(|_| invalid(name))?;
    }
    if let Some(body) = &request.body {
        let length = body.len().to_string();
        headers
            .set("content-length", &[length.into_bytes()])
            .map_err(|_| invalid("content-length"))?;
    }
    let outgoing = OutgoingRequest::new(headers);
    let scheme = if url.is_https { Scheme::Https } else { Scheme::Http };
    let method = wasi_method(&request.method);
    outgoing.set_method(&method).map_err(|()| invalid(&request.method))?;
    let refused = |reason| move |()| HttpError::Url { reason };
    outgoing
        .set_scheme(Some(&scheme))
        .map_err(refused("the scheme is not accepted"))?;
    outgoing
        .set_authority(Some(&url.authority))
        .map_err(refused("the host is not a host name or address"))?;
    outgoing
        .set_path_with_query(Some(&url.path))
        .map_err(refused("the path has characters that must be encoded"))?;
    Ok(outgoing)
}

fn wasi_method(name: &str) -> Method {
    match name.to_ascii_uppercase().as_str() {
        "GET" => Method::Get,
        "HEAD" => Method::Head,
        "POST" => Method::Post,
        "PUT" => Method::Put,
        "PATCH" => Method::Patch,
        "DELETE" => Method::Delete,
        "OPTIONS" => Method::Options,
        _ => Method::Other(name.to_owned()),
    }
}

fn request_options(request: &Request) -> Option<RequestOptions> {
    let timeout = u64::try_from(request.timeout?.as_nanos()).ok()?;
    let options = RequestOptions::new();
    // A host that does not support one of these options has its own limits.
    let _ = options.set_connect_timeout(Some(timeout));
    let _ = options.set_first_byte_timeout(Some(timeout));
    let _ = options.set_between_bytes_timeout(Some(timeout));
    Some(options)
}

fn write_body(body: OutgoingBody, bytes: &[u8]) -> Result<(), String> {
    let stream = body.write().map_err(|()| "the body is not available".to_owned())?;
    for part in bytes.chunks(WRITE_BYTES_MAX) {
        stream
            .blocking_write_and_flush(part)
            .map_err(|error| error.to_string())?;
    }
    drop(stream);
    OutgoingBody::finish(body, None).map_err(|error| reason(&error))
}

fn read_body(
    response: &IncomingResponse,
    limit: usize,
    failed: &impl Fn(String) -> HttpError,
) -> Result<Vec<u8>, HttpError> {
    let unavailable = |()| failed("the body is not available".to_owned());
    let body: IncomingBody = response.consume().map_err(unavailable)?;
    let stream = body.stream().map_err(unavailable)?;
    let mut bytes = Vec::new();
    loop {
        match stream.blocking_read(READ_BYTES_MAX) {
            Ok(part) if bytes.len() + part.len() > limit => return Err(HttpError::TooLarge { limit }),
            Ok(part) => bytes.extend_from_slice(&part),
            Err(StreamError::Closed) => return Ok(bytes),
            Err(StreamError::LastOperationFailed(error)) => return Err(failed(error.to_debug_string())),
        }
    }
}

/// Returns the reason of an error, for the message of [`HttpError::Failed`].
fn reason(error: &ErrorCode) -> String {
    match error {
        ErrorCode::HttpRequestDenied => "it is not granted".to_owned(),
        ErrorCode::InternalError(Some(message)) => message.clone(),
        error => error.to_string(),
    }
}
