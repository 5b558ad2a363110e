//! The limits of a call on its log, its artifacts and its resources, and on the result of a program.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod wasi_wit;

use std::sync::Arc;

use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::Resolve;

use toolwit_core::limits::LimitOverrides;
use toolwit_core::{Arguments, Error, ErrorKind, Tool, ToolContext, ToolError, ToolResult};
use toolwit_sandbox::{CodeCacheLocation, Plugin, Runtime, RuntimeOptions, Scope};
use wasi_wit::{CLI, IO};

const WORLDS: &str = r#"
package test:outputs;
world output { import wasi:cli/stdout@0.2.0; import wasi:cli/stderr@0.2.0; }
world artifacts {
    include output;
    import toolwit:plugin/output@0.1.0;
    use toolwit:plugin/types@0.1.0.{tool-result};
    export run: func() -> tool-result;
}
interface things { resource thing { constructor(); } }
world session { include output; export things; export run: func(); }
world program { include output; export wasi:cli/run@0.2.0; }
"#;

/// Writes the ten control characters at 64 to standard output.
const WRITE_CONTROL_CHARACTERS: &str = "(call $write (call $stdout) (i32.const 64) (i32.const 10) (i32.const 256))";

/// Writes the ten letters at 80 to standard error.
const WRITE_LETTERS: &str = "(call $write (call $stderr) (i32.const 80) (i32.const 10) (i32.const 256))";

/// The imports of a module that writes to the output streams.
const IMPORTS: &str = r#"
    (import "wasi:cli/stdout@0.2.0" "get-stdout" (func $stdout (result i32)))
    (import "wasi:cli/stderr@0.2.0" "get-stderr" (func $stderr (result i32)))
    (import "wasi:io/streams@0.2.0" "[method]output-stream.blocking-write-and-flush"
        (func $write (param i32 i32 i32 i32)))"#;

/// Encodes a component of a world. At 64 are ten control characters, and at 80 ten letters.
fn component(world: &str, functions: &str) -> Vec<u8> {
    let text = format!(
        r#"(module
            {functions}
            (memory (export "memory") 1)
            (data (i32.const 64) "\01\01\01\01\01\01\01\01\01\01")
            (data (i32.const 80) "abcdefghij")
            (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32) i32.const 1024))"#
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

/// Returns the tool `run` of a component. It works as long as its scope exists.
async fn tool(component: Vec<u8>) -> (Scope, Arc<dyn Tool>) {
    let options = RuntimeOptions {
        code_cache: CodeCacheLocation::Off,
        ..RuntimeOptions::default()
    };
    let runtime = Runtime::new(options).unwrap();
    let plugin = Plugin::from_bytes(&runtime, "guest", component).await.unwrap();
    let scope = Scope::new();
    let tools = plugin.tools(&scope);
    let is_run = |tool: &Arc<dyn Tool>| tool.definition().id.as_str().contains("run");
    let tool = tools.into_iter().find(is_run).unwrap();
    (scope, tool)
}

async fn call(tool: &Arc<dyn Tool>, limits: LimitOverrides) -> Result<ToolResult, Error> {
    let context = ToolContext::new().with_extension(limits);
    let outcome = tool.call(Arguments::new(), &context).await;
    outcome.map_err(|error| match error {
        ToolError::Model(error) | ToolError::Operator(error) => error,
    })
}

