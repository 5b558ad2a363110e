//! Asks the host for all that `toolwit:plugin` offers.

wit_bindgen::generate!({ generate_all });

use exports::test::courier::courier::{Guest, ToolResult};
use toolwit::plugin::types::{Artifact, BackgroundCall, ToolError};
use toolwit::plugin::{blackboard, context, output, tools};

struct Courier;

fn told(error: ToolError) -> String {
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

    fn hand_over(kind: String, value: String) -> Result<(), String> {
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
            last = match tools::call(&tool, &arguments) {
                Ok(result) if result.is_error => Err(format!("error result: {}", result.for_llm)),
                Ok(result) => Ok(result.for_llm),
                Err(error) => Err(told(error)),
            };
        }
        last
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

    fn try_answer(fails: bool) -> Result<ToolResult, String> {
        if fails {
            return Err("it failed".to_owned());
        }
        Ok(Self::answer("fine".to_owned(), None, false, false, "1".to_owned()))
    }
}

export!(Courier);
