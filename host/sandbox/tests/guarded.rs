//! Every entry point of a call has the same limits, accounting and treatment of stores.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::sync::Arc;

use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::Resolve;

use toolwit_core::limits::LimitRequest;
use toolwit_core::{Arguments, Error, ErrorKind, ToolContext, ToolError, ToolResult};
use toolwit_sandbox::{CodeCacheLocation, Plugin, Runtime, RuntimeOptions, Scope};

/// The text that the guest returns, 21 bytes long.
const TEXT: &str = "correct_horse_battery";

/// The entry points of the guarded path.
#[derive(Clone, Copy, Debug, PartialEq)]
enum EntryPoint {
    Function,
    Session,
    Command,
    Discovery,
}

const ENTRY_POINTS: [EntryPoint; 4] = [
    EntryPoint::Function,
    EntryPoint::Session,
    EntryPoint::Command,
    EntryPoint::Discovery,
];

impl EntryPoint {
    /// The world of the guest, and the core export that is called.
    fn world(self) -> (&'static str, &'static str) {
        match self {
            Self::Function => ("function", "run"),
            Self::Session => ("session", "run"),
            Self::Command => ("command", "wasi:cli/run@0.2.0#run"),
            Self::Discovery => ("discovery", "toolwit:plugin/dynamic@0.1.0#tools"),
        }
    }
}

const WORLDS: &str = r#"
package test:guarded;
interface things { resource thing { constructor(); } }
world function { export run: func() -> string; }
world session { export things; export run: func() -> string; export crash: func() -> string; }
world command { export wasi:cli/run@0.2.0; }
world discovery { export toolwit:plugin/dynamic@0.1.0; }
"#;

/// Encodes a component whose entry point has this body.
fn component(entry: EntryPoint, body: &str) -> Vec<u8> {
    let (world, export) = entry.world();
    let others = match entry {
        EntryPoint::Session => {
            r#"(func (export "test:guarded/things#[constructor]thing") (result i32) unreachable)
               (func (export "crash") (result i32) unreachable)"#
        }
        EntryPoint::Discovery => {
            r#"(func (export "toolwit:plugin/dynamic@0.1.0#call") (param i32 i32 i32 i32) (result i32) unreachable)
               (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32) i32.const 1024)"#
        }
        EntryPoint::Function | EntryPoint::Command => "",
    };
    // At 16: the result of a function that returns the text. At 64: the text. At 112: the counter as a result. At 128: the counter.
    let text = format!(
        r#"(module
            (memory (export "memory") 1)
            (data (i32.const 16) "\40\00\00\00\15\00\00\00")
            (data (i32.const 64) "{TEXT}")
            (data (i32.const 112) "\80\00\00\00\01\00\00\00")
            (data (i32.const 128) "0")
            {others}
            (func (export "{export}") (result i32) {body}))"#
    );
    let mut module = wat::parse_str(text).unwrap();
    let mut resolve = Resolve::default();
    resolve
        .push_str(
            "cli.wit",
            "package wasi:cli@0.2.0; interface run { run: func() -> result; }",
        )
        .unwrap();
    resolve
        .push_str("plugin.wit", include_str!("../../../wit/plugin.wit"))
        .unwrap();
    let package = resolve.push_str("test.wit", WORLDS).unwrap();
    let world = resolve.select_world(&[package], Some(world)).unwrap();
    embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8).unwrap();
    ComponentEncoder::default().module(&module).unwrap().encode().unwrap()
}

/// A plugin with the tool of its entry point.
struct Guest {
    plugin: Arc<Plugin>,
    scope: Scope,
    entry: EntryPoint,
}

impl Guest {
    async fn new(entry: EntryPoint, body: &str) -> Self {
        let options = RuntimeOptions {
            code_cache: CodeCacheLocation::Off,
            operator_limits: LimitRequest::default().with_fuel_max(1_000_000),
            ..RuntimeOptions::default()
        };
        let runtime = Runtime::new(options).unwrap();
        let plugin = Plugin::from_bytes(&runtime, "guest", component(entry, body))
            .await
            .unwrap();
        Self {
            plugin,
            scope: Scope::new(),
            entry,
        }
    }

    async fn call(&self) -> Result<ToolResult, Error> {
        self.call_tool("run").await
    }

    async fn call_tool(&self, function: &str) -> Result<ToolResult, Error> {
        if self.entry == EntryPoint::Discovery {
            return self.plugin.discover_tools().await.map(|_| ToolResult::text(""));
        }
        let tools = self.plugin.tools(&self.scope);
        let tool = tools
            .iter()
            .find(|tool| tool.definition().id.as_str().contains(function))
            .unwrap();
        let outcome = tool.call(Arguments::new(), &ToolContext::new()).await;
        outcome.map_err(|error| match error {
            ToolError::Model(error) | ToolError::Operator(error) => error,
        })
    }
}

#[tokio::test]
async fn a_limit_stops_every_entry_point_with_its_kind_and_name() {
    for entry in ENTRY_POINTS {
        let guest = Guest::new(entry, "(loop $l (br $l)) unreachable").await;
        let error = guest.call().await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Fuel, "{entry:?}: {error:?}");
        assert_eq!(error.limit.as_ref().unwrap().limit, "fuel_max", "{entry:?}");
    }
}

#[tokio::test]
async fn usage_is_part_of_every_result() {
    for (entry, body) in [
        (EntryPoint::Function, "i32.const 16"),
        (EntryPoint::Session, "i32.const 16"),
        (EntryPoint::Command, "i32.const 0"),
    ] {
        let usage = Guest::new(entry, body).await.call().await.unwrap().usage.unwrap();
        assert!(usage.fuel > 0 && usage.memory_bytes >= 65_536, "{entry:?}: {usage:?}");
    }
}

#[tokio::test]
async fn a_store_that_trapped_is_not_used_again() {
    let count = "(i32.store8 (i32.const 128) (i32.add (i32.load8_u (i32.const 128)) (i32.const 1))) i32.const 112";
    let guest = Guest::new(EntryPoint::Session, count).await;
    assert_eq!(guest.call().await.unwrap().for_llm, "1");
    assert_eq!(guest.call().await.unwrap().for_llm, "2", "a session keeps its store");
    assert_eq!(guest.call_tool("crash").await.unwrap_err().kind, ErrorKind::Trap);
    assert_eq!(guest.call().await.unwrap().for_llm, "1", "a trap drops the store");
    let guest = Guest::new(EntryPoint::Function, count).await;
    for _ in 0..2 {
        assert_eq!(
            guest.call().await.unwrap().for_llm,
            "1",
            "a function has a store for each call"
        );
    }
}
