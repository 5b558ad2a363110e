//! Edits of JSON text with comments. The rest of the text stays as it is: comments, order, numbers and spaces.

use std::ops::Range;

use serde_json::Value;

/// The indentation of a text that has none.
const DEFAULT_INDENT: &str = "  ";

/// A JSON text that may have comments and commas before closing brackets.
pub(super) struct JsonText<'t> {
    text: &'t str,
    /// The text with spaces instead of comments and superfluous commas. Its positions are those of `text`.
    plain: Vec<u8>,
}

/// An object in a text.
struct ObjectText {
    members: Vec<Member>,
    /// The position of the closing bracket.
    close: usize,
}

/// A member of an object: the positions of its name and its value.
struct Member {
    name: String,
    start: usize,
    value: Range<usize>,
}

impl<'t> JsonText<'t> {
    /// Checks a text. An empty text is an empty object.
    ///
    /// # Errors
    /// The reason why the text is not an object.
    pub(super) fn parse(text: &'t str) -> Result<Self, String> {
        let plain = plain_text(text)?;
        if !plain.iter().all(u8::is_ascii_whitespace) {
            let value: Value =
                serde_json::from_slice(&plain).map_err(|error| format!("it is not valid JSON ({error})"))?;
            if !value.is_object() {
                return Err("it is not a JSON object".to_owned());
            }
        }
        Ok(Self { text, plain })
    }

    /// Returns the text in which the object `key` has this member. Replaces the value of an existing member.
    ///
    /// # Errors
    /// The reason why the member cannot be added.
    pub(super) fn with_member(&self, key: &str, name: &str, value: &Value) -> Result<String, String> {
        let Some(root_open) = self.plain.iter().position(|byte| *byte == b'{') else {
            let root = serde_json::json!({ key: { name: value } });
            return Ok(format!("{}{root:#}\n", self.text));
        };
        let invalid = || "its structure cannot be read".to_owned();
        let root = self.object(root_open).ok_or_else(invalid)?;
        // Of several members with one name, parsers use the last.
        let Some(group) = root.members.iter().rfind(|member| member.name == key) else {
            let group = serde_json::json!({ name: value });
            return Ok(self.with_appended(&root, root_open, key, &group));
        };
        if self.plain[group.value.start] != b'{' {
            return Err(format!("`{key}` is not a JSON object"));
        }
        let entries = self.object(group.value.start).ok_or_else(invalid)?;
        match entries.members.iter().rfind(|member| member.name == name) {
            Some(entry) => {
                let shown = self.formatted(value, &self.line_indent(entry.start));
                Ok(self.replaced(entry.value.clone(), &shown))
            }
            None => Ok(self.with_appended(&entries, group.value.start, name, value)),
        }
    }

    /// Returns the text with a new last member in an object.
    fn with_appended(&self, object: &ObjectText, open: usize, name: &str, value: &Value) -> String {
        let inside = &self.text[open + 1..object.close];
        // Comments after the last member stay with it.
        let end = open + 1 + inside.trim_end().len();
        let name = Value::from(name);
        let Some(last) = object.members.last() else {
            let outer_indent = self.line_indent(open);
            let indent = format!("{outer_indent}{}", self.indent_unit());
            let newline = self.newline();
            let tail = if self.text[end..object.close].contains('\n') {
                String::new()
            } else {
                format!("{newline}{outer_indent}")
            };
            let member = format!("{newline}{indent}{name}: {}{tail}", self.formatted(value, &indent));
            return self.replaced(end..end, &member);
        };
        let superfluous_comma = (last.value.end..object.close).find(|position| {
            self.text.as_bytes()[*position] == b',' && self.plain[*position] == b' ' && !self.is_comment(*position)
        });
        let comma = if superfluous_comma.is_some() { "" } else { "," };
        let member = if inside.contains('\n') {
            let indent = self.line_indent(last.start);
            let tail = if superfluous_comma.is_some() { "," } else { "" };
            format!(
                "{}{indent}{name}: {}{tail}",
                self.newline(),
                self.formatted(value, &indent)
            )
        } else {
            format!(" {name}: {value}")
        };
        let mut text = self.text.to_owned();
        text.insert_str(end, &member);
        text.insert_str(last.value.end, comma);
        text
    }

    fn replaced(&self, range: Range<usize>, new_text: &str) -> String {
        format!("{}{new_text}{}", &self.text[..range.start], &self.text[range.end..])
    }

    /// Returns whether a position is inside of a comment.
    fn is_comment(&self, position: usize) -> bool {
        comment_ranges(self.text).is_ok_and(|ranges| ranges.iter().any(|range| range.contains(&position)))
    }

