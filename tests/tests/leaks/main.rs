//! Successful and failed calls, and replaced versions, do not leak memory, descriptors or threads.
//!
//! It is a test program of its own, because it measures the process.
#![cfg(target_os = "linux")]
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]

use std::sync::Arc;

use futures::poll;
use toolwit::limits::LimitOverrides;
use toolwit::sandbox::{Plugin, Scope};
use toolwit::{Arguments, ErrorKind, Tool, ToolContext};
use toolwit_tests::{Guests, component_of};

const CALLS: u32 = 100_000;

/// Calls per version.
const CALLS_PER_VERSION: u32 = 5_000;

/// Allowed growth: allocators and pools keep some memory. A leak of one page per call would be
/// forty times as much.
const GROWTH_BYTES_MAX: u64 = 10 << 20;

fn guest(version: u32) -> Vec<u8> {
    component_of(&format!(
        r#"(component
            (core module $m
                (memory (export "memory") 1)
                (func (export "version") (result i32) (i32.const {version}))
                (func (export "trap") unreachable)
                (func (export "spin") (loop $again (br $again)))
                (func (export "fill")
                    (loop $again (if (i32.eq (memory.grow (i32.const 16)) (i32.const -1)) (then unreachable)) (br $again))))
            (core instance $i (instantiate $m))
            (func (export "version") (result u32) (canon lift (core func $i "version")))
            (func (export "trap") (canon lift (core func $i "trap")))
            (func (export "spin") (canon lift (core func $i "spin")))
            (func (export "fill") (canon lift (core func $i "fill"))))"#
    ))
}

/// Threads of the blocking pool end seconds after their work. A leak of one thread per call, or per
/// version, would be many more.
const BLOCKING_THREADS_MAX: usize = 4;

/// Resources that the process holds.
#[derive(Clone, Copy, Debug)]
struct Held {
    resident_bytes: u64,
    descriptors: usize,
    threads: usize,
}

impl Held {
    fn now() -> Self {
        let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
        let pages: u64 = statm.split(' ').nth(1).unwrap().parse().unwrap();
        let count = |path: &str| std::fs::read_dir(path).unwrap().count();
        Self {
            resident_bytes: pages * 4096,
            descriptors: count("/proc/self/fd"),
            threads: count("/proc/self/task"),
        }
    }
}

/// One version of the guest in a conversation.
struct Version {
    number: u32,
    tools: Vec<Arc<dyn Tool>>,
}

impl Version {
    async fn load(guests: &Guests, number: u32) -> Self {
        let plugin = Plugin::from_bytes(&guests.runtime, "guest", guest(number))
            .await
            .unwrap();
        Self {
            number,
            tools: plugin.tools(&Scope::new()),
        }
    }

    fn tool(&self, name: &str) -> &Arc<dyn Tool> {
        self.tools.iter().find(|tool| tool.definition().name() == name).unwrap()
    }

    /// Makes the call with this number; most calls succeed.
    async fn call(&self, number: u32) {
        let with_limits = |limits| ToolContext::new().with_extension(limits);
        let (name, context, expected) = match number % 50 {
            0 => ("trap", ToolContext::new(), Some(ErrorKind::Trap)),
            1 => (
                "spin",
                with_limits(LimitOverrides::default().with_fuel_max(1_000)),
                Some(ErrorKind::Fuel),
            ),
            2 => (
                "fill",
                with_limits(LimitOverrides::default().with_memory_bytes_max(4 << 20)),
                Some(ErrorKind::Memory),
            ),
            3 if number % 1_000 == 3 => return self.drop_endless_call().await,
            _ => ("version", ToolContext::new(), None),
        };
        match (self.tool(name).call(Arguments::new(), &context).await, expected) {
            (Ok(result), None) => assert_eq!(result.for_llm, self.number.to_string()),
            (Err(error), Some(kind)) => assert_eq!(error.report().kind, kind),
            (outcome, _) => panic!("{name}: {outcome:?}"),
        }
    }

    /// Starts an endless call and drops it.
    async fn drop_endless_call(&self) {
        let context = ToolContext::new();
        let mut call = self.tool("spin").call(Arguments::new(), &context);
        assert!(poll!(&mut call).is_pending(), "the epoch makes it yield");
    }
}

// attack: B14, attack: I1
#[tokio::test]
async fn hundred_thousand_calls_leak_nothing() {
    let guests = Guests::new();
    let mut version = Version::load(&guests, 0).await;
    let mut early = None;
    for number in 0..CALLS {
        if number % CALLS_PER_VERSION == CALLS_PER_VERSION - 1 {
            version = Version::load(&guests, version.number + 1).await;
        }
        version.call(number).await;
        // At this point every pool, cache and thread has been used.
        if number == CALLS / 5 {
            early = Some(Held::now());
        }
    }
    let (early, late) = (early.unwrap(), Held::now());
    assert!(
        late.threads <= early.threads + BLOCKING_THREADS_MAX,
        "{early:?} {late:?}"
    );
    assert!(late.descriptors <= early.descriptors, "{early:?} {late:?}");
    let growth = late.resident_bytes.saturating_sub(early.resident_bytes);
    assert!(growth <= GROWTH_BYTES_MAX, "{early:?} {late:?}");
    // Every slot of the pool is free again: as many instances as it has can exist at once.
    version.call(4).await;
}
