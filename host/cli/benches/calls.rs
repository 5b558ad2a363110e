//! Compares calls through Toolwit with the same calls through bare wasmtime, as ratios within one run.
//!
//! `cargo bench` builds the shipped plugins first. Rounds of both sides alternate, so that a change of the machine's speed
//! affects both. The reported ratio is the median of the ratios of all rounds. Absolute times depend on the machine.
//! `cargo bench -- entity` runs only the benchmarks of this name: `fresh`, `throughput`, `entity`, `start` or `languages`.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::field_reassign_with_default
)]
#![allow(missing_docs, unreachable_pub)]

mod languages;
mod process;
mod raw;

use std::path::Path;
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use toolwit::build::{Build, Silent};
use toolwit::sandbox::{CodeCacheLocation, Plugin, Runtime, RuntimeOptions, Scope};
use toolwit::tool::ToolLookup;
use toolwit::{Arguments, Tool, ToolContext, ToolSet};

/// Rounds of each side. `TOOLWIT_BENCH_ROUNDS` sets another number, for example for a profiler.
#[expect(clippy::disallowed_methods, reason = "a benchmark is configured by variables")]
static ROUNDS: LazyLock<usize> = LazyLock::new(|| {
    std::env::var("TOOLWIT_BENCH_ROUNDS").map_or(60, |rounds| rounds.parse().expect("a number of rounds"))
});
const CALLS_PER_ROUND: u32 = 100;

/// A small component without imports, to measure the overhead of a call whose guest does almost nothing.
const ADD: &str = r#"(component
    (core module $m (func (export "add") (param i32 i32) (result i32) local.get 0 local.get 1 i32.add))
    (core instance $i (instantiate $m))
    (func (export "add") (param "a" u32) (param "b" u32) (result u32) (canon lift (core func $i "add"))))"#;

fn main() {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    if process::is_child(&arguments) {
        return;
    }
    let words: Vec<_> = arguments.iter().filter(|word| !word.starts_with('-')).collect();
    let is_wanted = |name: &str| words.is_empty() || words.iter().any(|word| name.contains(word.as_str()));
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let options = RuntimeOptions {
            code_cache: CodeCacheLocation::Off,
            ..RuntimeOptions::default()
        };
        let host = Runtime::new(options).unwrap();
        let subjects = [
            Subject::load(
                &host,
                "add",
                &wat::parse_str(ADD).unwrap(),
                "add",
                r#"{"a": 40, "b": 2}"#,
            )
            .await,
            Subject::load(
                &host,
                "calc",
                &shipped("calc").await,
                "evaluate",
                r#"{"expression": "2 * (3 + 4)"}"#,
            )
            .await,
            Subject::load(
                &host,
                "text",
                &shipped("text").await,
                "slugify",
                r#"{"text": "Hello, wide World"}"#,
            )
            .await,
        ];
        if is_wanted("fresh") {
            for subject in &subjects {
                fresh(subject).await;
            }
        }
        if is_wanted("throughput") {
            throughput(&subjects[1]).await;
        }
        if is_wanted("entity") {
            live_entity(&host).await;
        }
        if is_wanted("languages") {
            languages::languages(&host).await;
        }
        if is_wanted("start") {
            process::start().await;
            process::first_call().await;
        }
    });
}

/// One function, ready to be called on both sides.
struct Subject {
    name: &'static str,
    tool: Arc<dyn Tool>,
    arguments: Arguments,
    /// Shared by all calls, as in a conversation.
    context: ToolContext,
    raw: Arc<raw::Raw>,
}

impl Subject {
    async fn load(host: &Arc<Runtime>, name: &'static str, bytes: &[u8], function: &str, arguments: &str) -> Self {
        let plugin = Plugin::from_bytes(host, name, bytes.to_vec()).await.unwrap();
        let tools = plugin.tools(&Scope::new());
        let tool = tools
            .into_iter()
            .find(|tool| tool.definition().name() == function)
            .expect("the function is there");
        let arguments = toolwit::tool::parse_arguments(arguments).unwrap().arguments;
        let raw = Arc::new(raw::Raw::new(bytes, tool.definition().id.as_str(), &arguments));
        Self {
            name,
            tool,
            arguments,
            context: ToolContext::new(),
            raw,
        }
    }

    async fn call(&self) {
        let result = self.tool.call(self.arguments.clone(), &self.context).await.unwrap();
        assert!(!result.is_error(), "{}", result.for_llm);
    }
}

