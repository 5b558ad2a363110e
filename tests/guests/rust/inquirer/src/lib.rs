//! Asks a person, writes log messages, and sends HTTP requests.

wit_bindgen::generate!({ generate_all });

use exports::test::inquirer::inquirer::{Guest, Reply};
use toolwit::plugin::ask::{self, Answer, AskError, Form};
use toolwit::plugin::http::{self, Header, HttpError, Request};
use toolwit::plugin::log::{self, Level};

struct Inquirer;

fn ask(key: &str, message: String, schema: String) -> Result<String, String> {
    match ask::ask(&Form { key: key.to_owned(), message, schema }) {
        Ok(Answer::Accepted(values)) => Ok(values),
        Ok(Answer::Declined) => Ok("declined".to_owned()),
        Ok(Answer::Cancelled) => Ok("cancelled".to_owned()),
        Err(AskError::InvalidForm(message)) => Err(format!("invalid form: {message}")),
        Err(AskError::Denied(message)) => Err(format!("denied: {message}")),
        Err(AskError::Unavailable(message)) => Err(format!("unavailable: {message}")),
        Err(AskError::Limit(message)) => Err(format!("limit: {message}")),
    }
}

fn ask_whether(key: &str, message: &str) -> Result<String, String> {
    let schema = r#"{"type": "object", "properties": {"sure": {"type": "boolean"}}, "required": ["sure"]}"#;
    ask(key, message.to_owned(), schema.to_owned())
}

fn send(
    method: String,
    url: String,
    headers: Vec<(String, String)>,
    body: Option<String>,
) -> Result<Reply, String> {
    let headers = headers.into_iter().map(|(name, value)| Header { name, value });
    let request = Request {
        method,
        url,
        headers: headers.collect(),
        body: body.map(String::into_bytes),
        timeout_ms: None,
    };
    let response = http::send(&request).map_err(|error| match error {
        HttpError::InvalidRequest(message) => format!("invalid: {message}"),
        HttpError::Denied(message) => format!("denied: {message}"),
        HttpError::Limit(message) => format!("limit: {message}"),
        HttpError::Failed(message) => format!("failed: {message}"),
    })?;
    let headers = response.headers.into_iter().map(|header| (header.name, header.value));
    Ok(Reply {
        status: response.status,
        headers: headers.collect(),
        body: String::from_utf8_lossy(&response.body).into_owned(),
    })
}

fn text(outcome: Result<String, String>) -> String {
    outcome.unwrap_or_else(|error| error)
}

impl Guest for Inquirer {
    fn inquire(message: String, schema: String) -> Result<String, String> {
        ask("question", message, schema)
    }

    fn inquire_often(times: u32, keys: u32) -> Vec<String> {
        let keys = (0..times).map(|number| format!("q{}", number % keys));
        keys.map(|key| text(ask_whether(&key, "Sure?"))).collect()
    }

    fn send_and_inquire(method: String, url: String) -> Vec<String> {
        let sent = send(method, url, Vec::new(), None).map(|reply| reply.body);
        vec![text(sent), text(ask_whether("continue", "Continue?"))]
    }

    fn inquire_and_burn(rounds: u32) -> u32 {
        let _ = ask_whether("compute", "Compute?");
        (0..rounds).fold(1_u32, |sum, round| std::hint::black_box(sum.wrapping_mul(31).wrapping_add(round)))
    }

    fn record_all(text: String) {
        for level in [
            Level::Debug,
            Level::Info,
            Level::Notice,
            Level::Warning,
            Level::Error,
            Level::Critical,
            Level::Alert,
            Level::Emergency,
        ] {
            log::log(level, &text);
        }
    }

    fn send(
        method: String,
        url: String,
        headers: Vec<(String, String)>,
        body: Option<String>,
    ) -> Result<Reply, String> {
        send(method, url, headers, body)
    }
}

export!(Inquirer);
