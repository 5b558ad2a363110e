//! Parsing of URLs as far as a request needs it. The host checks the destination.

use std::fmt::Write;

use super::HttpError;

/// The parts of a URL that a request needs.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Url {
    pub(super) is_https: bool,
    /// The host, with its port if it has one.
    pub(super) authority: String,
    /// The path with the query.
    pub(super) path: String,
}

impl Url {
    /// Parses a URL and adds parameters to its query.
    pub(super) fn parse(url: &str, query: &[(String, String)]) -> Result<Self, HttpError> {
        let invalid = |reason| Err(HttpError::Url { reason });
        if url.chars().any(|c| c.is_whitespace() || c.is_control()) {
            return invalid("it has spaces or control characters; add parameters with `query`, which encodes them");
        }
        let Some((scheme, rest)) = url.split_once("://") else {
            return invalid("it does not start with `https://` or `http://`");
        };
        let is_https = match scheme.to_ascii_lowercase().as_str() {
            "https" => true,
            "http" => false,
            _ => return invalid("its scheme is not `https` or `http`"),
        };
        let rest = rest.split('#').next().unwrap_or_default();
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        if authority.is_empty() {
            return invalid("it has no host");
        }
        if authority.contains('@') {
            return invalid("it contains a user name; send credentials in a header");
        }
        let mut path = if path.starts_with('/') {
            path.to_owned()
        } else {
            format!("/{path}")
        };
        for (name, value) in query {
            path.push(if path.contains('?') { '&' } else { '?' });
            encode(name, &mut path);
            path.push('=');
            encode(value, &mut path);
        }
        Ok(Self {
            is_https,
            authority: authority.to_owned(),
            path,
        })
    }
}

/// Appends text with percent-encoding of everything except unreserved characters.
fn encode(text: &str, output: &mut String) {
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            output.push(char::from(byte));
        } else {
            // Writing to a string does not fail.
            let _ = write!(output, "%{byte:02X}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(url: &str) -> Option<(bool, String, String)> {
        let url = Url::parse(url, &[]).ok()?;
        Some((url.is_https, url.authority, url.path))
    }

    #[test]
    fn url_is_split_into_scheme_authority_and_path() {
        let url = |is_https, authority: &str, path: &str| Some((is_https, authority.to_owned(), path.to_owned()));
        assert_eq!(parse("https://a.example"), url(true, "a.example", "/"));
        assert_eq!(
            parse("http://a.example:8080/b?c=d#e"),
            url(false, "a.example:8080", "/b?c=d")
        );
        assert_eq!(parse("HTTPS://[::1]:1?x"), url(true, "[::1]:1", "/?x"));
    }

    #[test]
    fn invalid_urls_are_refused() {
        for invalid in [
            "",
            "a.example",
            "ftp://a",
            "https://",
            "https:///a",
            "https://u:p@a/",
            "https://a/b c",
            "https://a/\r\nb",
        ] {
            assert_eq!(parse(invalid), None, "{invalid}");
        }
    }

    #[test]
    fn parameters_are_encoded() {
        let query = [("q".to_owned(), "a&b=ü".to_owned()), ("n".to_owned(), "1".to_owned())];
        let path = |url| Url::parse(url, &query).map(|url| url.path).ok();
        assert_eq!(path("https://a").as_deref(), Some("/?q=a%26b%3D%C3%BC&n=1"));
        assert_eq!(path("https://a/s?x=y").as_deref(), Some("/s?x=y&q=a%26b%3D%C3%BC&n=1"));
    }
}
