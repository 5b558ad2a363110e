//! The WIT bindings of the tool.

use toolwit_guest::http::Request;
use url::Url;

use self::bindings::exports::toolwit_demo::http_fetch::http_fetch as wit;
use crate::excerpt::{LENGTH_DEFAULT, excerpt};
use crate::html::Extent;
use crate::page::page;
use crate::redirect::{Response, follow};

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
        let extent = match extent {
            Some(wit::Extent::Content) | None => Some(Extent::Content),
            Some(wit::Extent::Everything) => Some(Extent::Everything),
            Some(wit::Extent::Source) => None,
        };
        let page = page(&url, &response, extent)?;
        let length_max = length_max.map_or(LENGTH_DEFAULT, |length| length as usize);
        let part = excerpt(&page.text, offset.unwrap_or_default() as usize, length_max)?;
        let count = |chars: usize| u32::try_from(chars).unwrap_or(u32::MAX);
        Ok(wit::Page {
            url: url.into(),
            status: response.status,
            content_type: page.content_type,
            title: page.title,
            text: part.text.to_owned(),
            total_chars: count(part.total_chars),
            next_offset: part.next_offset.map(count),
        })
    }
}

fn request(url: &Url) -> Result<Response, String> {
    let request = Request::get(url.as_str())
        .header("accept", "text/html, text/*;q=0.9, application/json;q=0.9, */*;q=0.1")
        .header("accept-encoding", "identity");
    let response = request.accept_all().send().map_err(|error| error.to_string())?;
    Ok(Response {
        status: response.status(),
        content_type: response.header("content-type").map(str::to_owned),
        content_encoding: response.header("content-encoding").map(str::to_owned),
        location: response.header("location").map(str::to_owned),
        body: response.bytes().to_vec(),
    })
}
