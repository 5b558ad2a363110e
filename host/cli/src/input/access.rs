//! Parses an access of a plugin, as a person writes it, such as `read /notes` or `GET https://example.com/a`.

use toolwit::grants::{AccessMode, AccessRequest, RequestTarget};
use toolwit::{Error, ErrorKind, Phase};

/// The first words of accesses that are not HTTP requests.
const FIRST_WORDS: [&str; 12] = [
    "read",
    "write",
    "secret",
    "env",
    "config",
    "keyvalue",
    "clock",
    "random",
    "tool",
    "context",
    "blackboard",
    "ask",
];

/// Parses the target of an HTTP request. Returns `None` for an access of another kind.
///
/// # Errors
/// If the URL is not valid, or if the name or the mode after the first word is missing or not valid.
pub(crate) fn parse_http_target(access: &str) -> Result<Option<RequestTarget>, Error> {
    let (first_word, name) = access.split_once(' ').unwrap_or((access, ""));
    if FIRST_WORDS.contains(&first_word) {
        return check_name(first_word, name).map(|()| None);
    }
    let target = RequestTarget::parse(access).map_err(|error| {
        Error::new(ErrorKind::Configuration, Phase::Registry, error.to_string())
            .with_suggestion("write a request as `GET https://example.com/a`, or `read PATH`, `env NAME`, …")
    })?;
    Ok(Some(target))
}

/// Checks that an access has the name or the mode that its first word requires.
fn check_name(first_word: &str, name: &str) -> Result<(), Error> {
    let expected_form = match first_word {
        "keyvalue" | "clock" | "random" | "ask" => return Ok(()),
        "blackboard" if matches!(name, "" | "read" | "write" | "read-write") => return Ok(()),
        "blackboard" => "`blackboard read` or `blackboard read-write`".to_owned(),
        _ if name.is_empty() => format!("`{first_word} NAME`"),
        _ => return Ok(()),
    };
    let access = format!("{first_word} {name}");
    let message = format!("`{}` is not an access", access.trim_end());
    Err(Error::new(ErrorKind::Configuration, Phase::Registry, message)
        .with_suggestion(format!("write {expected_form}")))
}

/// Parses an access. `target` is the result of [`parse_http_target`] for the same text.
pub(crate) fn parse_access<'a>(access: &'a str, target: Option<&'a RequestTarget>) -> AccessRequest<'a> {
    if let Some(target) = target {
        return AccessRequest::Http(target);
    }
    let (first_word, name) = access.split_once(' ').unwrap_or((access, ""));
    match first_word {
        "read" => AccessRequest::File(name, AccessMode::Read),
        "write" => AccessRequest::File(name, AccessMode::ReadWrite),
        "secret" => AccessRequest::Secret(name),
        "env" => AccessRequest::Variable(name),
        "config" => AccessRequest::Setting(name),
        "keyvalue" => AccessRequest::KeyValue,
        "clock" => AccessRequest::Clock,
        "random" => AccessRequest::Random,
        "tool" => AccessRequest::Tool(name),
        "context" => AccessRequest::ContextKey(name),
        "ask" => AccessRequest::Ask,
        "blackboard" if matches!(name, "write" | "read-write") => AccessRequest::Blackboard(AccessMode::ReadWrite),
        _ => AccessRequest::Blackboard(AccessMode::Read),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_blackboard_access_reads_or_writes_and_other_modes_are_refused() {
        let parse = |access| parse_http_target(access).map(|_| parse_access(access, None));
        let read = AccessRequest::Blackboard(AccessMode::Read);
        let write = AccessRequest::Blackboard(AccessMode::ReadWrite);
        for (access, expected) in [
            ("blackboard", &read),
            ("blackboard read", &read),
            ("blackboard write", &write),
            ("blackboard read-write", &write),
        ] {
            assert_eq!(parse(access).unwrap().to_string(), expected.to_string(), "{access}");
        }
        assert!(parse("blackboard wrte").is_err() && parse("blackboard  write").is_err());
    }

    #[test]
    fn an_access_without_its_required_name_is_refused() {
        for first_word in ["read", "write", "secret", "env", "config", "tool", "context"] {
            assert!(parse_http_target(first_word).is_err(), "{first_word}");
            assert!(parse_http_target(&format!("{first_word} a")).unwrap().is_none());
        }
        assert!(parse_http_target("clock").unwrap().is_none());
    }
}
