//! A page: its status, its content type and its readable text.

use url::Url;

use crate::content::{self, Kind};
use crate::html::{Extent, readable};
use crate::redirect::Response;

/// The number of characters of the text of an error page that are shown.
const ERROR_CHARS_MAX: usize = 500;

/// The number of characters of a content type that are shown.
const TYPE_CHARS_MAX: usize = 100;

/// A page that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// The content type, without its parameters.
    pub content_type: String,
    /// The title of an HTML page.
    pub title: Option<String>,
    /// The readable text.
    pub text: String,
}

/// Reads a response. Without an extent, the text of an HTML page is its source.
///
/// # Errors
/// If the status is that of an error, the content is not text, or the page cannot be parsed. For the status of an error, the
/// error contains the status, and the beginning of the text if the content can be read as text.
pub fn page(url: &Url, response: &Response, extent: Option<Extent>) -> Result<Page, String> {
    let page = read_content(url, response, extent);
    if response.status < 400 {
        return page;
    }
    let start: String = match &page {
        Ok(page) => page.text.trim().chars().take(ERROR_CHARS_MAX).collect(),
        Err(_) => String::new(),
    };
    let status = response.status;
    Err(if start.is_empty() {
        format!("{url} returned status {status}, without a readable text")
    } else {
        format!("{url} returned status {status}: {start}")
    })
}

fn read_content(url: &Url, response: &Response, extent: Option<Extent>) -> Result<Page, String> {
    if let Some(encoding) = content::compression(response.content_encoding.as_deref(), &response.body) {
        return Err(format!(
            "the server of {url} sent a compressed body ({encoding}), although none was accepted"
        ));
    }
    let declared_type = response
        .content_type
        .as_deref()
        .filter(|declared_type| !content::essence(declared_type).is_empty());
    let content_type = match declared_type {
        Some(declared_type) => content::essence(declared_type),
        None => content::guess(&response.body)
            .ok_or_else(|| format!("{url} declares no content type, and its content is not text"))?
            .to_owned(),
    };
    let Some(kind) = content::kind(&content_type) else {
        let shown: String = content_type.chars().take(TYPE_CHARS_MAX).collect();
        return Err(format!("{url} is not text: its content type is `{shown}`"));
    };
    let text = content::decode(&response.body, declared_type.unwrap_or(&content_type), kind);
    let (title, text) = match (kind, extent) {
        (Kind::Html, Some(extent)) => {
            let readable = readable(&text, url, extent)?;
            (readable.title, readable.markdown)
        }
        (Kind::Html | Kind::Text, _) => (None, text),
    };
    Ok(Page {
        content_type,
        title,
        text,
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn read(status: u16, content_type: Option<&str>, body: &[u8]) -> Result<Page, String> {
        let response = Response {
            status,
            content_type: content_type.map(str::to_owned),
            content_encoding: None,
            location: None,
            body: body.to_vec(),
        };
        page(&Url::parse("http://a.test/").unwrap(), &response, Some(Extent::Content))
    }

    #[test]
    fn status_is_judged_before_the_content_type() {
        for (content_type, body, expected) in [
            (
                Some("text/html"),
                "<h1>Gone</h1>",
                "http://a.test/ returned status 404: # Gone",
            ),
            (Some("text/plain"), "gone", "http://a.test/ returned status 404: gone"),
            (Some(""), "gone", "http://a.test/ returned status 404: gone"),
            (None, "", "http://a.test/ returned status 404, without a readable text"),
            (
                Some("image/png"),
                "PNG",
                "http://a.test/ returned status 404, without a readable text",
            ),
            (
                Some("nonsense"),
                "x",
                "http://a.test/ returned status 404, without a readable text",
            ),
        ] {
            assert_eq!(read(404, content_type, body.as_bytes()).unwrap_err(), expected);
        }
        let long = read(500, Some("text/plain"), "x".repeat(10_000).as_bytes()).unwrap_err();
        assert!(long.len() < 600, "{}", long.len());
    }

    #[test]
    fn a_compressed_body_is_an_error_and_an_identical_one_is_read() {
        let read = |content_encoding: Option<&str>, body: &[u8]| {
            let response = Response {
                status: 200,
                content_type: Some("text/plain".to_owned()),
                content_encoding: content_encoding.map(str::to_owned),
                location: None,
                body: body.to_vec(),
            };
            page(&Url::parse("http://a.test/").unwrap(), &response, None)
        };
        for (encoding, body) in [
            (Some("gzip"), &b"\x1f\x8b\x08"[..]),
            (Some("br"), b"x"),
            (None, b"\x1f\x8b\x08"),
        ] {
            let error = read(encoding, body).unwrap_err();
            assert!(error.contains("sent a compressed body"), "{error}");
        }
        for encoding in [None, Some(""), Some("identity")] {
            assert_eq!(read(encoding, b"text").unwrap().text, "text");
        }
    }

    #[test]
    fn missing_content_type_is_guessed() {
        for declared_type in [None, Some(""), Some(" ; charset=utf-8")] {
            let html = read(200, declared_type, b"\n<!doctype html><title>T</title><p>a</p>").unwrap();
            assert_eq!(
                (html.content_type.as_str(), html.title.as_deref(), html.text.as_str()),
                ("text/html", Some("T"), "a")
            );
            let text = read(200, declared_type, "plain ü < 2".as_bytes()).unwrap();
            assert_eq!(
                (text.content_type.as_str(), text.text.as_str()),
                ("text/plain", "plain ü < 2")
            );
            assert_eq!(
                read(200, declared_type, b"<?xml version='1.0'?><a/>")
                    .unwrap()
                    .content_type,
                "application/xml"
            );
            let error = read(200, declared_type, b"\x89PNG\0\0").unwrap_err();
            assert_eq!(
                error,
                "http://a.test/ declares no content type, and its content is not text"
            );
        }
        assert!(
            read(200, Some("image/png"), b"text")
                .unwrap_err()
                .ends_with("is not text: its content type is `image/png`")
        );
    }
}
