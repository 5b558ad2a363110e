//! Conversion to HTML and plain text.

use pulldown_cmark::{CowStr, Event, Parser, Tag, TagEnd, html};

use crate::outline::OPTIONS;

/// Schemes of destinations that HTML keeps. A destination without a scheme is kept as well.
const SCHEMES: [&str; 4] = ["http", "https", "mailto", "tel"];

/// A link or an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// The text without markup.
    pub text: String,
    /// The destination.
    pub url: String,
    /// Whether it is an image.
    pub is_image: bool,
}

/// Converts Markdown to HTML. Without `allow_html`, HTML in the Markdown becomes text. Destinations that could run a script are
/// removed.
#[must_use]
pub fn to_html(markdown: &str, allow_html: bool) -> String {
    let events = Parser::new_ext(markdown, OPTIONS).map(|event| match event {
        Event::Html(text) | Event::InlineHtml(text) if !allow_html => Event::Text(text),
        Event::Start(tag) => Event::Start(without_unsafe_url(tag)),
        event => event,
    });
    let mut output = String::new();
    html::push_html(&mut output, events);
    output
}

/// Removes a destination that could run a script.
fn without_unsafe_url(tag: Tag<'_>) -> Tag<'_> {
    match tag {
        Tag::Link {
            link_type,
            dest_url,
            title,
            id,
        } => Tag::Link {
            link_type,
            dest_url: safe_url(dest_url),
            title,
            id,
        },
        Tag::Image {
            link_type,
            dest_url,
            title,
            id,
        } => Tag::Image {
            link_type,
            dest_url: safe_url(dest_url),
            title,
            id,
        },
        tag => tag,
    }
}

fn safe_url(url: CowStr<'_>) -> CowStr<'_> {
    // Browsers ignore control characters and spaces inside a scheme.
    let plain: String = url
        .chars()
        .filter(|character| !character.is_control() && *character != ' ')
        .collect();
    let scheme = plain
        .split(['/', '?', '#'])
        .next()
        .and_then(|first| first.split_once(':'));
    match scheme {
        Some((scheme, _)) if !SCHEMES.contains(&scheme.to_lowercase().as_str()) => CowStr::Borrowed(""),
        _ => url,
    }
}

/// Converts Markdown to plain text.
#[must_use]
pub fn to_text(markdown: &str) -> String {
    let mut text = String::new();
    let mut has_cell = false;
    for event in Parser::new_ext(markdown, OPTIONS) {
        match event {
            Event::Text(part) | Event::Code(part) | Event::InlineMath(part) | Event::DisplayMath(part) => {
                text.push_str(&part);
            }
            Event::SoftBreak => text.push(' '),
            Event::HardBreak => text.push('\n'),
            Event::TaskListMarker(is_done) => text.push_str(if is_done { "[x] " } else { "[ ] " }),
            Event::Start(Tag::Item) => {
                line_break(&mut text);
                text.push_str("- ");
            }
            Event::Start(Tag::TableCell) => {
                if has_cell {
                    text.push('\t');
                }
                has_cell = true;
            }
            Event::End(TagEnd::TableRow | TagEnd::TableHead) => {
                has_cell = false;
                line_break(&mut text);
            }
            Event::End(TagEnd::Item) => line_break(&mut text),
            Event::End(
                TagEnd::Paragraph | TagEnd::Heading(_) | TagEnd::CodeBlock | TagEnd::List(_) | TagEnd::Table,
            ) => {
                line_break(&mut text);
                if !text.ends_with("\n\n") {
                    text.push('\n');
                }
            }
            _ => {}
        }
    }
    text.truncate(text.trim_end().len());
    text
}

/// Ends the line, unless the text is empty or a line has just ended.
fn line_break(text: &mut String) {
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
}

/// Lists the links and images.
#[must_use]
pub fn links(markdown: &str) -> Vec<Link> {
    let mut links: Vec<Link> = Vec::new();
    let mut open: Vec<usize> = Vec::new();
    for event in Parser::new_ext(markdown, OPTIONS) {
        match event {
            Event::Start(Tag::Link { dest_url, .. }) => {
                open.push(links.len());
                links.push(link(&dest_url, false));
            }
            Event::Start(Tag::Image { dest_url, .. }) => {
                open.push(links.len());
                links.push(link(&dest_url, true));
            }
            Event::End(TagEnd::Link | TagEnd::Image) => {
                open.pop();
            }
            Event::Text(text) | Event::Code(text) => {
                for index in &open {
                    links[*index].text.push_str(&text);
                }
            }
            _ => {}
        }
    }
    links
}

fn link(url: &str, is_image: bool) -> Link {
    Link {
        text: String::new(),
        url: url.to_owned(),
        is_image,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn html_is_escaped_and_scripts_are_removed_unless_html_is_allowed() {
        assert_eq!(to_html("a *b*", false), "<p>a <em>b</em></p>\n");
        assert!(!to_html("<script>x</script>", false).contains("<script>"));
        assert!(to_html("<b>x</b>", true).contains("<b>"));
        for url in ["javascript:x", "JAVASCRIPT:x", "java\tscript:x", "data:text/html,x"] {
            let html = to_html(&format!("[a](<{url}>)"), false);
            assert!(html.contains("href=\"\""), "{html}");
        }
        for url in ["https://a.example/b:c", "b.md#c:d", "mailto:a@b.example"] {
            assert!(to_html(&format!("[a]({url})"), false).contains(url), "{url}");
        }
    }

    #[test]
    fn text_has_no_markup() {
        let text = to_text("# A\n\nb **c** `d`\ne\n\n- [x] f\n- g\n  - h\n\n|i|j|\n|-|-|\n|k|l|\n");
        assert_eq!(text, "A\n\nb c d e\n\n- [x] f\n- g\n- h\n\ni\tj\nk\tl");
    }

    #[test]
    fn links_and_images_are_listed_with_their_texts() {
        let found = links("[a *b*](x) ![c](y) [![d](z)](w) <https://e.example>");
        let found: Vec<_> = found
            .iter()
            .map(|link| (link.text.as_str(), link.url.as_str(), link.is_image))
            .collect();
        let expected = [
            ("a b", "x", false),
            ("c", "y", true),
            ("d", "w", false),
            ("d", "z", true),
            ("https://e.example", "https://e.example", false),
        ];
        assert_eq!(found, expected);
    }
}
