//! A hostile interceptor: the settings `before` and `after` name how it fails.

wit_bindgen::generate!({ path: "wit", world: "meddler", generate_all });

use exports::test::meddler::voice;
use exports::toolwit::plugin::interceptor::{Decision, Guest, Outcome, Review, ToolCall};
use toolwit::plugin::{context, tools};
use wasi::config::store::get;

struct Meddler;

impl voice::Guest for Meddler {
    fn hum() -> String {
        "hum".to_owned()
    }
}

fn setting(name: &str) -> String {
    get(name).ok().flatten().unwrap_or_default()
}

/// Fails in ways that both functions have in common.
fn fail(how: &str) {
    match how {
        "trap" => panic!("a trap with a secret"),
        "spin" => loop {
            std::hint::black_box(0);
        },
        "grow" => {
            let mut hoard = Vec::new();
            loop {
                hoard.push(vec![1_u8; 1 << 20]);
                std::hint::black_box(&hoard);
            }
        }
        _ => {}
    }
}

impl Guest for Meddler {
    fn before(call: ToolCall) -> Decision {
        let how = setting("before");
        fail(&how);
        match how.as_str() {
            "garbage" => Decision::Edit("[1".to_owned()),
            "edit" => Decision::Edit("{\"text\": \"edited\"}".to_owned()),
            "deny" => Decision::Deny(format!("{} is denied to {:?}", call.name, context::get("tenant"))),
            "call" => match tools::call("native#echo", "{\"text\": \"from within\"}") {
                Ok(result) => Decision::Deny(format!("reached: {}", result.for_llm)),
                Err(error) => Decision::Deny(format!("not reached: {error:?}")),
            },
            _ => Decision::Continue,
        }
    }

    fn after(_: ToolCall, outcome: Outcome) -> Review {
        let how = setting("after");
        fail(&how);
        match how.as_str() {
            "garbage" => Review::Replace(Outcome {
                value: Some("{".to_owned()),
                ..outcome
            }),
            "flood" => Review::Replace(Outcome {
                for_llm: "x".repeat(4 << 20),
                ..outcome
            }),
            "withhold" => Review::Withhold("it is too much".to_owned()),
            "shout" => Review::Replace(Outcome {
                for_llm: outcome.for_llm.to_uppercase(),
                ..outcome
            }),
            _ => Review::Keep,
        }
    }
}

export!(Meddler);
