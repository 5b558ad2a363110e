//! The WIT bindings of the Markdown tools.

use self::bindings::exports::toolwit_demo::markdown::markdown as wit;
use crate::{convert, outline};

#[allow(missing_docs, unreachable_pub, unsafe_code, unused_qualifications)]
mod bindings {
    toolwit_guest::bindings!();
}

bindings::export!(Plugin with_types_in bindings);

struct Plugin;

impl wit::Guest for Plugin {
    fn outline(markdown: String) -> Vec<wit::Heading> {
        let headings = outline::headings(&markdown).into_iter().map(|heading| wit::Heading {
            level: heading.level,
            title: heading.title,
            line: u32::try_from(outline::line_at(&markdown, heading.start)).unwrap_or(u32::MAX),
        });
        headings.collect()
    }

    fn extract_section(markdown: String, title: String) -> Result<String, String> {
        outline::section(&markdown, &title).map(str::to_owned)
    }

    fn markdown_to_html(markdown: String, allow_html: Option<bool>) -> String {
        convert::to_html(&markdown, allow_html.unwrap_or(false))
    }

    fn markdown_to_text(markdown: String) -> String {
        convert::to_text(&markdown)
    }

    fn list_links(markdown: String) -> Vec<wit::Link> {
        let links = convert::links(&markdown).into_iter().map(|link| wit::Link {
            text: link.text,
            url: link.url,
            image: link.is_image,
        });
        links.collect()
    }
}
