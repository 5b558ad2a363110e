//! The kind of a response body, and its text.

use encoding_rs::{Encoding, UTF_8};

/// The number of bytes at the start of an HTML page in which the page can declare its character set.
const DECLARATION_BYTES: usize = 1024;

/// A kind of content that can be read as text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// HTML.
    Html,
    /// Any other text, such as JSON.
    Text,
}

/// Returns the content type in lower case, without its parameters.
#[must_use]
pub fn essence(content_type: &str) -> String {
    let essence = content_type.split(';').next().unwrap_or_default();
    essence.trim().to_ascii_lowercase()
}

/// Returns the kind of a content type. `None` for content that is not text.
#[must_use]
pub fn kind(essence: &str) -> Option<Kind> {
    match essence {
        "text/html" | "application/xhtml+xml" => Some(Kind::Html),
        "application/json" | "application/xml" | "application/javascript" | "application/yaml" => Some(Kind::Text),
        other if other.starts_with("text/") || other.ends_with("+json") || other.ends_with("+xml") => Some(Kind::Text),
        _ => None,
    }
}

/// Returns the compression of a body that was not asked for: the one that the header `content-encoding` names, or gzip by its first
/// bytes. `None` for a body without compression.
#[must_use]
pub fn compression(content_encoding: Option<&str>, body: &[u8]) -> Option<String> {
    const GZIP_START: &[u8] = b"\x1f\x8b";
    let declared = content_encoding.unwrap_or_default().trim().to_ascii_lowercase();
    if !declared.is_empty() && declared != "identity" {
        return Some(declared.chars().filter(|c| !c.is_control()).take(20).collect());
    }
    body.starts_with(GZIP_START).then(|| "gzip".to_owned())
}

/// Guesses the content type of a body that is UTF-8 text. `None` for other content.
#[must_use]
pub fn guess(body: &[u8]) -> Option<&'static str> {
    let text = std::str::from_utf8(body).ok().filter(|text| !text.contains('\0'))?;
    let start = text.trim_start_matches('\u{feff}').trim_start();
    Some(if start.starts_with("<?xml") {
        "application/xml"
    } else if start.starts_with('<') {
        "text/html"
    } else {
        "text/plain"
    })
}

/// Decodes a body by its byte order mark, the `charset` of its content type, or the declaration of an HTML page; else as UTF-8.
/// Invalid bytes become U+FFFD, and characters are removed as by [`keep_visible`].
#[must_use]
pub fn decode(body: &[u8], content_type: &str, kind: Kind) -> String {
    let declared_charset = parameter(content_type, "charset").or_else(|| match kind {
        Kind::Html => charset_in_html(body),
        Kind::Text => None,
    });
    let encoding = declared_charset
        .and_then(|label| Encoding::for_label(label.as_bytes()))
        .unwrap_or(UTF_8);
    let (text, _, _) = encoding.decode(body);
    let text = text.replace("\r\n", "\n");
    keep_visible(&text)
}

/// Removes control characters other than tabs and line breaks, and characters that change the direction of text.
#[must_use]
pub fn keep_visible(text: &str) -> String {
    let is_visible = |c: &char| match c {
        '\t' | '\n' => true,
        '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => false,
        c => !c.is_control(),
    };
    text.chars().filter(is_visible).collect()
}

/// Returns a parameter of a content type.
fn parameter(content_type: &str, name: &str) -> Option<String> {
    let parameters = content_type.split(';').skip(1);
    let mut parameters = parameters.filter_map(|parameter| parameter.split_once('='));
    let (_, value) = parameters.find(|(key, _)| key.trim().eq_ignore_ascii_case(name))?;
    Some(value.trim().trim_matches('"').to_owned())
}

/// Returns the character set that a page declares: `<meta charset="…">`, or the same in the content of a `<meta http-equiv>`.
fn charset_in_html(body: &[u8]) -> Option<String> {
    let start = String::from_utf8_lossy(&body[..body.len().min(DECLARATION_BYTES)]).to_ascii_lowercase();
    let (_, rest) = start.split_once("charset")?;
    let value = rest.trim_start().strip_prefix('=')?;
    let value = value.trim_start().trim_start_matches(['"', '\'']);
    let end = value.find(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '-' | '_'));
    Some(value[..end.unwrap_or(value.len())].to_owned())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_told_from_other_content() {
        assert_eq!(kind(&essence("Text/HTML; charset=utf-8")), Some(Kind::Html));
        for text in [
            "text/plain",
            "application/problem+json",
            "image/svg+xml",
            "text/csv; header=present",
        ] {
            assert_eq!(kind(&essence(text)), Some(Kind::Text), "{text}");
        }
        for other in ["image/png", "application/pdf", "application/octet-stream", ""] {
            assert_eq!(kind(&essence(other)), None, "{other}");
        }
    }

    #[test]
    fn character_set_is_that_of_the_header_then_of_the_page() {
        let latin = b"caf\xe9";
        assert_eq!(decode(latin, "text/plain; charset=\"ISO-8859-1\"", Kind::Text), "café");
        assert_eq!(decode(latin, "text/plain", Kind::Text), "caf\u{fffd}");
        let page = b"<meta charset='windows-1252'>caf\xe9";
        assert!(decode(page, "text/html", Kind::Html).ends_with("café"));
        let old = b"<meta http-equiv=Content-Type content=\"text/html; charset=shift_jis\">\x93\xfa";
        assert!(decode(old, "text/html", Kind::Html).ends_with('日'));
        assert!(
            decode(
                "<meta charset=latin1>é".as_bytes(),
                "text/html;charset=utf-8",
                Kind::Html
            )
            .ends_with('é')
        );
        assert_eq!(
            decode(b"\xff\xfea\0", "text/plain", Kind::Text),
            "a",
            "a byte order mark decides"
        );
        assert_eq!(decode(b"x", "text/plain; charset=nonsense", Kind::Text), "x");
    }

    #[test]
    fn control_characters_are_removed() {
        assert_eq!(decode(b"a\x1b[2Jb\r\n\tc\0", "text/plain", Kind::Text), "a[2Jb\n\tc");
    }
}
