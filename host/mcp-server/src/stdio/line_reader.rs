//! A reader of lines of limited length.

use std::io;

use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};

/// A line of the input.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// A complete line without its line ending.
    Complete(Vec<u8>),
    /// A line that is longer than the limit. Its text was skipped.
    TooLong,
    /// The end of the input. The text after the last line ending is dropped, because it may be half a message.
    End,
}

/// Reads lines. [`LineReader::next`] is cancel-safe: a cancelled read loses no input.
pub(super) struct LineReader<R> {
    input: BufReader<R>,
    /// The beginning of the next line, which was read already.
    line: Vec<u8>,
    line_bytes_max: usize,
    /// Whether the next line is longer than the limit, and is being skipped.
    is_skipping: bool,
}

impl<R: AsyncRead + Unpin> LineReader<R> {
    pub(super) fn new(input: R, line_bytes_max: usize) -> Self {
        Self {
            input: BufReader::new(input),
            line: Vec::new(),
            line_bytes_max,
            is_skipping: false,
        }
    }

    /// Returns whether input after the last returned line has been read.
    pub(super) fn has_buffered(&self) -> bool {
        !self.input.buffer().is_empty()
    }

    /// Reads the next line.
    ///
    /// # Errors
    /// If the input cannot be read.
    pub(super) async fn next(&mut self) -> io::Result<Line> {
        loop {
            let available = self.input.fill_buf().await?;
            if available.is_empty() {
                return Ok(Line::End);
            }
            let end = available.iter().position(|byte| *byte == b'\n');
            let part = &available[..end.unwrap_or(available.len())];
            if !self.is_skipping && self.line.len() + part.len() > self.line_bytes_max {
                self.is_skipping = true;
                self.line = Vec::new();
            }
            if !self.is_skipping {
                self.line.extend_from_slice(part);
            }
            let consumed_bytes = part.len() + usize::from(end.is_some());
            self.input.consume(consumed_bytes);
            if end.is_none() {
                continue;
            }
            if std::mem::take(&mut self.is_skipping) {
                return Ok(Line::TooLong);
            }
            let mut line = std::mem::take(&mut self.line);
            if line.last() == Some(&b'\r') {
                line.pop();
            }
            return Ok(Line::Complete(line));
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    async fn lines(input: &[u8]) -> Vec<Line> {
        let mut reader = LineReader::new(input, 8);
        let mut lines = Vec::new();
        loop {
            match reader.next().await.unwrap() {
                Line::End => return lines,
                line => lines.push(line),
            }
        }
    }

    fn complete(text: &str) -> Line {
        Line::Complete(text.as_bytes().to_vec())
    }

    // attack: G4
    #[tokio::test]
    async fn long_lines_are_skipped_and_unfinished_ones_dropped() {
        let read = lines(b"one\r\n\nfar too long for this\n12345678\nhalf a li").await;
        assert_eq!(
            read,
            [complete("one"), complete(""), Line::TooLong, complete("12345678")]
        );
    }

    #[tokio::test]
    async fn a_line_in_many_parts_is_one_line() {
        let (mut writer, reader) = tokio::io::duplex(2);
        let mut reader = LineReader::new(reader, 100);
        let written = tokio::spawn(async move {
            tokio::io::AsyncWriteExt::write_all(&mut writer, b"a longer line\n")
                .await
                .unwrap();
        });
        assert_eq!(reader.next().await.unwrap(), complete("a longer line"));
        assert_eq!(reader.next().await.unwrap(), Line::End);
        written.await.unwrap();
    }
}
