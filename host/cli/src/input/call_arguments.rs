//! Arguments of a tool call, from the command line, a file or standard input.

use std::fs::File;
use std::io::{self, Read};

use tokio_util::sync::CancellationToken;

use toolwit::limits::ARGUMENT_BYTES_MAX;
use toolwit::tool::Arguments;
use toolwit::tool::text::{json_type, parse_json};
use toolwit::{Error, ErrorKind, Phase};

/// Reads the arguments of a tool call: a JSON object, `@FILE`, or `-` for standard input. The default is an empty object.
pub(crate) async fn read_arguments(value: Option<String>, cancel: &CancellationToken) -> Result<Arguments, Error> {
    let text = match value {
        None => return Ok(Arguments::new()),
        Some(source) if source == "-" || source.starts_with('@') => {
            read_text(source, ARGUMENT_BYTES_MAX as u64, cancel).await?
        }
        Some(text) if text.len() > ARGUMENT_BYTES_MAX => {
            return Err(invalid_arguments(format!(
                "the arguments have more than {ARGUMENT_BYTES_MAX} bytes"
            )));
        }
        Some(text) => text,
    };
    match parse_json(&text) {
        Ok(serde_json::Value::Object(arguments)) => Ok(arguments),
        Ok(other) => Err(invalid_arguments(format!(
            "the arguments must be a JSON object, not {}",
            json_type(&other)
        ))),
        Err(error) => Err(invalid_arguments(format!("the arguments are not valid JSON: {error}"))
            .with_suggestion("quote them for the shell, as in '{\"name\": \"value\"}', or pass a file as @FILE")),
    }
}

/// Reads text from standard input (`-`) or a file, whose path may start with `@`.
pub(crate) async fn read_text(source: String, bytes_max: u64, cancel: &CancellationToken) -> Result<String, Error> {
    let shown = match source.strip_prefix('@').unwrap_or(&source) {
        "-" => "standard input".to_owned(),
        path => format!("`{path}`"),
    };
    let path = source.strip_prefix('@').unwrap_or(&source).to_owned();
    tracing::debug!("reading {shown}");
    // Reading from a terminal or a pipe may block forever.
    let read = tokio::task::spawn_blocking(move || match path.as_str() {
        "-" => read_limited(io::stdin().lock(), bytes_max),
        path => read_limited(File::open(path)?, bytes_max),
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

fn read_limited(source: impl Read, bytes_max: u64) -> io::Result<String> {
    let mut text = String::new();
    source.take(bytes_max + 1).read_to_string(&mut text)?;
    if text.len() as u64 > bytes_max {
        return Err(io::Error::other(format!("it has more than {bytes_max} bytes")));
    }
    Ok(text)
}

fn invalid_arguments(message: String) -> Error {
    Error::new(ErrorKind::InvalidArguments, Phase::Validate, message)
}
