//! A guest of the contract of IronClaw in version 0.3. The property `do` of its parameters names what it attempts with `with`; the setting
//! `mode` names how it misbehaves when it is described.

wit_bindgen::generate!({ path: "wit", world: "nearby", generate_all });

use exports::near::agent::tool::{Guest, Request, Response};
use near::agent::host::{self, LogLevel};
use wasi::config::store;

struct Nearby;

export!(Nearby);

fn mode() -> Option<String> {
    store::get("mode").ok().flatten()
}

/// Returns a text of the parameters. The host writes them without spaces, and the tests use no escapes.
fn field(params: &str, name: &str) -> String {
    let start = format!("\"{name}\":\"");
    let rest = params.split_once(&start).map_or("", |(_, rest)| rest);
    rest.split('"').next().unwrap_or_default().to_owned()
}

fn fetch(url: &str) -> Result<String, String> {
    let headers = r#"{"x-guest": "nearby", "authorization": "Bearer of-the-guest"}"#;
    let response = host::http_request("POST", url, headers, Some(b"body"), Some(5_000))?;
    Ok(format!(
        r#"{{"status": {}, "headers": {}, "body": "{}"}}"#,
        response.status,
        response.headers_json,
        String::from_utf8_lossy(&response.body)
    ))
}

fn attempt(action: &str, with: &str, params: &str) -> Result<String, String> {
    Ok(match action {
        "params" => params.to_owned(),
        "now" => host::now_millis().to_string(),
        "read" => match host::workspace_read(with) {
            Some(text) => format!("\"{text}\""),
            None => "null".to_owned(),
        },
        "fetch" => fetch(with)?,
        "header" => return host::http_request("GET", with, r#"{"host": "other"}"#, None, None).map(|_| "0".to_owned()),
        "secret" => host::secret_exists(with).to_string(),
        "tool" => host::tool_invoke(with, r#"{"a": 20, "b": 22}"#)?,
        "log" => {
            host::log(LogLevel::Warn, "the door is open");
            "true".to_owned()
        }
        "flood" => {
            (0..9_000).for_each(|_| host::log(LogLevel::Info, &"x".repeat(1_000)));
            "true".to_owned()
        }
        "calls" => loop {
            host::log(LogLevel::Info, "again");
        },
        "text" => "this is no JSON".to_owned(),
        "spin" => loop {
            std::hint::black_box(());
        },
        "trap" => panic!("the bridge is out"),
        _ => return Err(format!("there is no way to do {action}")),
    })
}

impl Guest for Nearby {
    fn execute(request: Request) -> Response {
        let action = field(&request.params, "do");
        if action == "both" {
            return Response {
                output: Some("{}".to_owned()),
                error: Some("it went wrong".to_owned()),
            };
        }
        match attempt(&action, &field(&request.params, "with"), &request.params) {
            Ok(output) => Response {
                output: (action != "nothing").then_some(output),
                error: None,
            },
            Err(error) => Response {
                output: None,
                error: Some(error),
            },
        }
    }

    fn schema() -> String {
        match mode().as_deref() {
            Some("long") => format!(r#"{{"type": "object", "title": "{}"}}"#, "x".repeat(10 << 20)),
            Some("outside") => r#"{"type": "object", "$ref": "file:///etc/passwd"}"#.to_owned(),
            Some("text") => "no schema".to_owned(),
            Some("endless") => loop {
                std::hint::black_box(());
            },
            Some("trap") => panic!("the sign is gone"),
            _ => r#"{"type": "object", "properties": {"do": {"type": "string"}, "with": {"type": "string"}}, "required": ["do"]}"#
                .to_owned(),
        }
    }

    fn description() -> String {
        "Attempts what a test requests.".to_owned()
    }
}
