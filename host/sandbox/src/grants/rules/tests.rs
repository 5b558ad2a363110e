//! Tests of the rules: targets, paths and names that imitate a granted one are refused. This file has what the tests share.
#![allow(clippy::unwrap_used, clippy::panic)]

use super::*;
use crate::grants::DeclaredCapabilities;

mod decisions;
mod directories;
mod effective;
mod grants_file;
mod requests;

const DIGEST: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

fn grants(text: &str) -> Result<Grants, GrantsError> {
    Grants::parse(text.as_bytes())
}

/// Parses a file with one grant for any version that contains these lines.
fn one_grant(lines: &str) -> Result<Grants, GrantsError> {
    grants(&format!(
        "version = 1\n[[grant]]\nplugin = \"p\"\nany-version = true\n{lines}\n"
    ))
}

fn declares_all() -> DeclaredCapabilities {
    DeclaredCapabilities::from_imports([
        "wasi:http/outgoing-handler@0.2.6",
        "wasi:filesystem/preopens@0.2.6",
        "wasi:cli/environment@0.2.6",
        "wasi:config/store@0.2.0-draft",
        "wasi:keyvalue/store@0.2.0-draft",
        "toolwit:plugin/tools@0.1.0",
    ])
}

fn effective(lines: &str) -> EffectiveRights {
    EffectiveRights::new(&declares_all(), &one_grant(lines).unwrap(), "p", DIGEST)
}

/// Returns whether an access is allowed.
fn allows(effective: &EffectiveRights, request: &AccessRequest<'_>) -> bool {
    decide(effective, request).is_allowed()
}

fn may_request(effective: &EffectiveRights, authority: &str) -> bool {
    let target = RequestTarget::new("GET", "https", authority, "/");
    target.is_ok_and(|target| allows(effective, &AccessRequest::Http(&target)))
}
