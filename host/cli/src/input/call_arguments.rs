//! Arguments of a call, from the command line, a file or standard input.

use std::fs::File;
use std::io::{self, Read};

use tokio_util::sync::CancellationToken;

use toolwit::tool::text::{json_type, parse_json};
use toolwit::tool::{ARGUMENT_BYTES_MAX, Arguments};
use toolwit::{Error, ErrorKind, Phase};

/// Reads a call's arguments: JSON as it stands, `@FILE`, or `-` for standard input. Nothing means no arguments.
pub(crate) async fn read_arguments(given: Option<String>, cancel: &CancellationToken) -> Result<Arguments, Error> {
    let text = match given {
        None => return Ok(Arguments::new()),
        Some(place) if place == "-" || place.starts_with('@') => {
            read_text(place, ARGUMENT_BYTES_MAX as u64, cancel).await?
        }
        Some(text) if text.len() > ARGUMENT_BYTES_MAX => {
            return Err(refused(format!(
                "the arguments have more than {ARGUMENT_BYTES_MAX} bytes"
            )));
        }
        Some(text) => text,
    };
    match parse_json(&text) {
        Ok(serde_json::Value::Object(arguments)) => Ok(arguments),
        Ok(other) => Err(refused(format!(
            "the arguments must be a JSON object, not {}",
            json_type(&other)
        ))),
        Err(error) => Err(refused(format!("the arguments are not valid JSON: {error}"))
            .with_suggestion("quote them for the shell, as in '{\"name\": \"value\"}', or name a file as @FILE")),
    }
}

/// Reads text from `-`, standard input, or from a file, whose name may have an `@` before it.
pub(crate) async fn read_text(place: String, bytes_max: u64, cancel: &CancellationToken) -> Result<String, Error> {
    let shown = match place.strip_prefix('@').unwrap_or(&place) {
        "-" => "standard input".to_owned(),
        path => format!("`{path}`"),
    };
    let path = place.strip_prefix('@').unwrap_or(&place).to_owned();
    tracing::debug!("reading {shown}");
    // A terminal or a pipe may keep it waiting for ever.
    let read = tokio::task::spawn_blocking(move || match path.as_str() {
        "-" => read_bounded(io::stdin().lock(), bytes_max),
        path => read_bounded(File::open(path)?, bytes_max),
    });
    let read = tokio::select! {
        biased;
        read = read => read.map_err(io::Error::other).flatten(),
        () = cancel.cancelled() => {
            return Err(Error::new(ErrorKind::Cancelled, Phase::Registry, format!("interrupted while reading {shown}")));
        }
    };
    read.map_err(|error| {
        let message = format!("{shown} could not be read: {error}");
        Error::new(ErrorKind::Configuration, Phase::Registry, message).with_source(error)
    })
}

fn read_bounded(source: impl Read, bytes_max: u64) -> io::Result<String> {
    let mut text = String::new();
    source.take(bytes_max + 1).read_to_string(&mut text)?;
    match text.len() as u64 > bytes_max {
        true => Err(io::Error::other(format!("it has more than {bytes_max} bytes"))),
        false => Ok(text),
    }
}

fn refused(message: String) -> Error {
    Error::new(ErrorKind::InvalidArguments, Phase::Validate, message)
}
