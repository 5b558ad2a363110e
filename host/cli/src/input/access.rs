//! An access of a plugin, as a person writes it.

use toolwit::grants::{AccessMode, AccessRequest, RequestTarget};
use toolwit::{Error, ErrorKind, Phase};

/// The first words of accesses that are not HTTP requests.
const VERBS: [&str; 11] = [
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
];

/// Parses the target of an HTTP request. Returns `None` for an access of another kind.
///
/// # Errors
/// For a URL that is not valid, and for an access without the name that it needs.
pub(crate) fn parse_http_target(access: &str) -> Result<Option<RequestTarget>, Error> {
    let (verb, name) = access.split_once(' ').unwrap_or((access, ""));
    if VERBS.contains(&verb) {
        return check_name(verb, name).map(|()| None);
    }
    let target = RequestTarget::parse(access).map_err(|error| {
        Error::new(ErrorKind::Configuration, Phase::Registry, error.to_string())
            .with_suggestion("write a request as `GET https://example.com/a`, or `read PATH`, `env NAME`, …")
    })?;
    Ok(Some(target))
}

/// Checks that an access has the name or the mode that its first word requires.
fn check_name(verb: &str, name: &str) -> Result<(), Error> {
    let expected = match verb {
        "keyvalue" | "clock" | "random" => return Ok(()),
        "blackboard" if matches!(name, "" | "read" | "write" | "read-write") => return Ok(()),
        "blackboard" => "`blackboard read` or `blackboard read-write`".to_owned(),
        _ if name.is_empty() => format!("`{verb} NAME`"),
        _ => return Ok(()),
    };
    let access = format!("{verb} {name}");
    let message = format!("`{}` is not an access", access.trim_end());
    Err(Error::new(ErrorKind::Configuration, Phase::Registry, message).with_suggestion(format!("write {expected}")))
}

/// Parses an access. `target` is the result of [`parse_http_target`] for the same text.
pub(crate) fn parse_access<'a>(access: &'a str, target: Option<&'a RequestTarget>) -> AccessRequest<'a> {
    if let Some(target) = target {
        return AccessRequest::Http(target);
    }
    let (verb, name) = access.split_once(' ').unwrap_or((access, ""));
    match verb {
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
        "blackboard" if matches!(name, "write" | "read-write") => AccessRequest::Blackboard(AccessMode::ReadWrite),
        _ => AccessRequest::Blackboard(AccessMode::Read),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn the_blackboard_is_read_or_written_and_nothing_else() {
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
    fn an_access_has_the_name_that_it_needs() {
        for verb in ["read", "write", "secret", "env", "config", "tool", "context"] {
            assert!(parse_http_target(verb).is_err(), "{verb}");
            assert!(parse_http_target(&format!("{verb} a")).unwrap().is_none());
        }
        assert!(parse_http_target("clock").unwrap().is_none());
    }
}
