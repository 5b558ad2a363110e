//! A long life: calls that end well and badly, and versions that come and go, leave nothing behind.
//!
//! It has a process of its own, since it looks at all that the process holds.
#![cfg(target_os = "linux")]
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]

use std::sync::Arc;

use futures::poll;
use toolwit::limits::LimitRequest;
use toolwit::sandbox::{Plugin, Scope};
use toolwit::{Arguments, ErrorKind, Tool, ToolContext};
use toolwit_tests::{Guests, component_of};

const CALLS: u32 = 100_000;

/// A version is served for so many calls.
const CALLS_PER_VERSION: u32 = 5_000;

/// What a long life may cost: allocators and pools keep some of what they once had. A leak of a page for each call would be
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

/// Threads for work that blocks come and go with it, seconds after it is done. A leak of a thread for each call, or for each
/// version, would be many more.
const BLOCKING_THREADS_MAX: usize = 4;

/// What the process holds.
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

    /// Makes the call of this number, most of which end well.
    async fn call(&self, number: u32) {
        let bounded = |limits| ToolContext::new().with_extension(limits);
        let (name, context, expected) = match number % 50 {
            0 => ("trap", ToolContext::new(), Some(ErrorKind::Trap)),
            1 => ("spin", bounded(LimitRequest::none().fuel(1_000)), Some(ErrorKind::Fuel)),
            2 => (
                "fill",
                bounded(LimitRequest::none().memory_bytes(4 << 20)),
                Some(ErrorKind::Memory),
            ),
            3 if number % 1_000 == 3 => return self.abandon().await,
            _ => ("version", ToolContext::new(), None),
        };
        match (self.tool(name).call(Arguments::new(), &context).await, expected) {
            (Ok(result), None) => assert_eq!(result.for_llm, self.number.to_string()),
            (Err(error), Some(kind)) => assert_eq!(error.report().kind, kind),
            (outcome, _) => panic!("{name}: {outcome:?}"),
        }
    }

    /// Begins an endless call and drops it half-way.
    async fn abandon(&self) {
        let context = ToolContext::new();
        let mut call = self.tool("spin").call(Arguments::new(), &context);
        assert!(poll!(&mut call).is_pending(), "the clock makes it yield");
    }
}

// attack: B14, attack: I1
#[tokio::test]
async fn a_hundred_thousand_calls_leave_nothing_behind() {
    let guests = Guests::new();
    let mut version = Version::load(&guests, 0).await;
    let mut early = None;
    for number in 0..CALLS {
        if number % CALLS_PER_VERSION == CALLS_PER_VERSION - 1 {
            version = Version::load(&guests, version.number + 1).await;
        }
        version.call(number).await;
        // By now every pool, cache and thread has been used.
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
    // Every slot of the pool is free again: as many instances as it has can live at once.
    version.call(4).await;
}
