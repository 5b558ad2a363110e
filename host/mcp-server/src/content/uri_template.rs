//! URI templates, such as `test://notes/{name}`.

use std::collections::BTreeMap;

/// The values of the variables of a template, or of the arguments of a prompt, by name.
pub(super) type Variables = BTreeMap<String, String>;

/// Maximum length of the value of a variable in a URI, in bytes.
const VALUE_BYTES_MAX: usize = 1_024;

/// A URI template with simple variables (RFC 6570, level 1). A variable matches a path segment, or a part of a path
/// segment.
#[derive(Debug)]
pub(super) struct UriTemplate {
    text: String,
    parts: Vec<TemplatePart>,
}

#[derive(Debug)]
enum TemplatePart {
    Literal(String),
    Variable(String),
}

impl UriTemplate {
    /// Parses a template.
    ///
    /// # Errors
    /// If a `{` has no `}`, a `}` after the last variable has no `{`, a name is empty, repeated or has characters other
    /// than ASCII letters, digits and `_`, or there is no text between two variables.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let mut parts: Vec<TemplatePart> = Vec::new();
        let mut remaining = text;
        while let Some(open) = remaining.find('{') {
            if remaining[..open].contains('}') {
                return Err("`}` has no `{`".to_owned());
            }
            if open > 0 {
                parts.push(TemplatePart::Literal(remaining[..open].to_owned()));
            } else if matches!(parts.last(), Some(TemplatePart::Variable(_))) {
                return Err("two variables need text between them".to_owned());
            }
            let close = remaining[open..].find('}').ok_or("`{` has no `}`")? + open;
            let name = &remaining[open + 1..close];
            if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
                return Err(format!("`{{{name}}}` is not the name of a variable"));
            }
            if parts
                .iter()
                .any(|part| matches!(part, TemplatePart::Variable(earlier) if earlier == name))
            {
                return Err(format!("the variable `{name}` is repeated"));
            }
            parts.push(TemplatePart::Variable(name.to_owned()));
            remaining = &remaining[close + 1..];
        }
        if remaining.contains('}') {
            return Err("`}` has no `{`".to_owned());
        }
        if !remaining.is_empty() {
            parts.push(TemplatePart::Literal(remaining.to_owned()));
        }
        Ok(Self {
            text: text.to_owned(),
            parts,
        })
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn variables(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| match part {
            TemplatePart::Variable(name) => Some(name.as_str()),
            TemplatePart::Literal(_) => None,
        })
    }

    /// Returns the percent-decoded values of the variables in a URI. `None` if the URI does not match, or a value is empty,
    /// longer than [`VALUE_BYTES_MAX`] or malformed.
    pub(super) fn match_uri(&self, uri: &str) -> Option<Variables> {
        let mut values = Variables::new();
        let mut remaining = uri;
        let mut parts = self.parts.iter().peekable();
        while let Some(part) = parts.next() {
            match part {
                TemplatePart::Literal(literal) => remaining = remaining.strip_prefix(literal.as_str())?,
                TemplatePart::Variable(name) => {
                    let end = match parts.peek() {
                        Some(TemplatePart::Literal(next)) => remaining.find(next.as_str())?,
                        _ => remaining.len(),
                    };
                    let (value, after) = remaining.split_at(end);
                    if value.is_empty() || value.len() > VALUE_BYTES_MAX || value.contains(['/', '?', '#']) {
                        return None;
                    }
                    values.insert(name.clone(), percent_decoded(value)?);
                    remaining = after;
                }
            }
        }
        remaining.is_empty().then_some(values)
    }
}

/// Decodes percent-encoded text. `None` if an escape is malformed, or the decoded bytes are not UTF-8.
fn percent_decoded(value: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(value.len());
    let mut undecoded = value.bytes();
    while let Some(byte) = undecoded.next() {
        if byte == b'%' {
            let mut next_digit = || char::from(undecoded.next()?).to_digit(16);
            let byte = next_digit()? * 16 + next_digit()?;
            bytes.push(u8::try_from(byte).ok()?);
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn matched(template: &str, uri: &str) -> Option<Vec<(String, String)>> {
        let template = UriTemplate::parse(template).unwrap();
        Some(template.match_uri(uri)?.into_iter().collect())
    }

    #[test]
    fn variables_match_one_segment_each() {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(
            matched("test://t/{id}/data", "test://t/123/data"),
            Some(vec![pair("id", "123")])
        );
        assert_eq!(
            matched("x://{a}-{b}", "x://1-2%20c"),
            Some(vec![pair("a", "1"), pair("b", "2 c")])
        );
        for uri in [
            "test://t//data",
            "test://t/1/2/data",
            "test://t/1",
            "test://t/%zz/data",
            "test://t/%ff/data",
            "test://t/%+f/data",
        ] {
            assert_eq!(matched("test://t/{id}/data", uri), None, "{uri}");
        }
    }

    #[test]
    fn malformed_templates_are_refused() {
        for text in [
            "x://{",
            "x://}",
            "x://}{a}",
            "x://{}",
            "x://{a b}",
            "x://{a}{b}",
            "x://{a}/{a}",
        ] {
            assert!(UriTemplate::parse(text).is_err(), "{text}");
        }
    }
}
