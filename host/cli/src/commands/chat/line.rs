//! The lines of input: messages and commands.

use std::io::{self, BufRead, Read};

use super::slash::ChatCommand;
use toolwit::limits::PROMPT_BYTES_MAX;
use toolwit::{Error, ErrorKind, Phase};

/// A parsed line of input.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// The end of the input.
    End,
    /// A line without text.
    Empty,
    /// A command of the chat.
    Command(ChatCommand),
    /// A message to the model.
    Message(String),
}

impl Line {
    /// Parses a line. A line that begins with `//` is a message that begins with `/`.
    ///
    /// # Errors
    /// If the line is too long.
    pub(super) fn parse(line: &str) -> Result<Self, Error> {
        check_length(line.as_bytes())?;
        let text = line.trim();
        Ok(match text.strip_prefix('/') {
            None if text.is_empty() => Self::Empty,
            Some(message) if message.starts_with('/') => Self::Message(message.to_owned()),
            Some(command) => Self::Command(ChatCommand::parse(command)),
            None => Self::Message(text.to_owned()),
        })
    }
}

/// Reads a line of standard input.
///
/// # Errors
/// If the input cannot be read, or the line is too long or is not UTF-8.
pub(super) async fn read_line() -> Result<Line, Error> {
    let task = tokio::task::spawn_blocking(|| read_from(&mut io::stdin().lock()));
    task.await.unwrap_or(Ok(Line::End))
}

fn read_from(input: &mut dyn BufRead) -> Result<Line, Error> {
    let mut line = Vec::new();
    let count = input
        .take(PROMPT_BYTES_MAX + 1)
        .read_until(b'\n', &mut line)
        .map_err(read_error)?;
    if count == 0 {
        return Ok(Line::End);
    }
    // The length is checked before the text is decoded. The read stops after the limit, perhaps within a character, and
    // the error would then be about UTF-8.
    check_length(&line)?;
    let line =
        String::from_utf8(line).map_err(|error| read_error(io::Error::new(io::ErrorKind::InvalidData, error)))?;
    Line::parse(&line)
}

/// Refuses a line that is longer than the maximum length of a message.
fn check_length(line: &[u8]) -> Result<(), Error> {
    if line.len() as u64 <= PROMPT_BYTES_MAX {
        return Ok(());
    }
    let message = format!("the message is longer than {PROMPT_BYTES_MAX} bytes");
    Err(Error::new(ErrorKind::Configuration, Phase::Registry, message))
}

/// Returns the error for input that cannot be read.
pub(super) fn read_error(error: io::Error) -> Error {
    let message = format!("the message cannot be read: {error}");
    Error::new(ErrorKind::Configuration, Phase::Registry, message).with_source(error)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_messages_or_commands() {
        let parse = |line: &str| Line::parse(line).unwrap();
        assert_eq!(parse("  \n"), Line::Empty);
        assert_eq!(parse(" Hello \n"), Line::Message("Hello".to_owned()));
        assert_eq!(parse("//etc/hosts\n"), Line::Message("/etc/hosts".to_owned()));
        assert_eq!(parse("/quit\n"), Line::Command(ChatCommand::Quit));
    }

    #[test]
    fn a_line_that_is_too_long_or_not_utf8_is_an_error() {
        assert_eq!(read_from(&mut &b""[..]).unwrap(), Line::End);
        let error = read_from(&mut &b"\xff\n"[..]).unwrap_err();
        assert!(error.message.contains("utf-8"), "{error}");
        let limit = usize::try_from(PROMPT_BYTES_MAX).unwrap();
        let character = "é";
        let too_long = character.repeat(limit / 2 + 1);
        assert!(
            limit.is_multiple_of(2) && !too_long.is_char_boundary(limit + 1),
            "the read stops within a character"
        );
        for line in [&vec![b'a'; limit + 1][..], too_long.as_bytes()] {
            let error = read_from(&mut &line[..]).unwrap_err();
            assert!(error.message.contains("is longer than"), "{error}");
        }
        let longest = character.repeat(limit / 2);
        let line = read_from(&mut longest.as_bytes()).unwrap();
        assert_eq!(line, Line::Message(longest));
    }
}
