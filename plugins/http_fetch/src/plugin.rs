//! The WIT bindings of the tool.

use toolwit_guest::http::Request;
use url::Url;

use self::bindings::exports::toolwit_demo::http_fetch::http_fetch as wit;
use crate::content::{self, Kind};
use crate::excerpt::{LENGTH_DEFAULT, excerpt};
use crate::html::{Extent, readable};
use crate::redirect::{Response, follow};

/// The number of characters of the text of an error page that are shown.
const ERROR_CHARS: usize = 500;

#[allow(missing_docs, unreachable_pub, unsafe_code, unused_qualifications)]
mod bindings {
    toolwit_guest::bindings!();
}

bindings::export!(Plugin with_types_in bindings);

struct Plugin;

impl wit::Guest for Plugin {
    fn fetch_page(
        url: String,
        offset: Option<u32>,
        length_max: Option<u32>,
        extent: Option<wit::Extent>,
    ) -> Result<wit::Page, String> {
        let (url, response) = follow(&url, request)?;
        let declared = response.content_type.as_deref().unwrap_or("text/html");
        let content_type = content::essence(declared);
        let Some(kind) = content::kind(&content_type) else {
            return Err(format!("{url} is not text: its content type is `{content_type}`"));
        };
        let text = content::decode(&response.body, declared, kind);
        let (title, text) = match (kind, extent) {
            (Kind::Text, _) | (Kind::Html, Some(wit::Extent::Source)) => (None, text),
            (Kind::Html, Some(wit::Extent::Everything)) => read(&text, &url, Extent::Everything)?,
            (Kind::Html, Some(wit::Extent::Content) | None) => read(&text, &url, Extent::Content)?,
        };
        if response.status >= 400 {
            let start: String = text.chars().take(ERROR_CHARS).collect();
            return Err(format!("{url} returned status {}: {}", response.status, start.trim()));
        }
        let length_max = length_max.map_or(LENGTH_DEFAULT, |length| length as usize);
        let part = excerpt(&text, offset.unwrap_or_default() as usize, length_max)?;
        let count = |chars: usize| u32::try_from(chars).unwrap_or(u32::MAX);
        Ok(wit::Page {
            url: url.into(),
            content_type,
            title,
            text: part.text.to_owned(),
            total_chars: count(part.total_chars),
            next_offset: part.next_offset.map(count),
        })
    }
}

fn read(html: &str, url: &Url, extent: Extent) -> Result<(Option<String>, String), String> {
    let readable = readable(html, url, extent)?;
    Ok((readable.title, readable.markdown))
}

fn request(url: &Url) -> Result<Response, String> {
    let request =
        Request::get(url.as_str()).header("accept", "text/html, text/*;q=0.9, application/json;q=0.9, */*;q=0.1");
    let response = request.accept_all().send().map_err(|error| error.to_string())?;
    Ok(Response {
        status: response.status(),
        content_type: response.header("content-type").map(str::to_owned),
        location: response.header("location").map(str::to_owned),
        body: response.bytes().to_vec(),
    })
}
