//! Arguments of a tool call, from the command line, a file or standard input.

use std::fs::File;
use std::io::{self, Read};

use serde_json::Value;
use tokio_util::sync::CancellationToken;

use toolwit::limits::{ARGUMENT_BYTES_MAX, ARGUMENT_PARTS_MAX};
use toolwit::tool::text::{json_part_count, json_type, parse_json};
use toolwit::tool::{Arguments, ToolDefinition};
use toolwit::{Error, ErrorKind, Phase};

/// The arguments of a tool call, before the tool is known.
#[derive(Debug, PartialEq)]
pub(crate) enum CallArguments {
    /// A JSON object.
    Object(Arguments),
    /// Words such as `name=John`. The types of the values follow from the tool's schema.
    Pairs(Vec<(String, String)>),
}

impl CallArguments {
    /// Reads the arguments from the words of a command line: one JSON object, the path of its file as `@FILE`, `-` for
    /// standard input, or words `NAME=VALUE`. Without words, there are no arguments.
    pub(crate) async fn read(words: Vec<String>, cancel: &CancellationToken) -> Result<Self, Error> {
        let is_read_as_object = |word: &str| word == "-" || word.starts_with(['@', '{', '[']) || !word.contains('=');
        match <[String; 1]>::try_from(words) {
            Ok([word]) if is_read_as_object(&word) => read_object(word, cancel).await.map(Self::Object),
            Ok([word]) => parse_pairs(vec![word]),
            Err(words) => parse_pairs(words),
        }
    }

    /// Returns the arguments for a tool. The value of a string parameter is taken as it is. Any other value is parsed
    /// as JSON.
    pub(crate) fn for_tool(self, definition: &ToolDefinition) -> Arguments {
        match self {
            Self::Object(arguments) => arguments,
            Self::Pairs(pairs) => {
                let value = |(name, text): (String, String)| {
                    let schema = &definition.input_schema["properties"][&name];
                    // Text that is not JSON becomes a string. If the parameter must not be a string, the call fails.
                    let value = match parse_json(&text) {
                        Ok(value) if !accepts_string(schema) => value,
                        _ => Value::String(text),
                    };
                    (name, value)
                };
                pairs.into_iter().map(value).collect()
            }
        }
    }
}

/// Returns whether a parameter can be a string.
fn accepts_string(schema: &Value) -> bool {
    let is_string = |schema_type: &Value| schema_type == "string";
    let schema_type = &schema["type"];
    is_string(schema_type)
        || schema_type.as_array().is_some_and(|types| types.iter().any(is_string))
        || ["anyOf", "oneOf"]
            .iter()
            .filter_map(|key| schema[key].as_array())
            .flatten()
            .any(accepts_string)
}

fn parse_pairs(words: Vec<String>) -> Result<CallArguments, Error> {
    let mut pairs: Vec<(String, String)> = Vec::new();
    for word in words {
        let Some((name, value)) = word.split_once('=').filter(|(name, _)| !name.is_empty()) else {
            return Err(invalid_arguments(format!("`{word}` is not of the form NAME=VALUE"))
                .with_suggestion("pass words such as `name=John`, or one JSON object"));
        };
        if pairs.iter().any(|(earlier, _)| earlier == name) {
            return Err(invalid_arguments(format!("the argument `{name}` is given twice")));
        }
        pairs.push((name.to_owned(), value.to_owned()));
    }
    Ok(CallArguments::Pairs(pairs))
}

/// Reads the arguments of a call: one JSON object, the path of its file as `@FILE`, or `-` for standard input.
pub(crate) async fn read_object(word: String, cancel: &CancellationToken) -> Result<Arguments, Error> {
    let text = if word == "-" || word.starts_with('@') {
        read_text(word, ARGUMENT_BYTES_MAX as u64, cancel).await?
    } else if word.len() > ARGUMENT_BYTES_MAX {
        return Err(invalid_arguments(format!(
            "the arguments have more than {ARGUMENT_BYTES_MAX} bytes"
        )));
    } else {
        word
    };
    if json_part_count(text.as_bytes()) > ARGUMENT_PARTS_MAX {
        let message = format!("the arguments have more than {ARGUMENT_PARTS_MAX} values and names");
        return Err(invalid_arguments(message));
    }
    match parse_json(&text) {
        Ok(Value::Object(arguments)) => Ok(arguments),
        Ok(other) => Err(invalid_arguments(format!(
            "the arguments must be a JSON object, not {}",
            json_type(&other)
        ))),
        Err(error) => Err(invalid_arguments(format!("the arguments are not valid JSON: {error}"))
            .with_suggestion("pass words such as `name=John`, JSON that is quoted for the shell, or a file as @FILE")),
    }
}

