//! The permissions that a package requests in the formats of other hosts, compared with the grants.

use serde::Serialize;

use crate::hint::grant_command;
use crate::input::access::{parse_access, parse_http_target};
use crate::output::page::{FAINT, Page, visible};
use toolwit::grants::EffectiveRights;
use toolwit::registry::RequestedPermissions;
use toolwit::tool::MissingGrant;

/// A requested access, and whether it is granted.
#[derive(Serialize)]
pub(super) struct RequestedAccess {
    /// The access in the form that `toolwit explain` accepts, except that an HTTP request can have several methods. If
    /// a grant cannot express the access, the text of the request.
    #[serde(rename = "what")]
    access: String,
    /// Whether the access is granted: for an HTTP request, with every method.
    is_granted: bool,
    /// The command that grants the access. `None` if the access is granted, or if a grant cannot express it.
    command: Option<String>,
}

/// Compares requested permissions with the grants.
pub(super) fn compare_requests(requested: &RequestedPermissions, effective: &EffectiveRights) -> Vec<RequestedAccess> {
    let grants = requested.grants.iter().map(|grant| {
        let access = access_of(grant);
        let is_granted = split_methods(&access).all(|access| is_granted(&access, effective));
        let command = (!is_granted).then(|| grant_command(grant).to_string());
        RequestedAccess {
            access,
            is_granted,
            command,
        }
    });
    let others = requested.others.iter().map(|text| RequestedAccess {
        access: text.clone(),
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
        ("ask", _) => "ask".to_owned(),
        (key, _) => format!("{key} {}", grant.value),
    }
}

/// Splits an access with several methods into accesses with one method: `GET,POST URL` into `GET URL` and `POST URL`.
fn split_methods(access: &str) -> impl Iterator<Item = String> {
    let (methods, target) = access.split_once(' ').unwrap_or((access, ""));
    methods.split(',').map(move |method| format!("{method} {target}"))
}

/// Adds the scheme `https` and a final slash to a URL without a scheme.
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

/// Writes the requests, with the commands that grant them, and the number of omitted requests.
pub(super) fn write_requests(page: &mut Page, requests: &[RequestedAccess], omitted: usize) {
    for request in requests {
        let status = match (&request.command, request.is_granted) {
            (_, true) => "which is granted",
            (Some(_), false) => "which is not granted",
            (None, false) => "which a grant cannot express",
        };
        page.spaces(2)
            .text("requests: ")
            .text(visible(&request.access))
            .text(", ")
            .text(status)
            .end();
        if let Some(command) = &request.command {
            page.spaces(4).styled(FAINT, format_args!("hint: {command}")).end();
        }
    }
    if omitted > 0 {
        page.spaces(2)
            .text("requests: ")
            .text(omitted)
            .text(" more, which are not listed")
            .end();
    }
}
