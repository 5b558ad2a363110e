//! A guest of the contract of ACT, whose setting `mode` names how it misbehaves when its tools are listed.

wit_bindgen::generate!({ path: "wit", world: "actor", generate_all });

mod web;

use act::core::types::{Error, LocalizedString};
use act::tools::types::{ContentPart, ToolDefinition};
use exports::act::tools::tool_provider::{Guest, ListToolsResponse, ToolEvent, ToolResult};
use wasi::config::store;

struct Actor;

export!(Actor);

type Metadata = Vec<(String, Vec<u8>)>;

/// The tools without parameters of their own.
const PLAIN: [&str; 15] = [
    "raw",
    "read",
    "stream",
    "endless-stream",
    "unfinished",
    "picture",
    "mixed",
    "nothing",
    "partial",
    "junk",
    "liar",
    "giant",
    "spin",
    "trap",
    "flood",
];

/// The tools that fail, with the kinds of their errors.
const FAILING: [(&str, &str); 6] = [
    ("missing", "std:not-found"),
    ("wrong", "std:invalid-args"),
    ("forbidden", "std:capability-denied"),
    ("slow", "std:timeout"),
    ("odd", "test:odd"),
    ("bound", "std:session-not-found"),
];

fn mode() -> Option<String> {
    store::get("mode").ok().flatten()
}

fn plain(text: &str) -> LocalizedString {
    LocalizedString::Plain(text.to_owned())
}

fn tool(name: &str, schema: &str, metadata: Metadata) -> ToolDefinition {
    ToolDefinition {
        name: name.to_owned(),
        description: plain(&format!("Does {name}.")),
        parameters_schema: schema.to_owned(),
        metadata,
    }
}

const OBJECT: &str = r#"{"type": "object"}"#;

fn tools() -> Vec<ToolDefinition> {
    // The CBOR of `true`, and of the text "Often.".
    let (yes, often) = (vec![0xf5], b"\x66Often.".to_vec());
    let echo = ToolDefinition {
        description: LocalizedString::Localized(vec![
            ("de".to_owned(), "Wiederholt.".to_owned()),
            ("en-GB".to_owned(), "Repeats its arguments.".to_owned()),
        ]),
        ..tool(
            "echo",
            r#"{"type": "object", "properties": {"value": {}, "count": {"type": "integer"}}, "required": ["value"]}"#,
            vec![
                ("std:read-only".to_owned(), yes.clone()),
                ("std:usage-hints".to_owned(), often),
            ],
        )
    };
    let burn = tool("burn", OBJECT, vec![("std:destructive".to_owned(), yes)]);
    let plain = PLAIN.iter().chain(FAILING.iter().map(|(name, _)| name));
    let plain = plain.map(|name| tool(name, OBJECT, Vec::new()));
    let fetch = tool("fetch", web::SCHEMA, Vec::new());
    [echo, burn, fetch].into_iter().chain(plain).collect()
}

fn listed() -> Result<Vec<ToolDefinition>, String> {
    let with_schema = |schema: &str| Ok(vec![tool("t", schema, Vec::new())]);
    match mode().as_deref() {
        None => Ok(tools()),
        Some("closed") => Err("not on Sundays".to_owned()),
        Some("many") => Ok((0..100_000)
            .map(|at| tool(&format!("t{at}"), OBJECT, Vec::new()))
            .collect()),
        Some("crowd") => Ok((0..300).map(|at| tool(&format!("t{at}"), OBJECT, Vec::new())).collect()),
        Some("long") => with_schema(&format!(r#"{{"type": "object", "title": "{}"}}"#, "x".repeat(10 << 20))),
        Some("outside") => with_schema(r#"{"type": "object", "$ref": "http://127.0.0.1:9/schema"}"#),
        Some("text") => with_schema("no schema"),
        Some("endless") => loop {
            std::hint::black_box(());
        },
        Some(_) => panic!("the curtain falls"),
    }
}

fn part(mime_type: &str, data: impl Into<Vec<u8>>) -> ToolEvent {
    ToolEvent::Content(ContentPart {
        data: data.into(),
        mime_type: Some(mime_type.to_owned()),
        metadata: Vec::new(),
    })
}

fn text(text: impl Into<String>) -> ToolEvent {
    part("text/plain; charset=utf-8", text.into())
}

fn failure(kind: &str, message: &str) -> ToolEvent {
    ToolEvent::Error(Error {
        kind: kind.to_owned(),
        message: plain(message),
        metadata: Vec::new(),
    })
}

/// Returns a stream of `count` texts.
fn stream(count: usize, end: Option<ToolEvent>) -> ToolResult {
    let (mut writer, reader) = wit_stream::new();
    wit_bindgen::spawn_local(async move {
        for at in 0..count {
            if !writer
                .write_all(vec![text(format!("{at} {}", "x".repeat(at.min(1_000))))])
                .await
                .is_empty()
            {
                return;
            }
        }
        writer.write_all(end.into_iter().collect()).await;
    });
    ToolResult::Streaming(reader)
}

fn read() -> ToolEvent {
    match std::fs::read_to_string("/data/note.txt") {
        Ok(note) => text(note),
        Err(error) => failure("std:capability-denied", &error.to_string()),
    }
}

impl Guest for Actor {
    async fn list_tools(_metadata: Metadata) -> Result<ListToolsResponse, Error> {
        match listed() {
            Ok(tools) => Ok(ListToolsResponse {
                metadata: Vec::new(),
                tools,
            }),
            Err(message) => Err(Error {
                kind: "std:internal".to_owned(),
                message: plain(&message),
                metadata: Vec::new(),
            }),
        }
    }

    async fn call_tool(name: String, arguments: Vec<u8>, _metadata: Metadata) -> ToolResult {
        let events = match name.as_str() {
            "echo" => vec![part("application/cbor", arguments)],
            "raw" => vec![text(
                arguments.iter().map(|byte| format!("{byte:02x}")).collect::<String>(),
            )],
            "read" => vec![read()],
            "fetch" => vec![match web::fetch(&arguments) {
                Ok(body) => text(body),
                Err(error) => failure("std:internal", &error),
            }],
            "picture" => vec![part("image/png", vec![1, 2, 3])],
            "mixed" => vec![text("two"), part("application/json", r#"{"a": 1}"#), part("x/y z", "?")],
            "nothing" => Vec::new(),
            "partial" => vec![
                text("half"),
                failure("std:timeout", "no time for the rest"),
                text("never"),
            ],
            "junk" => vec![part("application/cbor", vec![0xff])],
            "liar" => vec![part("application/json", "{")],
            "giant" => vec![text("x".repeat(64 << 20))],
            "stream" => return stream(3, None),
            "endless-stream" => return stream(usize::MAX, None),
            "unfinished" => return stream(2, Some(failure("std:internal", "the ink ran out"))),
            "spin" => loop {
                std::hint::black_box(());
            },
            "trap" => panic!("the stage collapses"),
            "flood" => {
                (0..100_000).for_each(|at| eprintln!("line {at}"));
                vec![text("said everything")]
            }
            name => {
                let kind = FAILING.iter().find(|(failing, _)| *failing == name);
                vec![failure(kind.map_or("std:not-found", |(_, kind)| kind), "it failed")]
            }
        };
        ToolResult::Immediate(events)
    }
}
