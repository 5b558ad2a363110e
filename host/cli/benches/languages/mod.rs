//! A new project in each language whose toolchain is installed: its first call and later calls, against bare wasmtime.

use std::sync::Arc;
use std::time::Instant;

use toolwit::build::{Build, Language, NewProject, Silent};
use toolwit::sandbox::{Plugin, Runtime, Scope};
use toolwit::{Arguments, Tool, ToolContext};

use crate::{raw, report};

/// The rounds of the first call, each of which compiles. Interpreters take seconds.
const FIRST_CALL_ROUNDS: usize = 3;
const ROUNDS: usize = 20;
const CALLS_PER_ROUND: u32 = 50;

/// Measures every language. One without its toolchain is skipped by name.
pub async fn languages(host: &Arc<Runtime>) {
    for language in Language::ALL {
        let parent = tempfile::tempdir().unwrap();
        let name = format!("bench-{}", language.short_name());
        let directory = parent.path().join(&name);
        NewProject::new(&directory, language).unwrap().write().unwrap();
        if let Some(missing) = language.missing_tool(&directory) {
            println!(
                "{:<28} skipped: `{}` is not installed",
                language.to_string(),
                missing.program
            );
            continue;
        }
        // Not in `target/plugins`, which `toolwit demo` and the tests of the book share.
        let component = directory.join("component.wasm");
        let build = Build::new(&directory).out(component);
        let built = build.run(&Silent).await.expect("the project builds");
        let bytes = tokio::fs::read(built.component).await.unwrap();
        compare(host, language, &name, bytes).await;
    }
}

/// Compares the first call of a component, compiling included, and later calls on its live instance.
async fn compare(host: &Arc<Runtime>, language: Language, name: &str, bytes: Vec<u8>) {
    let arguments = toolwit::tool::parse_arguments(r#"{"text": "Hello"}"#)
        .unwrap()
        .arguments;
    let context = ToolContext::new();
    let (mut ours, mut bare) = (Vec::new(), Vec::new());
    let mut live = None;
    for _ in 0..FIRST_CALL_ROUNDS {
        let started = Instant::now();
        let tool = echo(host, name, bytes.clone()).await;
        call(&*tool, &arguments, &context).await;
        ours.push(started.elapsed());
        let started = Instant::now();
        let mut raw = raw::LiveFunction::new(&bytes, tool.definition().id.as_str(), "Hello");
        raw.call();
        bare.push(started.elapsed());
        live = Some((tool, raw));
    }
    report(&format!("first call, {language}"), &mut ours, &mut bare, "at most 1.3");
    let (tool, mut raw) = live.expect("there are several rounds");
    let (mut ours, mut bare) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let started = Instant::now();
        for _ in 0..CALLS_PER_ROUND {
            call(&*tool, &arguments, &context).await;
        }
        ours.push(started.elapsed() / CALLS_PER_ROUND);
        let started = Instant::now();
        for _ in 0..CALLS_PER_ROUND {
            raw.call();
        }
        bare.push(started.elapsed() / CALLS_PER_ROUND);
    }
    report(&format!("later call, {language}"), &mut ours, &mut bare, "at most 1.3");
}

/// Loads the component as a plugin, and returns its tool `echo`.
async fn echo(host: &Arc<Runtime>, name: &str, bytes: Vec<u8>) -> Arc<dyn Tool> {
    let plugin = Plugin::from_bytes(host, name, bytes).await.unwrap();
    let tools = plugin.tools(&Scope::new());
    let mut tools = tools.into_iter().filter(|tool| tool.definition().name() == "echo");
    tools.next().expect("the example has it")
}

async fn call(tool: &dyn Tool, arguments: &Arguments, context: &ToolContext) {
    let result = tool.call(arguments.clone(), context).await.unwrap();
    assert_eq!(result.for_llm, "Hello");
}
