//! Requesting a URL, and following its redirects.

use url::Url;

/// Maximum number of redirects.
pub const REDIRECTS_MAX: usize = 5;

/// A response, as far as a page needs it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    /// The status.
    pub status: u16,
    /// The header `content-type`.
    pub content_type: Option<String>,
    /// The header `content-encoding`.
    pub content_encoding: Option<String>,
    /// The header `location`.
    pub location: Option<String>,
    /// The body.
    pub body: Vec<u8>,
}

/// Requests a URL, and follows redirects. Returns the last URL and its response.
///
/// # Errors
/// If a URL is invalid, a request fails, or there are more than [`REDIRECTS_MAX`] redirects.
pub fn follow(url: &str, mut request: impl FnMut(&Url) -> Result<Response, String>) -> Result<(Url, Response), String> {
    let mut url = check_url(Url::parse(url), url)?;
    for _ in 0..=REDIRECTS_MAX {
        let response = request(&url)?;
        let location = match response.status {
            301 | 302 | 303 | 307 | 308 => response.location.as_deref(),
            _ => None,
        };
        let Some(location) = location else {
            return Ok((url, response));
        };
        let next = check_url(url.join(location), location)?;
        if url.scheme() == "https" && next.scheme() == "http" {
            return Err(format!(
                "{url} redirects to the unencrypted URL {next}; fetch that, if it is intended"
            ));
        }
        url = next;
    }
    Err(format!(
        "there are more than {REDIRECTS_MAX} redirects; the last one leads to {url}"
    ))
}

/// Checks a parsed URL, and removes its fragment.
fn check_url(url: Result<Url, url::ParseError>, text: &str) -> Result<Url, String> {
    let shown: String = text.chars().take(200).collect();
    let mut url = url.map_err(|error| format!("`{shown}` is not a URL: {error}"))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(format!("`{shown}` is not an http or https URL"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("the URL contains a user name or a password, which is not supported".to_owned());
    }
    url.set_fragment(None);
    Ok(url)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// Answers the requests for a chain of URLs.
    fn chain<'a>(chain: &'a [(&'a str, &'a str)]) -> impl FnMut(&Url) -> Result<Response, String> + 'a {
        move |url| {
            let next = chain.iter().find(|(from, _)| *from == url.as_str());
            Ok(Response {
                status: if next.is_some() { 302 } else { 200 },
                content_type: None,
                content_encoding: None,
                location: next.map(|(_, to)| (*to).to_owned()),
                body: url.as_str().as_bytes().to_vec(),
            })
        }
    }

    #[test]
    fn redirects_are_followed_relative_to_their_page() {
        let steps = [
            ("http://a.test/x/1", "../y/2?q=1"),
            ("http://a.test/y/2?q=1", "https://b.test/#part"),
        ];
        let (url, response) = follow("http://a.test/x/1#top", chain(&steps)).unwrap();
        assert_eq!(url.as_str(), "https://b.test/");
        assert_eq!(response.body, b"https://b.test/");
    }

    #[test]
    fn circle_of_redirects_ends() {
        let mut requests = 0;
        let mut answer = chain(&[("http://a.test/", "/")]);
        let error = follow("http://a.test/", |url| {
            requests += 1;
            answer(url)
        });
        assert!(error.unwrap_err().contains("more than 5 redirects"));
        assert_eq!(requests, REDIRECTS_MAX + 1);
    }

    #[test]
    fn redirects_to_other_schemes_are_not_followed() {
        for (to, reason) in [
            ("file:///etc/passwd", "not an http"),
            ("http://b.test/", "unencrypted"),
            ("https://user:pass@b.test/", "password"),
            ("https://", "not a URL"),
        ] {
            let error = follow("https://a.test/", chain(&[("https://a.test/", to)])).unwrap_err();
            assert!(error.contains(reason), "{to}: {error}");
        }
    }

    #[test]
    fn text_that_is_no_url_is_refused_before_a_request() {
        for url in ["", "example.com", "javascript:alert(1)", "http://", "http://[::1"] {
            let error = follow(url, |url| Err(format!("{url} is requested")));
            assert!(!error.unwrap_err().contains("is requested"), "{url}");
        }
    }
}
