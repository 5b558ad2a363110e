//! Restrictions on responses, so that the host can find secrets in them.
//!
//! A server that received a secret may return the secret in its response. The host cannot find the secret in a compressed
//! response, and finds only complete secrets, which a partial response may cut. So a request to such a server asks for a
//! plain and complete response, and a response with an encoding is refused.

use http::header::{ACCEPT_CHARSET, ACCEPT_ENCODING, CONTENT_ENCODING, IF_RANGE, RANGE, TRANSFER_ENCODING};
use http::{HeaderMap, HeaderName, HeaderValue};
use wasmtime_wasi_http::Error;

/// Removes the request headers that ask for another character set or for a part of the content, and asks for a response
/// without encoding.
pub(super) fn request_plain_response(headers: &mut HeaderMap) {
    for name in [ACCEPT_CHARSET, IF_RANGE, RANGE] {
        headers.remove(name);
    }
    headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
}

/// Refuses a response that is compressed or encoded in another way. The transfer encoding `chunked` is permitted.
///
/// # Errors
/// [`Error::HttpResponseContentCoding`] or [`Error::HttpResponseTransferCoding`], with the value of the header.
pub(super) fn require_searchable(headers: &HeaderMap) -> Result<(), Error> {
    if let Some(coding) = value_other_than(headers, &CONTENT_ENCODING, "identity") {
        return Err(Error::HttpResponseContentCoding(Some(coding)));
    }
    match value_other_than(headers, &TRANSFER_ENCODING, "chunked") {
        Some(coding) => Err(Error::HttpResponseTransferCoding(Some(coding))),
        None => Ok(()),
    }
}

/// Returns the first value of a header that is neither empty nor `allowed`, in lower case.
fn value_other_than(headers: &HeaderMap, name: &HeaderName, allowed: &str) -> Option<String> {
    let values = headers.get_all(name).iter();
    let texts = values.map(|value| String::from_utf8_lossy(value.as_bytes()).trim().to_ascii_lowercase());
    texts.into_iter().find(|text| !text.is_empty() && text != allowed)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn headers(fields: &[(&'static str, &'static str)]) -> HeaderMap {
        let field = |(name, value): &(&'static str, &'static str)| {
            (HeaderName::from_static(name), HeaderValue::from_static(value))
        };
        fields.iter().map(field).collect()
    }

    // attack: K5
    #[test]
    fn headers_that_request_encoded_or_partial_responses_are_replaced() {
        let mut request_headers = headers(&[
            ("accept", "text/plain"),
            ("accept-encoding", "gzip"),
            ("accept-charset", "utf-16"),
            ("range", "bytes=0-3"),
            ("if-range", "x"),
        ]);
        request_plain_response(&mut request_headers);
        assert_eq!(
            request_headers,
            headers(&[("accept", "text/plain"), ("accept-encoding", "identity")])
        );
    }

    // attack: K5
    #[test]
    fn an_encoded_response_is_refused() {
        for plain in [
            headers(&[]),
            headers(&[("content-encoding", "identity"), ("transfer-encoding", "Chunked")]),
        ] {
            assert!(require_searchable(&plain).is_ok(), "{plain:?}");
        }
        for encoded in [
            headers(&[("content-encoding", "gzip")]),
            headers(&[("content-encoding", "identity"), ("content-encoding", "br")]),
            headers(&[("content-encoding", "identity, gzip")]),
            headers(&[("transfer-encoding", "gzip, chunked")]),
        ] {
            assert!(require_searchable(&encoded).is_err(), "{encoded:?}");
        }
    }
}
