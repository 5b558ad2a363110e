//! Compiler processes: their limits, their end, and the host that starts them.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, missing_docs)]

mod bombs;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;
use toolwit::build::{Build, Silent};
use toolwit::limits::EngineLimits;
use toolwit::sandbox::{CodeCacheLocation, CompileStatus, Compiler, Plugin, Runtime, RuntimeOptions};
use toolwit::{Error, ErrorKind};

const TOOLWIT: &str = env!("CARGO_BIN_EXE_toolwit");

/// A program that no machine has, because a device has no files.
const MISSING_PROGRAM: &str = "/dev/null/absent";

/// Maximum time that a test waits for a process or a file, on a busy machine.
const SOON: Duration = Duration::from_secs(60);

/// Returns a component of 8 KB that passes inspection, and takes seconds and 400 MiB to compile.
fn heavy_component() -> Vec<u8> {
    bombs::locals_and_loops(450, 500)
}

/// Returns a component that passes inspection, and takes half a minute to compile.
fn slow_component() -> Vec<u8> {
    bombs::functions(100_000)
}

fn runtime(program: impl Into<PathBuf>, change: impl FnOnce(&mut RuntimeOptions)) -> Arc<Runtime> {
    let mut options = RuntimeOptions {
        code_cache: CodeCacheLocation::Off,
        compiler: Compiler::Process(program.into()),
        ..RuntimeOptions::default()
    };
    change(&mut options);
    Runtime::new(options).unwrap()
}

fn with_memory(bytes_max: u64) -> Arc<Runtime> {
    runtime(TOOLWIT, |options| {
        options.engine_limits = EngineLimits {
            compile_memory_bytes_max: bytes_max,
            ..EngineLimits::default()
        };
    })
}

async fn load(runtime: &Arc<Runtime>, component: Vec<u8>) -> Result<Arc<Plugin>, Error> {
    Plugin::from_bytes(runtime, "bomb", component).await
}

/// Returns the compiler processes that this test program started with this marker among their arguments.
fn compilers(marker: &str) -> Vec<PathBuf> {
    let processes = fs::read_dir("/proc").unwrap().map(|entry| entry.unwrap().path());
    let is_compiler = |process: &PathBuf| {
        let arguments = fs::read(process.join("cmdline")).unwrap_or_default();
        let arguments = String::from_utf8_lossy(&arguments).into_owned();
        arguments.contains("toolwit-compile-component") && arguments.contains(marker)
    };
    processes.filter(is_compiler).collect()
}

/// Waits until exactly `count` compiler processes run.
async fn wait_for_compilers(marker: &str, count: usize) -> Vec<PathBuf> {
    let wait = async {
        loop {
            let found = compilers(marker);
            if found.len() == count {
                return found;
            }
            tokio::task::yield_now().await;
        }
    };
    timeout(SOON, wait).await.unwrap()
}

// attack: A19
#[tokio::test]
async fn component_that_takes_too_much_work_is_not_compiled_without_a_compiler_process() {
    let runtime = runtime(MISSING_PROGRAM, |options| options.compiler = Compiler::InProcess);
    for (name, bomb) in [
        ("locals that are never set", bombs::unset_locals(2_500, 2_500)),
        ("locals and loops", bombs::locals_and_loops(1_000, 1_000)),
        ("parameters of blocks", bombs::parameters_of_blocks(1_000, 1_000)),
        ("results of calls", bombs::results_of_calls(1_000, 1_000)),
        ("values of branches", bombs::values_of_branches(1_000, 1_000)),
        ("live locals", bombs::live_locals(3_000, 3_000)),
        ("targets of tables", bombs::targets_of_tables(1_000, 2_000)),
        ("locals of functions", bombs::locals_of_functions(50_000, 25_000)),
        ("instructions", bombs::instructions(710_000)),
    ] {
        let plugin = load(&runtime, bomb).await;
        assert!(plugin.is_ok(), "{name}: {:?}", plugin.as_ref().err());
        let error = plugin.unwrap().compile().await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Unsupported, "{name}: {error}");
        assert!(error.message.contains("too much work to compile"), "{name}: {error}");
        assert!(error.suggestion.as_ref().unwrap().contains("Compiler::Process"));
        assert_eq!(error.plugin.as_deref(), Some("bomb"));
    }
}

