//! Tests of the rules: targets, paths and names that imitate a granted target, path or name are refused. This file has the shared
//! helpers.
#![allow(clippy::unwrap_used, clippy::panic)]

use super::*;
use crate::grants::DeclaredCapabilities;

mod decisions;
mod directories;
mod effective;
mod grants_file;
mod requests;

const DIGEST: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

fn parse_grants(text: &str) -> Result<Grants, GrantsError> {
    Grants::parse(text.as_bytes())
}

/// Parses a grants file with one grant, which contains these lines and is for any version of the plugin `p`.
fn parse_grant_with(lines: &str) -> Result<Grants, GrantsError> {
    parse_grants(&format!(
        "version = 1\n[[grant]]\nplugin = \"p\"\nany-version = true\n{lines}\n"
    ))
}

/// Returns the capabilities that the plugin of most tests declares.
fn declared_capabilities() -> DeclaredCapabilities {
    DeclaredCapabilities::from_imports([
        "wasi:http/outgoing-handler@0.2.6",
        "wasi:filesystem/preopens@0.2.6",
        "wasi:cli/environment@0.2.6",
        "wasi:config/store@0.2.0-draft",
        "wasi:keyvalue/store@0.2.0-draft",
        "toolwit:plugin/tools@0.1.0",
    ])
}

/// Returns the rights of the plugin `p` under one grant with these lines.
fn rights_of(lines: &str) -> EffectiveRights {
    EffectiveRights::new(&declared_capabilities(), &parse_grant_with(lines).unwrap(), "p", DIGEST)
}

/// Returns whether an access is allowed.
fn allows(rights: &EffectiveRights, request: &AccessRequest<'_>) -> bool {
    decide(rights, request).is_allowed()
}

/// Returns whether a `GET` request over HTTPS may be sent to an authority.
fn may_request(rights: &EffectiveRights, authority: &str) -> bool {
    let target = RequestTarget::new("GET", "https", authority, "/");
    target.is_ok_and(|target| allows(rights, &AccessRequest::Http(&target)))
}
