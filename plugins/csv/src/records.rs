//! Records of CSV, in the form of RFC 4180.

use std::iter::Peekable;
use std::str::Chars;

/// Reads the records of a text. Empty lines are skipped.
#[derive(Debug)]
pub(crate) struct Records<'a> {
    rest: Peekable<Chars<'a>>,
    delimiter: char,
    /// The number of the current line, counted from 1.
    line: usize,
}

impl<'a> Records<'a> {
    pub(crate) fn new(text: &'a str, delimiter: char) -> Self {
        let rest = text.chars().peekable();
        Self {
            rest,
            delimiter,
            line: 1,
        }
    }

    /// Reads the rest of a quoted value, after its opening quote.
    fn read_quoted(&mut self, value: &mut String) -> Result<(), String> {
        let start = self.line;
        while let Some(character) = self.rest.next() {
            match character {
                '"' if self.rest.next_if_eq(&'"').is_none() => return Ok(()),
                '\n' => self.line += 1,
                _ => {}
            }
            value.push(character);
        }
        Err(format!("the quote in line {start} is not closed"))
    }

    fn read_record(&mut self) -> Result<Vec<String>, String> {
        let (mut record, mut value) = (Vec::new(), String::new());
        while let Some(character) = self.rest.next() {
            match character {
                '"' if value.is_empty() => self.read_quoted(&mut value)?,
                '\r' if self.rest.peek() == Some(&'\n') => {}
                '\n' => {
                    self.line += 1;
                    break;
                }
                _ if character == self.delimiter => record.push(std::mem::take(&mut value)),
                _ => value.push(character),
            }
        }
        record.push(value);
        Ok(record)
    }
}

impl Iterator for Records<'_> {
    type Item = Result<Vec<String>, String>;

    fn next(&mut self) -> Option<Self::Item> {
        // Only a line feed ends a line, as in a record.
        while let Some(character) = self.rest.next_if(|character| matches!(character, '\r' | '\n')) {
            if character == '\n' {
                self.line += 1;
            }
        }
        self.rest.peek()?;
        Some(self.read_record())
    }
}

/// Appends a record with commas. Values are quoted where it is necessary.
pub(crate) fn write(record: &[String], csv: &mut String) {
    for (index, value) in record.iter().enumerate() {
        if index > 0 {
            csv.push(',');
        }
        // A line with a single empty value would be an empty line.
        let is_quoted = value.contains([',', '"', '\n', '\r']) || value.is_empty() && record.len() == 1;
        if is_quoted {
            csv.push('"');
            csv.push_str(&value.replace('"', "\"\""));
            csv.push('"');
        } else {
            csv.push_str(value);
        }
    }
    csv.push('\n');
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<Vec<String>>, String> {
        Records::new(text, ',').collect()
    }

    #[test]
    fn quotes_line_breaks_and_empty_values_are_read_and_written() {
        let text = "a,\"b\"\"c\nd\",\r\n\r\n\"\"\n,x";
        let records = read(text).unwrap();
        assert_eq!(records, [vec!["a", "b\"c\nd", ""], vec![""], vec!["", "x"]]);
        let mut written = String::new();
        for record in &records {
            write(record, &mut written);
        }
        assert_eq!(read(&written).unwrap(), records);
        assert_eq!(read("").unwrap(), Vec::<Vec<String>>::new());
    }

    #[test]
    fn an_open_quote_is_an_error_with_its_line() {
        for text in ["a\n\n\"b\nc", "a\r\n\r\n\"b\r\nc"] {
            assert_eq!(read(text).unwrap_err(), "the quote in line 3 is not closed", "{text:?}");
        }
    }
}