// attack: A19
#[tokio::test]
async fn component_that_takes_too_much_work_for_any_process_is_refused_at_inspection() {
    let directory = tempfile::tempdir().unwrap();
    let runtime = runtime(directory.path().join("missing"), |_| {});
    for (name, bomb) in [
        ("locals that are never set", bombs::unset_locals(20_000, 20_000)),
        ("locals and loops", bombs::locals_and_loops(5_000, 1_000)),
        ("parameters of blocks", bombs::parameters_of_blocks(1_000, 5_000)),
        ("live locals", bombs::live_locals(12_000, 12_000)),
        ("locals of functions", bombs::locals_of_functions(50_000, 350_000)),
    ] {
        let error = load(&runtime, bomb).await.err().unwrap();
        assert_eq!(error.kind, ErrorKind::Unsupported, "{name}: {error}");
        assert!(error.message.contains("too much work to compile"), "{name}: {error}");
    }
}

// attack: A19
#[tokio::test]
async fn compiler_process_that_ends_at_its_limit_of_memory_is_an_error_of_its_plugin() {
    let runtime = with_memory(128 << 20);
    let bomb = load(&runtime, heavy_component()).await.unwrap();
    let small = Plugin::from_bytes(&runtime, "small", bombs::functions(1))
        .await
        .unwrap();
    let (bomb, small) = tokio::join!(bomb.compile(), small.compile());
    small.unwrap();
    let error = bomb.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unsupported, "{error}");
    assert!(error.message.contains("more than 128 MiB of memory"), "{error}");
    assert_eq!(error.limit.as_ref().unwrap().limit, "compile_memory_bytes_max");
    assert_eq!(error.plugin.as_deref(), Some("bomb"));
    assert!(error.suggestion.is_some());
}

// attack: A19
#[tokio::test]
async fn machine_code_larger_than_its_limit_is_refused_before_it_is_read() {
    let with_code = |bytes_max| {
        runtime(TOOLWIT, |options| {
            options.engine_limits.code_bytes_max = bytes_max;
        })
    };
    let component = || bombs::functions(100);
    let error = load(&with_code(4 << 10), component())
        .await
        .unwrap()
        .compile()
        .await
        .unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unsupported, "{error}");
    assert!(error.message.contains("machine code takes"), "{error}");
    assert_eq!(error.limit.as_ref().unwrap().limit, "code_bytes_max");
    load(&with_code(1 << 20), component())
        .await
        .unwrap()
        .compile()
        .await
        .unwrap();
}

#[tokio::test]
async fn compiler_process_is_stopped_at_its_deadline() {
    let runtime = runtime(TOOLWIT, |options| {
        options.engine_limits.compile_wall_max = Duration::from_millis(300);
    });
    let error = load(&runtime, slow_component())
        .await
        .unwrap()
        .compile()
        .await
        .unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unsupported, "{error}");
    assert!(error.message.contains("takes longer than 300 ms"), "{error}");
    assert_eq!(error.limit.as_ref().unwrap().limit, "compile_wall_max");
}

#[tokio::test]
async fn compiler_process_has_limits_and_no_environment_and_ends_with_its_plugin() {
    // A value that no other test of this program uses identifies the process.
    const MEMORY: u64 = 200_000_001;
    let runtime = with_memory(MEMORY);
    let plugin = load(&runtime, slow_component()).await.unwrap();
    plugin.compile_in_background();
    let [process] = wait_for_compilers("200000001", 1).await.try_into().unwrap();
    let limits = async {
        loop {
            let limits = fs::read_to_string(process.join("limits")).unwrap();
            if limits.contains("200000001") {
                return limits;
            }
            tokio::task::yield_now().await;
        }
    };
    let limits = timeout(SOON, limits).await.unwrap();
    for limit in [
        "Max data size             200000001",
        "Max core file size        0",
        "Max file size             0",
    ] {
        assert!(limits.contains(limit), "{limits}");
    }
    assert!(!limits.contains("Max cpu time              unlimited"), "{limits}");
    assert_eq!(fs::read(process.join("environ")).unwrap(), b"");
    assert!(matches!(plugin.compile_status(), CompileStatus::Compiling { .. }));
    drop(plugin);
    wait_for_compilers("200000001", 0).await;
}

