//! Keeps an instance, and calls tools from within it.

wit_bindgen::generate!({ generate_all });

use std::sync::atomic::{AtomicU32, Ordering};

use exports::test::looper::loops::{Guest, GuestRing};
use toolwit::plugin::tools;
use toolwit::plugin::types::ToolError;

struct Looper;
struct Ring;

static TOUCHES: AtomicU32 = AtomicU32::new(0);

impl GuestRing for Ring {
    fn new() -> Self {
        Self
    }

    fn id(&self) -> String {
        "one".to_owned()
    }
}

impl Guest for Looper {
    type Ring = Ring;

    fn pass(tool: String, arguments: String) -> Result<String, String> {
        match tools::call(&tool, &arguments) {
            Ok(result) => Ok(result.for_llm),
            Err(ToolError::Failed(text) | ToolError::Denied(text) | ToolError::Limit(text)) => Err(text),
            Err(other) => Err(format!("{other:?}")),
        }
    }

    fn touch() -> u32 {
        TOUCHES.fetch_add(1, Ordering::Relaxed) + 1
    }
}

export!(Looper);
