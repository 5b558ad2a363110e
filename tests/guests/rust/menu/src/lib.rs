//! A guest whose tools are known only when it runs: the setting `dishes` names them, and `mode` how it misbehaves.

wit_bindgen::generate!({ path: "wit", world: "menu", generate_all });

use std::sync::atomic::{AtomicU32, Ordering};

use exports::test::menu::kitchen;
use exports::toolwit::plugin::dynamic::{Guest, ToolDefinition, ToolError, ToolResult};
use toolwit::plugin::output;
use toolwit::plugin::types::Artifact;
use wasi::config::store;

struct Menu;

static COOKED: AtomicU32 = AtomicU32::new(0);

fn setting(key: &str) -> Option<String> {
    store::get(key).ok().flatten()
}

fn dish(name: &str) -> ToolDefinition {
    ToolDefinition {
        name: name.to_owned(),
        description: format!("Cooks {name} for some guests."),
        input_schema: r##"{"type": "object", "properties": {"guests": {"$ref": "#/$defs/count"}},
            "required": ["guests"], "additionalProperties": false,
            "$defs": {"count": {"type": "integer", "minimum": 1, "maximum": 12}}}"##
            .to_owned(),
        output_schema: None,
    }
}

fn with_schema(schema: &str) -> Vec<ToolDefinition> {
    vec![ToolDefinition { input_schema: schema.to_owned(), ..dish("soup") }]
}

impl Guest for Menu {
    fn tools() -> Result<Vec<ToolDefinition>, String> {
        let dishes = setting("dishes").unwrap_or_else(|| "soup tea".to_owned());
        Ok(match setting("mode").as_deref() {
            None => dishes.split_whitespace().map(dish).collect(),
            Some("closed") => return Err("the kitchen is closed".to_owned()),
            Some("endless") => loop {
                std::hint::black_box(());
            },
            Some("sleep") => {
                std::thread::sleep(std::time::Duration::from_secs(3_600));
                Vec::new()
            }
            Some("trap") => panic!("the kitchen burns"),
            Some("many") => (0..1_000_000).map(|at| dish(&format!("d{at}"))).collect(),
            Some("crowd") => (0..1_000).map(|at| dish(&format!("d{at}"))).collect(),
            Some("long") => vec![ToolDefinition { description: "x".repeat(100 << 20), ..dish("soup") }],
            Some("twice") => vec![dish("get-soup"), dish("get_soup")],
            Some("outside") => with_schema(r#"{"type": "object", "$ref": "http://127.0.0.1:9/schema"}"#),
            Some("deep") => with_schema(&format!("{}{{}}{}", r#"{"type":"object","not":"#.repeat(500), "}".repeat(500))),
            Some(_) => with_schema("no schema"),
        })
    }

    fn call(name: String, arguments: String) -> Result<ToolResult, ToolError> {
        let cooked = COOKED.fetch_add(1, Ordering::Relaxed) + 1;
        output::communicate(&format!("{name} is on the table"));
        let result = ToolResult {
            for_llm: format!("{name} {arguments} {cooked}"),
            for_user: Some(format!("Here is your {name}.")),
            silent: false,
            is_error: false,
            artifacts: vec![Artifact { kind: "meal".to_owned(), value: format!("{{\"dish\": \"{name}\"}}") }],
            background: None,
        };
        Err(match name.as_str() {
            "burnt" => return Ok(ToolResult { is_error: true, for_llm: "it is burnt".to_owned(), ..result }),
            "wrong" => ToolError::InvalidArguments("it was not ordered so".to_owned()),
            "gone" => ToolError::Unavailable("it is sold out".to_owned()),
            "forbidden" => ToolError::Denied("not without a licence".to_owned()),
            "enough" => ToolError::Limit("the stove is taken".to_owned()),
            "failed" => ToolError::Failed("the power is out".to_owned()),
            _ => return Ok(result),
        })
    }
}

impl kitchen::Guest for Menu {
    fn count() -> u32 {
        COOKED.load(Ordering::Relaxed)
    }
}

export!(Menu);
