//! Headings and sections.

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

/// The extensions of CommonMark that are read.
pub(crate) const OPTIONS: Options = Options::ENABLE_TABLES
    .union(Options::ENABLE_TASKLISTS)
    .union(Options::ENABLE_FOOTNOTES)
    .union(Options::ENABLE_STRIKETHROUGH);

/// A heading.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Heading {
    /// The level, from 1 to 6.
    pub level: u8,
    /// The text without markup.
    pub title: String,
    /// The position of the heading in bytes.
    pub start: usize,
}

/// Lists the headings.
#[must_use]
pub fn headings(markdown: &str) -> Vec<Heading> {
    let mut headings: Vec<Heading> = Vec::new();
    let mut is_in_heading = false;
    for (event, range) in Parser::new_ext(markdown, OPTIONS).into_offset_iter() {
        match event {
            Event::Start(Tag::Heading { level, .. }) => {
                is_in_heading = true;
                headings.push(Heading {
                    level: level as u8,
                    title: String::new(),
                    start: range.start,
                });
            }
            Event::End(TagEnd::Heading(_)) => is_in_heading = false,
            Event::Text(text) | Event::Code(text) if is_in_heading => {
                if let Some(heading) = headings.last_mut() {
                    heading.title.push_str(&text);
                }
            }
            Event::SoftBreak | Event::HardBreak if is_in_heading => {
                if let Some(heading) = headings.last_mut() {
                    heading.title.push(' ');
                }
            }
            _ => {}
        }
    }
    headings
}

/// Returns the number of the line at a position, counted from 1.
#[must_use]
pub fn line_at(markdown: &str, position: usize) -> usize {
    let before = markdown.as_bytes().get(..position).unwrap_or_default();
    1 + before.iter().filter(|byte| **byte == b'\n').count()
}

/// Returns a section with its subsections.
///
/// # Errors
/// If there is no such heading; the error lists the headings.
pub fn section<'a>(markdown: &'a str, title: &str) -> Result<&'a str, String> {
    let headings = headings(markdown);
    let title = title.trim().trim_start_matches('#').trim().to_lowercase();
    let Some(index) = headings
        .iter()
        .position(|heading| heading.title.trim().to_lowercase() == title)
    else {
        let titles: Vec<_> = headings.iter().map(|heading| format!("`{}`", heading.title)).collect();
        return Err(format!(
            "there is no section `{title}`; the sections are {}",
            titles.join(", ")
        ));
    };
    let level = headings[index].level;
    let next = headings[index + 1..].iter().find(|heading| heading.level <= level);
    let end = next.map_or(markdown.len(), |heading| heading.start);
    Ok(&markdown[headings[index].start..end])
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const TEXT: &str = "Title *one*\n=====\n\n## A `b`\ntext\n### Deep\nmore\n\n```\n# code\n```\n## C\nend";

    #[test]
    fn headings_have_levels_lines_and_plain_titles() {
        let found: Vec<_> = headings(TEXT)
            .into_iter()
            .map(|heading| (heading.level, heading.title, line_at(TEXT, heading.start)))
            .collect();
        let expected = [(1, "Title one", 1), (2, "A b", 4), (3, "Deep", 6), (2, "C", 12)];
        assert_eq!(
            found,
            expected.map(|(level, title, line)| (level, title.to_owned(), line))
        );
    }

    #[test]
    fn a_section_includes_its_subsections() {
        let section_a = section(TEXT, "## a b").unwrap();
        assert!(
            section_a.starts_with("## A `b`\n") && section_a.ends_with("```\n"),
            "{section_a}"
        );
        assert_eq!(section(TEXT, "C").unwrap(), "## C\nend");
        assert!(section(TEXT, "Title one").unwrap().ends_with("end"));
        assert!(section(TEXT, "x").unwrap_err().contains("`Deep`"));
    }
}
