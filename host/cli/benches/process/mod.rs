//! Start-up latency: each measurement runs in a new process, alternating between both sides.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;
use std::time::{Duration, Instant};

use toolwit::Toolwit;
use toolwit::sandbox::{CodeCacheLocation, Scope};
use toolwit::store::SqliteStore;

use super::raw::{self, precompile};
use super::{median, shipped};

const STARTS: usize = 20;
const EXPRESSION: &str = r#"{"expression": "2 * (3 + 4)"}"#;
const EVALUATE: &str = "toolwit-demo:calc/calculator@0.1.0#evaluate";

/// The flags that start this benchmark as a child process, which makes a single call.
const RAW: &str = "--raw-first-call";
const OWN: &str = "--own-first-call";

/// Returns whether this process is a child of the benchmark. A child makes one call and prints the duration in microseconds.
pub fn is_child(arguments: &[String]) -> bool {
    let took = match arguments {
        [flag, component, code, _] if flag == RAW => raw::first_call(Path::new(component), Path::new(code), EVALUATE),
        [flag, component, _, own] if flag == OWN => own_first_call(Path::new(component), Path::new(own)),
        _ => return false,
    };
    println!("{}", took.as_micros());
    true
}

/// Measures the first call of a plugin that is not loaded: its metadata is in the store, its compiled code in the cache.
fn own_first_call(component: &Path, own: &Path) -> Duration {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let host = Toolwit::builder()
            .plugins(component)
            .code_cache(CodeCacheLocation::Directory(own.join("code")))
            .store(Arc::new(SqliteStore::open(&own.join("store.db")).unwrap()));
        let host = host.build().await.unwrap();
        let tools = host.tools(&Scope::new());
        let tool = Toolwit::find_tool(&tools, "evaluate").unwrap();
        let arguments = toolwit::tool::parse_arguments(EXPRESSION).unwrap().arguments;
        let started = Instant::now();
        let result = tool.call(arguments, &toolwit::ToolContext::new()).await.unwrap();
        let took = started.elapsed();
        assert!(result.for_llm.contains("14"), "{}", result.for_llm);
        took
    })
}

/// A temporary directory with a component, its compiled code, and the caches of both sides.
struct Stage {
    directory: tempfile::TempDir,
    component: PathBuf,
    code: PathBuf,
}

impl Stage {
    async fn set() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let bytes = shipped("calc").await;
        let component = directory.path().join("calc.wasm");
        std::fs::write(&component, &bytes).unwrap();
        let code = directory.path().join("calc.code");
        precompile(&bytes, &code);
        Self {
            directory,
            component,
            code,
        }
    }

    /// Returns the command that starts this benchmark as a child process.
    fn child(&self, flag: &str) -> Command {
        let mut child = Command::new(std::env::current_exe().unwrap());
        child
            .arg(flag)
            .arg(&self.component)
            .arg(&self.code)
            .arg(self.directory.path());
        child
    }
}

/// Measures the time from the start of a process to the result of one call with cached compiled code: the `toolwit` command,
/// against a program that does nothing else.
pub async fn start() {
    let stage = Stage::set().await;
    let home = stage.directory.path().join("home");
    let mut ours = Command::new(env!("CARGO_BIN_EXE_toolwit"));
    ours.args(["call", "evaluate", EXPRESSION, "--json", "--plugins"])
        .arg(&stage.component)
        .env("HOME", &home)
        .env("XDG_CACHE_HOME", home.join("cache"))
        .env("XDG_CONFIG_HOME", home.join("config"))
        .env("XDG_DATA_HOME", home.join("data"));
    let mut raw = stage.child(RAW);
    run(&mut ours);
    let timed = |command: &mut Command| {
        let started = Instant::now();
        run(command);
        started.elapsed()
    };
    let took = (0..STARTS).map(|_| (timed(&mut ours), timed(&mut raw))).unzip();
    report("process start to result", took, "at most 25 ms");
}

/// Measures the first call of a plugin in a running process.
pub async fn first_call() {
    let stage = Stage::set().await;
    let (mut ours, mut raw) = (stage.child(OWN), stage.child(RAW));
    let measured = |command: &mut Command| {
        let output = run(command);
        let micros = String::from_utf8_lossy(&output.stdout).trim().parse().unwrap();
        Duration::from_micros(micros)
    };
    measured(&mut ours);
    let took = (0..STARTS).map(|_| (measured(&mut ours), measured(&mut raw))).unzip();
    report("first call, code cached", took, "at most 10 ms");
}

fn run(command: &mut Command) -> Output {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output
}

fn report(what: &str, (mut ours, mut raw): (Vec<Duration>, Vec<Duration>), target: &str) {
    let (ours, raw) = (median(&mut ours), median(&mut raw));
    println!(
        "{what:<28} {:>9.2} ms  raw {:>9.2} ms  more  {:>5.2} ms  (target: {target})",
        ours.as_secs_f64() * 1e3,
        raw.as_secs_f64() * 1e3,
        (ours.as_secs_f64() - raw.as_secs_f64()) * 1e3
    );
}
