//! Calls every function of `toolwit:plugin`.

wit_bindgen::generate!({ generate_all });

use exports::test::courier::courier::{Guest, ToolResult};
use toolwit::plugin::types::{Artifact, BackgroundCall, ToolError};
use toolwit::plugin::{blackboard, context, output, tools};
use wasip2::http::outgoing_handler::handle;
use wasip2::http::types::{Fields, OutgoingRequest, Scheme};
use wasip2::io::streams::StreamError;

struct Courier;

/// Calls a tool, and returns its outcome.
fn call(tool: &str, arguments: &str) -> Result<String, String> {
    match tools::call(tool, arguments) {
        Ok(result) if result.is_error => Err(format!("error result: {}", result.for_llm)),
        Ok(result) => Ok(result.for_llm),
        Err(error) => Err(error_text(error)),
    }
}

/// Sends a request, reads the full response, and returns its status.
fn fetch(authority: &str) -> Result<u16, String> {
    let request = OutgoingRequest::new(Fields::new());
    request.set_scheme(Some(&Scheme::Http)).map_err(|()| "scheme refused")?;
    request.set_authority(Some(authority)).map_err(|()| "authority refused")?;
    request.set_path_with_query(Some("/")).map_err(|()| "path refused")?;
    let response = handle(request, None).map_err(|error| error.to_string())?;
    response.subscribe().block();
    let response = response.get().ok_or("no response")?.map_err(|()| "taken")?.map_err(|error| error.to_string())?;
    let status = response.status();
    let body = response.consume().map_err(|()| "no body")?;
    let stream = body.stream().map_err(|()| "no stream")?;
    loop {
        match stream.blocking_read(64 << 10) {
            Ok(_) => {}
            Err(StreamError::Closed) => return Ok(status),
            Err(error) => return Err(format!("body: {error}")),
        }
    }
}

fn error_text(error: ToolError) -> String {
    match error {
        ToolError::InvalidArguments(text) => format!("invalid-arguments: {text}"),
        ToolError::Unavailable(text) => format!("unavailable: {text}"),
        ToolError::Denied(text) => format!("denied: {text}"),
        ToolError::Limit(text) => format!("limit: {text}"),
        ToolError::Failed(text) => format!("failed: {text}"),
    }
}

impl Guest for Courier {
    fn read_context(key: String) -> Option<String> {
        context::get(&key)
    }

    fn progress(text: String) {
        output::progress(&text);
    }

    fn communicate(text: String, times: u32) {
        (0..times).for_each(|_| output::communicate(&text));
    }

    fn attach(kind: String, value: String) -> Result<(), String> {
        output::attach(&Artifact { kind, value })
    }

    fn put(name: Option<String>, kind: String, value: String) -> Result<(), String> {
        blackboard::put(name.as_deref(), &Artifact { kind, value })
    }

    fn get(name: String) -> Option<String> {
        blackboard::get(&name).map(|artifact| artifact.value)
    }

    fn names() -> Vec<String> {
        let name = |entry: blackboard::Entry| entry.name.unwrap_or(entry.artifact.kind);
        blackboard::list().into_iter().map(name).collect()
    }

    fn relay(tool: String, arguments: String, times: u32) -> Result<String, String> {
        let mut last = Err("not called".to_owned());
        for _ in 0..times {
            last = call(&tool, &arguments);
        }
        last
    }

    fn fetch_and_relay(authority: String, tool: String, arguments: String, times: u32) -> Vec<String> {
        let own = fetch(&authority).map_or_else(|why| why, |status| status.to_string());
        let relayed = (0..times).map(|_| call(&tool, &arguments).unwrap_or_else(|why| why));
        std::iter::once(own).chain(relayed).collect()
    }

    fn burn(rounds: u32) -> u32 {
        (0..rounds).fold(1, |sum, round| std::hint::black_box(sum ^ round.wrapping_mul(2_654_435_761)))
    }

    fn answer(for_llm: String, for_user: Option<String>, silent: bool, is_error: bool, value: String) -> ToolResult {
        let artifacts = vec![Artifact { kind: "note".to_owned(), value }];
        ToolResult { for_llm, for_user, silent, is_error, artifacts, background: None }
    }

    fn begin(tool: String, arguments: String) -> ToolResult {
        let mut result = Self::answer("begun".to_owned(), None, false, false, "0".to_owned());
        result.background = Some(BackgroundCall { tool, arguments });
        result
    }

    fn burn_and_begin(rounds: u32, tool: String, arguments: String) -> ToolResult {
        let mut result = Self::begin(tool, arguments);
        result.for_user = Some(Self::burn(rounds).to_string());
        result
    }

    fn try_answer(fails: bool) -> Result<ToolResult, String> {
        if fails {
            return Err("it failed".to_owned());
        }
        Ok(Self::answer("fine".to_owned(), None, false, false, "1".to_owned()))
    }
}

export!(Courier);
