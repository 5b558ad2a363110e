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
        if line.len() as u64 > PROMPT_BYTES_MAX {
            let message = format!("the message is longer than {PROMPT_BYTES_MAX} bytes");
            return Err(Error::new(ErrorKind::Configuration, Phase::Registry, message));
        }
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
    let mut line = String::new();
    let count = input
        .take(PROMPT_BYTES_MAX + 1)
        .read_line(&mut line)
        .map_err(unreadable)?;
    if count == 0 { Ok(Line::End) } else { Line::parse(&line) }
}

/// Returns the error of an input that cannot be read.
pub(super) fn unreadable(error: io::Error) -> Error {
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
    fn input_that_is_too_long_or_not_text_is_an_error() {
        assert_eq!(read_from(&mut &b""[..]).unwrap(), Line::End);
        assert!(read_from(&mut &b"\xff\n"[..]).is_err());
        let long = vec![b'a'; usize::try_from(PROMPT_BYTES_MAX).unwrap() + 1];
        assert!(read_from(&mut &long[..]).is_err());
    }
}