    /// Returns the line break of the text.
    fn newline(&self) -> &'static str {
        if self.text.contains("\r\n") { "\r\n" } else { "\n" }
    }

    /// Returns the spaces or tabs at the start of the line of a position.
    fn line_indent(&self, position: usize) -> String {
        let line_start = self.text[..position].rfind('\n').map_or(0, |newline| newline + 1);
        let line = self.text[line_start..position].chars();
        line.take_while(|c| matches!(c, ' ' | '\t')).collect()
    }

    /// Returns the indentation of one level: that of the first member of the text that begins a line.
    fn indent_unit(&self) -> String {
        let lines = self.text.lines();
        let indented = lines.filter(|line| line.trim_start().starts_with('"'));
        let units = indented.map(|line| line.chars().take_while(|c| matches!(c, ' ' | '\t')).collect::<String>());
        units
            .into_iter()
            .find(|unit| !unit.is_empty())
            .unwrap_or_else(|| DEFAULT_INDENT.to_owned())
    }

    /// Formats a value whose first line begins at `indent`.
    fn formatted(&self, value: &Value, indent: &str) -> String {
        let unit = self.indent_unit();
        let text = format!("{value:#}");
        let mut lines = text.lines().map(|line| {
            let content = line.trim_start();
            let depth = (line.len() - content.len()) / DEFAULT_INDENT.len();
            format!("{}{content}", unit.repeat(depth))
        });
        let first = lines.next().unwrap_or_default();
        lines.fold(first, |text, line| format!("{text}{}{indent}{line}", self.newline()))
    }

    /// Returns the members of the object that begins at a position.
    fn object(&self, open: usize) -> Option<ObjectText> {
        let mut members = Vec::new();
        let mut position = self.skip_space(open + 1);
        while self.plain.get(position)? != &b'}' {
            let name_end = self.string_end(position)?;
            let name = serde_json::from_slice(&self.plain[position..name_end]).ok()?;
            let value_start = self.skip_space(self.skip_space(name_end) + 1);
            let value_end = self.value_end(value_start)?;
            members.push(Member {
                name,
                start: position,
                value: value_start..value_end,
            });
            position = self.skip_space(value_end);
            if self.plain.get(position)? == &b',' {
                position = self.skip_space(position + 1);
            }
        }
        Some(ObjectText {
            members,
            close: position,
        })
    }

    fn skip_space(&self, position: usize) -> usize {
        let rest = self.plain.iter().skip(position);
        position + rest.take_while(|byte| byte.is_ascii_whitespace()).count()
    }

    /// Returns the end of the string that begins at a position.
    fn string_end(&self, start: usize) -> Option<usize> {
        let mut position = start + 1;
        loop {
            match self.plain.get(position)? {
                b'"' => return Some(position + 1),
                b'\\' => position += 2,
                _ => position += 1,
            }
        }
    }

    /// Returns the end of the value that begins at a position.
    fn value_end(&self, start: usize) -> Option<usize> {
        let (mut position, mut depth) = (start, 0_usize);
        loop {
            match self.plain.get(position)? {
                b'"' => position = self.string_end(position)?,
                b'{' | b'[' => {
                    depth += 1;
                    position += 1;
                }
                b'}' | b']' => {
                    depth -= 1;
                    position += 1;
                }
                _ => {
                    let is_scalar = |byte: &&u8| !byte.is_ascii_whitespace() && !b",}]{[\"".contains(byte);
                    let scalar = self.plain.iter().skip(position).take_while(is_scalar).count();
                    position += scalar.max(1);
                }
            }
            if depth == 0 {
                return Some(position);
            }
        }
    }
}

/// Returns the text with spaces instead of comments, a byte order mark and superfluous commas.
fn plain_text(text: &str) -> Result<Vec<u8>, String> {
    let mut plain = text.as_bytes().to_vec();
    let byte_order_mark = if text.starts_with('\u{feff}') { 0..3 } else { 0..0 };
    for range in comment_ranges(text)?.into_iter().chain([byte_order_mark]) {
        let blank = |byte: &mut u8| {
            if *byte != b'\n' {
                *byte = b' ';
            }
        };
        plain[range].iter_mut().for_each(blank);
    }
    let mut last_comma = None;
    let mut position = 0;
    while position < plain.len() {
        match plain[position] {
            b'"' => {
                position = string_end(&plain, position);
                last_comma = None;
                continue;
            }
            b',' => last_comma = Some(position),
            b'}' | b']' => {
                if let Some(comma) = last_comma.take() {
                    plain[comma] = b' ';
                }
            }
            byte if byte.is_ascii_whitespace() => {}
            _ => last_comma = None,
        }
        position += 1;
    }
    Ok(plain)
}

/// Returns the positions of the comments of a text.
fn comment_ranges(text: &str) -> Result<Vec<Range<usize>>, String> {
    let bytes = text.as_bytes();
    let mut ranges = Vec::new();
    let mut position = 0;
    while position < bytes.len() {
        let rest = &text.as_bytes()[position..];
        if rest[0] == b'"' {
            position = string_end(bytes, position);
        } else if rest.starts_with(b"//") {
            let length = rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
            ranges.push(position..position + length);
            position += length;
        } else if rest.starts_with(b"/*") {
            let length = rest.windows(2).skip(2).position(|pair| pair == b"*/");
            let length = length.ok_or("a comment has no end")? + 4;
            ranges.push(position..position + length);
            position += length;
        } else {
            position += 1;
        }
    }
    Ok(ranges)
}

/// Returns the end of the string that begins at a position, or the end of the text.
fn string_end(bytes: &[u8], start: usize) -> usize {
    let mut position = start + 1;
    while position < bytes.len() {
        match bytes[position] {
            b'"' => return position + 1,
            b'\\' => position += 2,
            _ => position += 1,
        }
    }
    bytes.len()
}

#[cfg(test)]
mod tests;
