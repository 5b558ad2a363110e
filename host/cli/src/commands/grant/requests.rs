//! The permissions that a policy file of another host requests, compared with the grants.

use serde::Serialize;

use crate::hint::grant_command;
use crate::input::access::{parse_access, parse_http_target};
use crate::output::page::{FAINT, Page};
use toolwit::grants::EffectiveRights;
use toolwit::registry::RequestedPermissions;
use toolwit::tool::MissingGrant;

/// A requested access, and whether it is granted.
#[derive(Serialize)]
pub(super) struct RequestedAccess {
    /// The access in the form that `toolwit explain` accepts, except that an HTTP request can have several methods. If
    /// no grant corresponds to the access, the text of the policy file.
    what: String,
    /// Whether the access is granted, with all its methods.
    is_granted: bool,
    /// The command that grants the access. `None` if the access is granted, or if no grant corresponds to it.
    command: Option<String>,
}

/// Compares requested permissions with the grants.
pub(super) fn compare_requests(requested: &RequestedPermissions, effective: &EffectiveRights) -> Vec<RequestedAccess> {
    let grants = requested.grants.iter().map(|grant| {
        let what = access_of(grant);
        let is_granted = each_method(&what).all(|access| is_granted(&access, effective));
        let command = (!is_granted).then(|| grant_command(grant).to_string());
        RequestedAccess {
            what,
            is_granted,
            command,
        }
    });
    let others = requested.others.iter().map(|what| RequestedAccess {
        what: what.clone(),
        is_granted: false,
        command: None,
    });
    grants.chain(others).collect()
}

/// Returns the access that a grant would allow.
fn access_of(grant: &MissingGrant) -> String {
    match (grant.key.as_str(), grant.value.split_once(' ')) {
        ("files", Some(("read", directory))) => format!("read {directory}"),
        ("files", Some((_, directory))) => format!("write {directory}"),
        ("http", Some((methods, url))) => format!("{methods} {}", with_scheme(url)),
        ("http", None) => format!("GET {}", with_scheme(&grant.value)),
        ("secret", Some((name, _))) => format!("secret {name}"),
        (key, _) => format!("{key} {}", grant.value),
    }
}

/// Splits an access into one for each of its methods: `GET,POST URL` becomes two.
fn each_method(access: &str) -> impl Iterator<Item = String> {
    let (methods, target) = access.split_once(' ').unwrap_or((access, ""));
    methods.split(',').map(move |method| format!("{method} {target}"))
}

/// Adds a scheme and a path to the URL of a grant, if the URL is only a host.
fn with_scheme(url: &str) -> String {
    if url.contains("://") {
        url.to_owned()
    } else {
        format!("https://{url}/")
    }
}

fn is_granted(access: &str, effective: &EffectiveRights) -> bool {
    let target = parse_http_target(access);
    target.is_ok_and(|target| effective.require(&parse_access(access, target.as_ref())).is_ok())
}

/// Writes the requests, with the commands that grant them, and the number of those that are omitted.
pub(super) fn write_requests(page: &mut Page, requests: &[RequestedAccess], omitted: usize) {
    for request in requests {
        let state = match (&request.command, request.is_granted) {
            (_, true) => "which is granted",
            (Some(_), false) => "which is not granted",
            (None, false) => "which a grant cannot express",
        };
        page.indent(2)
            .text("requests: ")
            .text(&request.what)
            .text(", ")
            .text(state)
            .end();
        if let Some(command) = &request.command {
            page.indent(4).styled(FAINT, format_args!("hint: {command}")).end();
        }
    }
    if omitted > 0 {
        page.indent(2)
            .text("requests: ")
            .text(omitted)
            .text(" more, which are not listed")
            .end();
    }
}