#[tokio::test]
async fn start_with_cached_code_needs_no_compiler_process() {
    let directory = tempfile::tempdir().unwrap();
    let cache = CodeCacheLocation::Directory(directory.path().join("code"));
    for program in [TOOLWIT, MISSING_PROGRAM] {
        let runtime = runtime(program, |options| options.code_cache = cache.clone());
        load(&runtime, bombs::functions(2))
            .await
            .unwrap()
            .compile()
            .await
            .unwrap();
    }
    let error = load(&runtime(MISSING_PROGRAM, |_| {}), bombs::functions(2))
        .await
        .unwrap();
    assert!(
        error
            .compile()
            .await
            .unwrap_err()
            .message
            .contains("`/dev/null/absent` could not be started")
    );
}

#[tokio::test]
async fn program_that_is_not_a_compiler_is_reported() {
    assert!(Path::new("/bin/true").exists());
    let plugin = load(&runtime("/bin/true", |_| {}), bombs::functions(1)).await.unwrap();
    let error = plugin.compile().await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Internal);
    assert!(
        error.suggestion.as_deref().unwrap().contains("run_compiler_if_asked"),
        "{error}"
    );
}

/// Returns the component of the guest `menu`, which lists its tools at run time.
async fn menu() -> Vec<u8> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/guests/rust/menu");
    let out = tempfile::tempdir().unwrap();
    let report = Build::new(source).out(out.path()).run(&Silent).await.unwrap();
    fs::read(report.component).unwrap()
}

#[tokio::test]
async fn program_that_closes_its_output_and_continues_is_ended_at_the_time_limit() {
    let directory = tempfile::tempdir().unwrap();
    let program = directory.path().join("compiler");
    fs::write(&program, "#!/bin/sh\nexec >&-\nwhile :; do :; done\n").unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let runtime = runtime(&program, |options| {
        options.engine_limits.compile_wall_max = Duration::from_millis(300);
    });
    let plugin = load(&runtime, bombs::functions(1)).await.unwrap();
    let error = timeout(SOON, plugin.compile()).await.unwrap().unwrap_err();
    assert_eq!(error.limit.as_ref().unwrap().limit, "compile_wall_max", "{error}");
}

/// Writes a program that compiles as soon as a file exists.
fn slow_compiler(directory: &Path) -> (PathBuf, PathBuf) {
    let (program, go) = (directory.join("compiler"), directory.join("go"));
    let script = format!(
        "#!/bin/sh\nwhile [ ! -e '{}' ]; do :; done\nexec '{TOOLWIT}' \"$@\"\n",
        go.display()
    );
    fs::write(&program, script).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    (program, go)
}

#[tokio::test]
async fn slow_plugin_is_queried_for_its_tools_by_who_waits_for_it() {
    let directory = tempfile::tempdir().unwrap();
    let (program, go) = slow_compiler(directory.path());
    let plugin = Plugin::from_bytes(&runtime(program, |_| {}), "menu", menu().await)
        .await
        .unwrap();
    let automatic = tokio::spawn({
        let plugin = plugin.clone();
        async move { plugin.discover_tools().await }
    });
    let explicit = tokio::spawn({
        let plugin = plugin.clone();
        async move { plugin.rediscover_tools().await }
    });
    while !matches!(plugin.compile_status(), CompileStatus::Compiling { .. }) {
        tokio::task::yield_now().await;
    }
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(11)).await;
    tokio::time::resume();
    let error = automatic.await.unwrap().err().unwrap();
    assert_eq!(error.kind, ErrorKind::Timeout, "{error}");
    assert!(!explicit.is_finished());
    fs::write(go, "").unwrap();
    let discovered = explicit.await.unwrap().unwrap();
    let names: Vec<_> = discovered
        .inspection()
        .tools
        .iter()
        .map(|tool| tool.name().to_owned())
        .collect();
    assert!(names.contains(&"soup".to_owned()), "{names:?}");
}
