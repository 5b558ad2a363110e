//! The memory of a host whose compiler process reaches its limit. A program of its own, because it measures its memory.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, missing_docs)]

#[path = "compiler/bombs.rs"]
#[allow(dead_code, reason = "shared with the tests in `compiler`")]
mod bombs;

use std::fs;

use toolwit::sandbox::{CodeCacheLocation, Compiler, Plugin, Runtime, RuntimeOptions};

/// The growth of the host, in KiB.
const GROWTH_KIB_MAX: u64 = 64 << 10;

/// Returns a value of `/proc/self/status` in KiB.
fn status_kib(name: &str) -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with(name)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

// attack: A19
#[test]
fn memory_of_the_host_does_not_grow_with_that_of_its_compiler() {
    let options = RuntimeOptions {
        code_cache: CodeCacheLocation::Off,
        compiler: Compiler::Process(env!("CARGO_BIN_EXE_toolwit").into()),
        ..RuntimeOptions::default()
    };
    let executor = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    executor.block_on(async {
        let runtime = Runtime::new(options).unwrap();
        // Creates the engine and its pool.
        let small = Plugin::from_bytes(&runtime, "small", bombs::functions(1))
            .await
            .unwrap();
        small.compile().await.unwrap();
        let bomb = Plugin::from_bytes(&runtime, "bomb", bombs::locals_and_loops(450, 500))
            .await
            .unwrap();
        fs::write("/proc/self/clear_refs", "5").unwrap();
        let before = status_kib("VmRSS");
        let error = bomb.compile().await.unwrap_err();
        assert!(error.message.contains("of memory"), "{error}");
        let grown = status_kib("VmHWM").saturating_sub(before);
        assert!(grown < GROWTH_KIB_MAX, "{grown} KiB");
    });
}
