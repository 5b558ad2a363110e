//! Reads lines of limited length.

use std::io;

use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};

/// Reads lines of limited length. A cancelled read loses no input: the next read continues it.
pub(super) struct LineReader<R> {
    input: BufReader<R>,
    /// The beginning of a line whose end was not read yet.
    line: Vec<u8>,
    bytes_max: usize,
}

impl<R: AsyncRead + Unpin> LineReader<R> {
    pub(super) fn new(input: R, bytes_max: usize) -> Self {
        Self {
            input: BufReader::new(input),
            line: Vec::new(),
            bytes_max,
        }
    }

    /// Returns the next line without its line feed, or `None` at the end of the input. An incomplete last line is
    /// dropped.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidData`] for a line that is too long. No line can be read after this error.
    pub(super) async fn next(&mut self) -> io::Result<Option<Vec<u8>>> {
        loop {
            let buffered = self.input.fill_buf().await?;
            if buffered.is_empty() {
                return Ok(None);
            }
            let end = buffered.iter().position(|byte| *byte == b'\n');
            let piece = &buffered[..end.unwrap_or(buffered.len())];
            if self.line.len() + piece.len() > self.bytes_max {
                return Err(io::ErrorKind::InvalidData.into());
            }
            self.line.extend_from_slice(piece);
            let consumed = piece.len() + usize::from(end.is_some());
            self.input.consume(consumed);
            if end.is_some() {
                return Ok(Some(std::mem::take(&mut self.line)));
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    async fn lines(text: &[u8], bytes_max: usize) -> io::Result<Vec<Vec<u8>>> {
        let mut reader = LineReader::new(text, bytes_max);
        let mut lines = Vec::new();
        while let Some(line) = reader.next().await? {
            lines.push(line.trim_ascii().to_vec());
        }
        Ok(lines)
    }

    // attack: G4
    #[tokio::test]
    async fn a_long_line_is_an_error_and_an_incomplete_line_is_dropped() {
        assert_eq!(
            lines(b"a\r\n\n bb \nrest", 10).await.unwrap(),
            [b"a".to_vec(), Vec::new(), b"bb".to_vec()]
        );
        assert!(lines(&[b'x'; 1_000], 100).await.is_err());
        assert!(lines(&[b'x'; 100_000], 100).await.is_err());
    }
}
