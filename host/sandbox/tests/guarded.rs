//! Every entry point of a call has the same limits, redaction, errors and accounting.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::sync::Arc;

use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::Resolve;

use toolwit_core::limits::LimitRequest;
use toolwit_core::{Arguments, Error, ErrorKind, ToolContext, ToolError, ToolResult};
use toolwit_sandbox::{CodeCacheLocation, Plugin, Runtime, RuntimeOptions, Scope, SecretStore};

/// A value that is also a valid name of a function, so that a backtrace can contain it.
const SECRET: &str = "hunter2_correct_horse";

const GRANTS: &str = r#"
version = 1
[[grant]]
plugin = "guest"
any-version = true
secrets = [{ name = "key", expose = true, variable = "KEY" }]
"#;

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
    // At 16: the result of a function that returns the secret. At 32: the same as an error. At 64: the secret. At 128: a counter.
    let text = format!(
        r#"(module
            (memory (export "memory") 1)
            (data (i32.const 16) "\40\00\00\00\15\00\00\00")
            (data (i32.const 32) "\01\00\00\00\40\00\00\00\15\00\00\00")
            (data (i32.const 64) "{SECRET}")
            (data (i32.const 112) "\80\00\00\00\01\00\00\00")
            (data (i32.const 128) "0")
            {others}
            (func ${SECRET} (export "{export}") (result i32) {body}))"#
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

/// A plugin that is granted the secret, with the tool of its entry point.
struct Guest {
    directory: tempfile::TempDir,
    plugin: Arc<Plugin>,
    scope: Scope,
    entry: EntryPoint,
}

impl Guest {
    async fn new(entry: EntryPoint, body: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let (grants, secrets) = (
            directory.path().join("grants.toml"),
            directory.path().join("secrets.json"),
        );
        std::fs::write(&grants, GRANTS).unwrap();
        SecretStore::new(&secrets).set("key", SECRET).unwrap();
        let options = RuntimeOptions {
            code_cache: CodeCacheLocation::Off,
            operator_limits: LimitRequest::none().fuel(1_000_000),
            grants: Some(grants),
            secrets: Some(secrets),
            ..RuntimeOptions::default()
        };
        let runtime = Runtime::new(options).unwrap();
        let plugin = Plugin::from_bytes(&runtime, "guest", component(entry, body))
            .await
            .unwrap();
        Self {
            directory,
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
async fn a_secret_in_an_error_is_redacted_for_every_entry_point() {
    for entry in ENTRY_POINTS {
        let guest = Guest::new(entry, "unreachable").await;
        let error = guest.call().await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Trap, "{entry:?}: {error:?}");
        assert!(error.message.contains("[redacted]"), "{entry:?}: {error}");
        assert!(!format!("{error:?}").contains(SECRET), "{entry:?}: {error:?}");
    }
}

#[tokio::test]
async fn a_secret_in_a_result_is_redacted() {
    for entry in [EntryPoint::Function, EntryPoint::Session] {
        let result = Guest::new(entry, "i32.const 16").await.call().await.unwrap();
        assert!(result.for_llm.contains("[redacted]"), "{entry:?}: {result:?}");
        assert!(!format!("{result:?}").contains(SECRET), "{entry:?}");
    }
    let error = Guest::new(EntryPoint::Discovery, "i32.const 32")
        .await
        .call()
        .await
        .unwrap_err();
    assert_eq!(error.kind, ErrorKind::Tool);
    assert!(
        error.message.contains("[redacted]") && !error.message.contains(SECRET),
        "{error}"
    );
}

#[tokio::test]
async fn grants_that_cannot_be_satisfied_are_an_error_of_their_kind() {
    for entry in ENTRY_POINTS {
        let guest = Guest::new(entry, "unreachable").await;
        SecretStore::new(guest.directory.path().join("secrets.json"))
            .remove("key")
            .unwrap();
        let error = guest.call().await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::MissingKey, "{entry:?}: {error:?}");
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