#[tokio::test]
async fn the_error_of_too_many_artifacts_has_the_log_of_the_guest() {
    let kind = "k".repeat(200);
    // Attaches an artifact of 3 bytes, and returns one of 201 bytes. At 128: the result, with its artifact at 192.
    let functions = format!(
        r#"{IMPORTS}
        (import "toolwit:plugin/output@0.1.0" "attach" (func $attach (param i32 i32 i32 i32 i32)))
        (data (i32.const 112) "7")
        (data (i32.const 152) "\c0\00\00\00\01\00\00\00")
        (data (i32.const 192) "\00\10\00\00\c8\00\00\00\70\00\00\00\01\00\00\00")
        (data (i32.const 4096) "{kind}")
        (func (export "run") (result i32)
            {WRITE_LETTERS}
            (call $attach (i32.const 80) (i32.const 2) (i32.const 112) (i32.const 1) (i32.const 256))
            i32.const 128)"#
    );
    let (_scope, tool) = tool(component("artifacts", &functions)).await;
    let limited = |bytes| LimitOverrides::default().with_artifact_bytes_max(bytes);
    let result = call(&tool, limited(204)).await.unwrap();
    assert_eq!((result.artifacts.len(), result.log.as_deref()), (2, Some("abcdefghij")));
    let error = call(&tool, limited(203)).await.unwrap_err();
    assert_eq!(error.limit.as_ref().unwrap().limit, "artifact_bytes_max", "{error:?}");
    assert_eq!(error.log.as_deref(), Some("abcdefghij"));
}

#[tokio::test]
async fn the_result_of_a_program_is_limited_with_its_escapes_and_its_error_output() {
    // The JSON without output has 41 bytes. A control character has six bytes in it.
    for (write, bytes, log) in [
        (WRITE_CONTROL_CHARACTERS, 41 + 60, None),
        (WRITE_LETTERS, 41 + 10, Some("abcdefghij")),
    ] {
        let functions =
            format!(r#"{IMPORTS} (func (export "wasi:cli/run@0.2.0#run") (result i32) {write} i32.const 0)"#);
        let (_scope, tool) = tool(component("program", &functions)).await;
        let limited = |bytes| LimitOverrides::default().with_result_bytes_max(bytes);
        let result = call(&tool, limited(bytes)).await.unwrap();
        assert_eq!(result.for_llm.len() as u64, bytes, "{}", result.for_llm);
        let error = call(&tool, limited(bytes - 1)).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::ResultBytes, "{error:?}");
        assert_eq!(error.limit.as_ref().unwrap().used, bytes);
        assert_eq!(error.log.as_deref(), log, "the error output is the log");
    }
}

#[tokio::test]
async fn the_error_of_a_program_has_its_error_output_as_log() {
    let too_much_output = format!("{WRITE_CONTROL_CHARACTERS} i32.const 0");
    for (end, kind) in [
        ("unreachable", ErrorKind::Trap),
        (&too_much_output, ErrorKind::ResultBytes),
    ] {
        let functions =
            format!(r#"{IMPORTS} (func (export "wasi:cli/run@0.2.0#run") (result i32) {WRITE_LETTERS} {end})"#);
        let (_scope, tool) = tool(component("program", &functions)).await;
        let limits = LimitOverrides::default().with_result_bytes_max(9);
        let error = call(&tool, limits).await.unwrap_err();
        assert_eq!(
            (error.kind, error.log.as_deref()),
            (kind, Some("abcdefghij")),
            "{error:?}"
        );
    }
}

#[tokio::test]
async fn a_call_on_a_session_instance_has_its_own_limits_of_log_and_resources() {
    // Each call creates a stream and does not drop it.
    let functions = format!(
        r#"{IMPORTS}
        (func (export "test:outputs/things#[constructor]thing") (result i32) unreachable)
        (func (export "run") {WRITE_LETTERS})"#
    );
    let (_scope, tool) = tool(component("session", &functions)).await;
    let result = call(&tool, LimitOverrides::default()).await.unwrap();
    assert_eq!(result.log.as_deref(), Some("abcdefghij"));
    let lower = LimitOverrides::default().with_log_bytes_max(3).with_resources_max(100);
    let result = call(&tool, lower).await.unwrap();
    assert_eq!(result.log.as_deref(), Some("abc\n[7 more bytes were dropped]"));
    let lowest = LimitOverrides::default().with_resources_max(1);
    let error = call(&tool, lowest).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Resources, "{error:?}");
    call(&tool, LimitOverrides::default()).await.unwrap();
}