/// Measures calls with a fresh instance each: JSON to JSON with all limits, against instantiate + dynamic call + drop.
async fn fresh(subject: &Subject) {
    let (mut ours, mut raw) = (Vec::new(), Vec::new());
    for _ in 0..*ROUNDS {
        let started = Instant::now();
        for _ in 0..CALLS_PER_ROUND {
            subject.call().await;
        }
        ours.push(started.elapsed() / CALLS_PER_ROUND);
        let started = Instant::now();
        for _ in 0..CALLS_PER_ROUND {
            subject.raw.call();
        }
        raw.push(started.elapsed() / CALLS_PER_ROUND);
    }
    report(
        &format!("fresh call, {}", subject.name),
        &mut ours,
        &mut raw,
        "at most 1.5",
    );
}

/// Measures a method of a live entity, against the same dynamic call on a live resource.
async fn live_entity(host: &Arc<Runtime>) {
    let bytes = shipped("customers").await;
    let plugin = Plugin::from_bytes(host, "customers", bytes.clone()).await.unwrap();
    let mut tools = ToolSet::new();
    plugin
        .tools(&Scope::new())
        .into_iter()
        .for_each(|tool| drop(tools.add(tool)));
    let find = |tools: &ToolSet, name: &str| match tools.look_up(name) {
        ToolLookup::Found(found) => found.tool,
        _ => panic!("{name} is there"),
    };
    let arguments = toolwit::tool::parse_arguments(r#"{"name": "John Smith"}"#)
        .unwrap()
        .arguments;
    let found = find(&tools, "search_customer")
        .call(arguments, &ToolContext::new())
        .await
        .unwrap();
    found.providers[0]
        .tools()
        .into_iter()
        .for_each(|tool| drop(tools.add(tool)));
    let method = find(&tools, "customer_c123_get_average_spend");
    let context = ToolContext::new();
    let mut live = raw::LiveCustomer::new(&bytes);
    let (mut ours, mut raw) = (Vec::new(), Vec::new());
    for _ in 0..*ROUNDS {
        let started = Instant::now();
        for _ in 0..CALLS_PER_ROUND {
            method.call(Arguments::new(), &context).await.unwrap();
        }
        ours.push(started.elapsed() / CALLS_PER_ROUND);
        let started = Instant::now();
        for _ in 0..CALLS_PER_ROUND {
            live.get_average_spend();
        }
        raw.push(started.elapsed() / CALLS_PER_ROUND);
    }
    report("method of a live entity", &mut ours, &mut raw, "at most 3");
}

/// Measures calls per second: two tasks on two workers, against two threads of bare wasmtime.
async fn throughput(subject: &Subject) {
    const CALLS: u32 = 2_000;
    let (mut ours, mut raw) = (Vec::new(), Vec::new());
    for _ in 0..*ROUNDS / 6 {
        let started = Instant::now();
        let tasks: Vec<_> = (0..2)
            .map(|_| {
                let (tool, arguments, context) =
                    (subject.tool.clone(), subject.arguments.clone(), subject.context.clone());
                tokio::spawn(async move {
                    for _ in 0..CALLS {
                        tool.call(arguments.clone(), &context).await.unwrap();
                    }
                })
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
        ours.push(started.elapsed() / (2 * CALLS));
        let started = Instant::now();
        std::thread::scope(|threads| {
            for _ in 0..2 {
                threads.spawn(|| (0..CALLS).for_each(|_| subject.raw.call()));
            }
        });
        raw.push(started.elapsed() / (2 * CALLS));
    }
    let (ours, raw) = (median(&mut ours), median(&mut raw));
    println!(
        "{:<28} {:>10.0} calls/s  raw {:>10.0} calls/s  share {:>5.2}  (target: at least 0.7)",
        "throughput on two cores",
        1.0 / ours.as_secs_f64(),
        1.0 / raw.as_secs_f64(),
        raw.as_secs_f64() / ours.as_secs_f64()
    );
}

/// Builds a shipped plugin and returns its component.
async fn shipped(name: &str) -> Vec<u8> {
    let project = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../plugins").join(name);
    let built = Build::new(project).run(&Silent).await.expect("the plugin builds");
    tokio::fs::read(built.component).await.unwrap()
}

fn report(what: &str, ours: &mut [Duration], raw: &mut [Duration], target: &str) {
    let rounds = ours.iter().zip(raw.iter());
    let mut ratios: Vec<_> = rounds
        .map(|(ours, raw)| ours.as_secs_f64() / raw.as_secs_f64())
        .collect();
    ratios.sort_unstable_by(f64::total_cmp);
    let ratio = ratios[ratios.len() / 2];
    let (ours, raw) = (median(ours), median(raw));
    println!(
        "{what:<28} {:>9.2} µs  raw {:>9.2} µs  ratio {:>5.2}  (target: {target})",
        ours.as_secs_f64() * 1e6,
        raw.as_secs_f64() * 1e6,
        ratio
    );
}

fn median(times: &mut [Duration]) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}