/// The character with which some editors and shells begin a text.
const BYTE_ORDER_MARK: char = '\u{feff}';

/// Reads text from standard input (`-`) or a file, whose path may start with `@`. Skips a byte order mark, with which some
/// editors and shells begin a text.
pub(crate) async fn read_text(source: String, bytes_max: u64, cancel: &CancellationToken) -> Result<String, Error> {
    let source_name = match source.strip_prefix('@').unwrap_or(&source) {
        "-" => "standard input".to_owned(),
        path => format!("`{path}`"),
    };
    let path = source.strip_prefix('@').unwrap_or(&source).to_owned();
    tracing::debug!("reading {source_name}");
    // Reading from a terminal or a pipe may block forever. A separate thread reads, so that an interrupt can end the
    // command.
    let task = tokio::task::spawn_blocking(move || match path.as_str() {
        "-" => read_limited(io::stdin().lock(), bytes_max),
        path => read_limited(File::open(path)?, bytes_max),
    });
    let text = tokio::select! {
        biased;
        text = task => text.map_err(io::Error::other).flatten(),
        () = cancel.cancelled() => {
            return Err(Error::new(ErrorKind::Cancelled, Phase::Registry, format!("interrupted while reading {source_name}")));
        }
    };
    text.map_err(|error| {
        let message = format!("{source_name} could not be read: {error}");
        Error::new(ErrorKind::Configuration, Phase::Registry, message).with_source(error)
    })
}

fn read_limited(source: impl Read, bytes_max: u64) -> io::Result<String> {
    let mut text = String::new();
    source.take(bytes_max + 1).read_to_string(&mut text)?;
    if text.len() as u64 > bytes_max {
        return Err(io::Error::other(format!("it has more than {bytes_max} bytes")));
    }
    if text.starts_with(BYTE_ORDER_MARK) {
        text.drain(..BYTE_ORDER_MARK.len_utf8());
    }
    Ok(text)
}

fn invalid_arguments(message: String) -> Error {
    Error::new(ErrorKind::InvalidArguments, Phase::Validate, message)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::json;
    use toolwit::tool::ToolId;

    use super::*;

    fn words(words: &[&str]) -> Vec<String> {
        words.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn values_of_words_follow_the_schema() {
        let schema = json!({"type": "object", "properties": {
            "name": {"type": "string"},
            "note": {"type": ["string", "null"]},
            "count": {"type": "integer"},
            "tags": {"type": "array"},
            "kind": {"enum": ["a", "b"]},
        }});
        let definition = ToolDefinition::new(ToolId::native("t"), "t", "", schema);
        let pair_words = words(&["name=5", "note=a=b", "count=5", "tags=[\"x\"]", "kind=a", "other=true"]);
        let arguments = parse_pairs(pair_words).unwrap().for_tool(&definition);
        let expected = json!({"name": "5", "note": "a=b", "count": 5, "tags": ["x"], "kind": "a", "other": true});
        assert_eq!(Value::Object(arguments), expected);
    }

    #[test]
    fn words_without_a_name_and_repeated_names_are_refused() {
        for (refused_words, reason) in [
            (&["name=a", "b"][..], "`b` is not of the form"),
            (&["=a", "b=c"], "`=a` is not of the form"),
            (&["a=1", "a=2"], "`a` is given twice"),
        ] {
            let error = parse_pairs(words(refused_words)).unwrap_err();
            assert!(error.message.contains(reason), "{error}");
        }
    }
}
