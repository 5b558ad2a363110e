//! Every entry point of a call has the same limits, authority, redaction, accounting and treatment of stores.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod wasi_wit;

use std::sync::Arc;
use std::time::Duration;

use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::Resolve;

use toolwit_core::limits::LimitOverrides;
use toolwit_core::{Arguments, Error, ErrorKind, ToolContext, ToolError, ToolId, ToolResult};
use toolwit_sandbox::grants::{GrantScope, GrantedVersion, Grants};
use toolwit_sandbox::{CodeCacheLocation, NewGrant, Plugin, Runtime, RuntimeOptions, Scope};
use wasi_wit::{CLI, IO};

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
world imports { import wasi:cli/environment@0.2.0; import wasi:cli/stdout@0.2.0; import wasi:cli/stderr@0.2.0; }
world function { include imports; export run: func() -> string; }
world session { include imports; export things; export run: func() -> string; export crash: func() -> string; }
world command { include imports; export wasi:cli/run@0.2.0; }
world discovery { include imports; export toolwit:plugin/dynamic@0.1.0; }
"#;

/// Writes the text to standard output.
const WRITE: &str = "(call $write (call $stdout) (i32.const 64) (i32.const 21) (i32.const 256))";

/// Reads the environment.
const READ_ENVIRONMENT: &str = "(call $environment (i32.const 248))";

