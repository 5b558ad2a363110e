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
pub(crate) fn parse_http_target(access: &str) -> Result<Option<RequestTarget>, Error> {
    let verb = access.split(' ').next().unwrap_or_default();
    if VERBS.contains(&verb) {
        return Ok(None);
    }
    let target = RequestTarget::parse(access).map_err(|error| {
        Error::new(ErrorKind::Configuration, Phase::Registry, error.to_string())
            .with_suggestion("write a request as `GET https://example.com/a`, or `read PATH`, `env NAME`, …")
    })?;
    Ok(Some(target))
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
        "blackboard" if name == "write" => AccessRequest::Blackboard(AccessMode::ReadWrite),
        _ => AccessRequest::Blackboard(AccessMode::Read),
    }
}
