//! A guest of the contract of IronClaw in version 0.4: it fails with the kind that a test requests, or sends a request.

wit_bindgen::generate!({ path: "wit", world: "neighbor", generate_all });

use exports::near::agent::tool::{ErrorKind, Guest, GuestFailure, Request, Response};
use near::agent::host;

struct Neighbor;

export!(Neighbor);

fn fetch(url: &str) -> Response {
    match host::http_request("GET", url, "", None, None) {
        Ok(response) => Response::Success(format!(r#"{{"status": {}}}"#, response.status)),
        Err(failure) => Response::Success(format!(
            r#"{{"kind": "{:?}", "sent": {}}}"#,
            failure.kind, failure.request_sent
        )),
    }
}

impl Guest for Neighbor {
    fn execute(request: Request) -> Response {
        let text = request.params.split('"').nth(3).unwrap_or_default();
        let kind = match text {
            "input" => ErrorKind::Input,
            "auth" => ErrorKind::AuthRequired,
            "denied" => ErrorKind::NetworkDenied,
            "failed" => ErrorKind::OperationFailed,
            url => return fetch(url),
        };
        Response::Failure(GuestFailure {
            kind,
            code: Some("E42".to_owned()),
            message: (text != "failed").then(|| "the neighbor is out".to_owned()),
        })
    }

    fn schema() -> String {
        r#"{"type": "object", "properties": {"with": {"type": "string"}}, "required": ["with"]}"#.to_owned()
    }

    fn description() -> String {
        "Fails, or sends a request.".to_owned()
    }
}