/// Encodes a component whose entry point has this body.
fn component(entry: EntryPoint, body: &str) -> Vec<u8> {
    let (world, export) = entry.world();
    let others = match entry {
        EntryPoint::Session => {
            r#"(func (export "test:guarded/things#[constructor]thing") (result i32) unreachable)
               (func (export "crash") (result i32) unreachable)"#
        }
        EntryPoint::Discovery => {
            r#"(func (export "toolwit:plugin/dynamic@0.1.0#call") (param i32 i32 i32 i32) (result i32) unreachable)"#
        }
        EntryPoint::Function | EntryPoint::Command => "",
    };
    // At 16: the result of a function that returns the text. At 64: the text. At 112: the counter as a result. At 128: the
    // counter. At 144: the result of a discovery, with the tool at 160, its name at 208 and its schema at 224. The text is
    // its description.
    let text = format!(
        r#"(module
            (import "wasi:cli/environment@0.2.0" "get-environment" (func $environment (param i32)))
            (import "wasi:cli/stdout@0.2.0" "get-stdout" (func $stdout (result i32)))
            (import "wasi:cli/stderr@0.2.0" "get-stderr" (func $stderr (result i32)))
            (import "wasi:io/streams@0.2.0" "[method]output-stream.blocking-write-and-flush"
                (func $write (param i32 i32 i32 i32)))
            (memory (export "memory") 1)
            (data (i32.const 144) "\00\00\00\00\a0\00\00\00\01\00\00\00")
            (data (i32.const 160) "\d0\00\00\00\04\00\00\00\40\00\00\00\15\00\00\00\e0\00\00\00\11\00\00\00")
            (data (i32.const 208) "look")
            (data (i32.const 224) "{{\22type\22:\22object\22}}")
            (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32) i32.const 1024)
            (data (i32.const 16) "\40\00\00\00\15\00\00\00")
            (data (i32.const 64) "{TEXT}")
            (data (i32.const 112) "\80\00\00\00\01\00\00\00")
            (data (i32.const 128) "0")
            {others}
            (func (export "{export}") (result i32) {body}))"#
    );
    let mut module = wat::parse_str(text).unwrap();
    let mut resolve = Resolve::default();
    resolve.push_str("io.wit", IO).unwrap();
    resolve.push_str("cli.wit", CLI).unwrap();
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
        Self::with(entry, body, "").await
    }

    /// Creates a guest with a grant. The value of the secret `key` is the text of the guest.
    async fn with(entry: EntryPoint, body: &str, rules: &str) -> Self {
        let grant = format!("version = 1\n[[grant]]\nplugin = \"guest\"\nany-version = true\n{rules}");
        let mut options = RuntimeOptions {
            operator_limits: LimitOverrides::default().with_fuel_max(1_000_000),
            application_grants: vec![NewGrant {
                plugin: "guest".to_owned(),
                version: GrantedVersion::Any,
                scope: GrantScope::Always,
                rules: Grants::parse(grant.as_bytes()).unwrap().grants.remove(0).rules,
            }],
            ..RuntimeOptions::default()
        };
        options.secret_values.set("key", TEXT);
        Self::under(options, entry, body).await
    }

    async fn under(options: RuntimeOptions, entry: EntryPoint, body: &str) -> Self {
        let options = RuntimeOptions {
            code_cache: CodeCacheLocation::Off,
            ..options
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
            let discovered = self.plugin.discover_tools().await?;
            let tools = &discovered.inspection().tools;
            let descriptions: Vec<_> = tools.iter().map(|tool| tool.description.clone()).collect();
            return Ok(ToolResult::text(descriptions.join("\n")));
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

// accept: 119
#[tokio::test]
async fn a_tool_that_the_operator_declares_as_long_running_has_more_time() {
    let spinning = "(loop $spin (br $spin)) unreachable";
    for entry in [EntryPoint::Function, EntryPoint::Session] {
        for (id, kind) in [("guest#run", ErrorKind::Fuel), ("guest#other", ErrorKind::Timeout)] {
            let options = RuntimeOptions {
                operator_limits: LimitOverrides::default()
                    .with_fuel_max(2_000_000_000)
                    .with_wall_max(Duration::from_millis(1)),
                long_running: vec![ToolId::from_text(id)],
                ..RuntimeOptions::default()
            };
            let error = Guest::under(options, entry, spinning).await.call().await.unwrap_err();
            assert_eq!(error.kind, kind, "{entry:?} {id}: {error}");
        }
    }
}
/// The grant under which the text of the guest is a secret.
const EXPOSED: &str = "secrets = [{ name = \"key\", expose = true, variable = \"KEY\" }]";

impl EntryPoint {
    /// A body that returns the text: as result, as standard output, or as the description of a tool.
    fn returns_text(self) -> String {
        match self {
            Self::Function | Self::Session => format!("{WRITE} i32.const 16"),
            Self::Command => format!("{WRITE} i32.const 0"),
            Self::Discovery => format!("{WRITE} i32.const 144"),
        }
    }
}

// attack: C19
#[tokio::test]
async fn a_secret_is_redacted_from_result_and_log_of_every_entry_point() {
    for entry in ENTRY_POINTS {
        let body = entry.returns_text();
        let open = Guest::new(entry, &body).await.call().await.unwrap();
        assert!(
            open.for_llm.contains(TEXT),
            "{entry:?}: without a grant it is not a secret: {open:?}"
        );
        let result = Guest::with(entry, &body, EXPOSED).await.call().await.unwrap();
        assert!(!result.for_llm.contains(TEXT), "{entry:?}: {}", result.for_llm);
        assert!(result.for_llm.contains("[redacted]"), "{entry:?}: {}", result.for_llm);
        assert!(
            !result.value.unwrap_or_default().to_string().contains(TEXT),
            "{entry:?}"
        );
        // The output of a command is its result. A discovery returns tools only.
        let has_log = matches!(entry, EntryPoint::Function | EntryPoint::Session);
        assert_eq!(open.log.as_deref(), has_log.then_some(TEXT), "{entry:?}");
        assert_eq!(result.log.as_deref(), has_log.then_some("[redacted]"), "{entry:?}");
    }
}

// attack: C19
#[tokio::test]
async fn a_secret_is_redacted_from_the_error_of_every_entry_point() {
    let body = format!("{WRITE} unreachable");
    for entry in ENTRY_POINTS {
        let open = Guest::new(entry, &body).await.call().await.unwrap_err();
        let error = Guest::with(entry, &body, EXPOSED).await.call().await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Trap, "{entry:?}: {error:?}");
        // The standard output of a command is not part of its error.
        let has_output = entry != EntryPoint::Command;
        assert_eq!(open.message.contains(TEXT), has_output, "{entry:?}: {open}");
        assert_eq!(error.message.contains("[redacted]"), has_output, "{entry:?}: {error}");
        assert!(!format!("{error:?}").contains(TEXT), "{entry:?}: {error:?}");
    }
}

// attack: C19
#[tokio::test]
async fn the_error_of_a_program_that_trapped_has_its_diagnostics_without_secrets() {
    let body = format!("{} unreachable", WRITE.replace("$stdout", "$stderr"));
    let open = Guest::new(EntryPoint::Command, &body).await.call().await.unwrap_err();
    assert!(
        open.message.contains(&format!("its output ends with: {TEXT}")),
        "{open}"
    );
    assert_eq!(open.log.as_deref(), Some(TEXT));
    let secret = Guest::with(EntryPoint::Command, &body, EXPOSED)
        .await
        .call()
        .await
        .unwrap_err();
    assert!(secret.message.contains("its output ends with: [redacted]"), "{secret}");
    assert!(!format!("{secret:?}").contains(TEXT), "{secret:?}");
}

// accept: 137
#[tokio::test]
async fn no_entry_point_runs_a_guest_whose_granted_secret_is_missing() {
    let missing = "secrets = [{ name = \"gone\", expose = true, variable = \"KEY\" }]";
    for entry in ENTRY_POINTS {
        let error = Guest::with(entry, "unreachable", missing)
            .await
            .call()
            .await
            .unwrap_err();
        assert_eq!(error.kind, ErrorKind::MissingKey, "{entry:?}: {error:?}");
        let error = Guest::with(entry, "unreachable", EXPOSED)
            .await
            .call()
            .await
            .unwrap_err();
        assert_eq!(error.kind, ErrorKind::Trap, "{entry:?}: the guest runs: {error:?}");
    }
}

#[tokio::test]
async fn a_denied_access_is_part_of_every_result() {
    let unset = "env = [{ name = \"TOOLWIT_UNSET\" }]";
    for (entry, rest) in [
        (EntryPoint::Function, "i32.const 16"),
        (EntryPoint::Session, "i32.const 16"),
        (EntryPoint::Command, "i32.const 0"),
    ] {
        let body = format!("{READ_ENVIRONMENT} {rest}");
        let denied = Guest::with(entry, &body, unset).await.call().await.unwrap().denied;
        assert_eq!(denied.len(), 1, "{entry:?}: {denied:?}");
        let reason = "the environment variable `TOOLWIT_UNSET` is not set in the host process, or is not valid Unicode";
        assert_eq!(denied[0].reason, reason, "{entry:?}");
        let granted = Guest::with(entry, &body, EXPOSED).await.call().await.unwrap().denied;
        assert!(granted.is_empty(), "{entry:?}: {granted:?}");
    }
}
