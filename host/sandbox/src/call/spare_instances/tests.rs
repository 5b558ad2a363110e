use std::sync::Arc;

use super::*;
use crate::call::plugin::Plugin;
use crate::call::runtime::{Runtime, RuntimeOptions};
use crate::call::scope::Scope;
use crate::link::compile::cache_location::CodeCacheLocation;
use toolwit_core::{Arguments, DeferredWork, ToolContext, ToolResult};

/// A guest whose tool returns how often code ran in its instance: the start code once, and the tool once per call.
const COUNTING_GUEST: &str = r#"(component
    (core module $m
        (global $count (mut i32) (i32.const 0))
        (func $add (global.set $count (i32.add (global.get $count) (i32.const 1))))
        (start $add)
        (func (export "run") (result i32) (call $add) (global.get $count)))
    (core instance $i (instantiate $m))
    (func (export "run") (result u32) (canon lift (core func $i "run"))))"#;

/// Returns a guest that can read the clock with `(call $now)`. `start` is the body of its start function, `run` that of
/// its tool.
fn clock_guest(start: &str, run: &str) -> String {
    format!(
        r#"(component
            (import "wasi:clocks/monotonic-clock@0.2.0" (instance $clock (export "now" (func (result u64)))))
            (core func $now (canon lower (func $clock "now")))
            (core module $m
                (import "host" "now" (func $now (result i64)))
                (func $start {start})
                (start $start)
                (func (export "run") (result i64) {run}))
            (core instance $i (instantiate $m (with "host" (instance (export "now" (func $now))))))
            (func (export "run") (result u64) (canon lift (core func $i "run"))))"#
    )
}

fn runtime(options: RuntimeOptions) -> Arc<Runtime> {
    Runtime::new(RuntimeOptions {
        code_cache: CodeCacheLocation::Off,
        ..options
    })
    .unwrap()
}

fn runtime_with_slots(instances_max: u32) -> Arc<Runtime> {
    let mut options = RuntimeOptions::default();
    options.engine_limits.instances_max = instances_max;
    runtime(options)
}

async fn plugin(runtime: &Arc<Runtime>, text: &str) -> Arc<Plugin> {
    let component = wat::parse_str(text).unwrap();
    let plugin = Plugin::from_bytes(runtime, "guest", component).await.unwrap();
    plugin.compile().await.unwrap();
    plugin
}

/// Calls the tool of a plugin, and then waits until the plugin has been idle long enough for a spare instance. Pauses
/// the clock of tokio, which then advances only while no task can run.
async fn call_and_wait(plugin: &Arc<Plugin>) -> ToolResult {
    tokio::time::pause();
    let result = call_without_wait(plugin).await;
    tokio::time::sleep(10 * IDLE_TIME).await;
    tokio::time::resume();
    result
}

async fn call_without_wait(plugin: &Arc<Plugin>) -> ToolResult {
    let deferred = DeferredWork::new();
    let context = ToolContext::new().with_extension(deferred.clone());
    let tools = plugin.tools(&Scope::new());
    let result = tools[0].call(Arguments::new(), &context).await.unwrap();
    deferred.run();
    result
}

fn spare_count(runtime: &Runtime) -> usize {
    runtime.spares.lock().spares.len()
}

#[tokio::test]
async fn a_call_with_a_spare_instance_has_the_same_result_and_usage() {
    let runtime = runtime(RuntimeOptions::default());
    let plugin = plugin(&runtime, COUNTING_GUEST).await;
    let first = call_and_wait(&plugin).await;
    assert_eq!((first.for_llm.as_str(), spare_count(&runtime)), ("2", 1));
    for _ in 0..2 {
        let next = call_and_wait(&plugin).await;
        assert_eq!((next.for_llm.as_str(), spare_count(&runtime)), ("2", 1));
        let (first, next) = (first.usage.unwrap(), next.usage.unwrap());
        assert_eq!((first.fuel, first.memory_bytes), (next.fuel, next.memory_bytes));
    }
}

#[tokio::test]
async fn a_spare_instance_is_created_after_a_series_of_calls_and_not_between_them() {
    let runtime = runtime(RuntimeOptions::default());
    let plugin = plugin(&runtime, COUNTING_GUEST).await;
    tokio::time::pause();
    for _ in 0..3 {
        call_without_wait(&plugin).await;
        tokio::task::yield_now().await;
        assert_eq!(spare_count(&runtime), 0);
    }
    assert_eq!(runtime.spares.lock().plans.len(), 1, "one plan waits");
    tokio::time::sleep(10 * IDLE_TIME).await;
    assert_eq!((spare_count(&runtime), runtime.spares.lock().plans.len()), (1, 0));
}

#[tokio::test]
async fn a_spare_instance_has_the_rights_of_its_call() {
    let frozen = runtime(RuntimeOptions {
        frozen_at: Some(7),
        ..RuntimeOptions::default()
    });
    for (runtime, is_frozen) in [(frozen, true), (runtime(RuntimeOptions::default()), false)] {
        let plugin = plugin(&runtime, &clock_guest("", "(call $now)")).await;
        let fresh_clock = call_and_wait(&plugin).await.for_llm;
        assert_eq!(spare_count(&runtime), 1);
        let spare_clock = call_and_wait(&plugin).await.for_llm;
        assert_eq!(
            (fresh_clock == "0", spare_clock == "0"),
            (is_frozen, is_frozen),
            "{fresh_clock} {spare_clock}"
        );
    }
}

#[tokio::test]
async fn a_component_whose_start_code_calls_the_host_or_takes_long_has_no_spare_instance() {
    let runtime = runtime(RuntimeOptions::default());
    let long = "(local $i i32) (local.set $i (i32.const 1000000)) \
                (loop $l (br_if $l (local.tee $i (i32.sub (local.get $i) (i32.const 1)))))";
    for (start, expected_count) in [("(drop (call $now))", 0), (long, 0), ("nop", 1)] {
        call_and_wait(&plugin(&runtime, &clock_guest(start, "i64.const 1")).await).await;
        assert_eq!(spare_count(&runtime), expected_count, "{start}");
    }
}

#[tokio::test]
async fn a_spare_instance_is_used_only_for_its_component_and_its_limits_except_time() {
    let runtime = runtime(RuntimeOptions::default());
    let (called, uncalled) = (
        plugin(&runtime, COUNTING_GUEST).await,
        plugin(&runtime, COUNTING_GUEST).await,
    );
    call_and_wait(&called).await;
    let context = ToolContext::new();
    let limits = called.limits_for(&context, false).unwrap();
    let less_fuel = CallLimits {
        fuel_max: limits.fuel_max - 1,
        ..limits.clone()
    };
    let less_time = CallLimits {
        wall_max: limits.wall_max / 2,
        ..limits.clone()
    };
    let component = called.linked_component(&context).await.unwrap();
    let uncalled_component = uncalled.linked_component(&context).await.unwrap();
    assert!(runtime.spares.take(&uncalled_component, &limits).is_none());
    assert!(runtime.spares.take(&component, &less_fuel).is_none());
    assert!(runtime.spares.take(&component, &less_time).is_some());
    assert!(
        runtime.spares.take(&component, &limits).is_none(),
        "a spare instance is used once"
    );
}

#[tokio::test]
async fn spare_instances_occupy_a_small_part_of_the_pool() {
    for (slots, expected_count) in [(SPARE_SLOTS_DIVISOR - 1, 0), (2 * SPARE_SLOTS_DIVISOR, 2)] {
        let runtime = runtime_with_slots(slots);
        let mut plugins = Vec::new();
        for _ in 0..3 {
            plugins.push(plugin(&runtime, COUNTING_GUEST).await);
        }
        for plugin in &plugins {
            call_and_wait(plugin).await;
        }
        assert_eq!(spare_count(&runtime), expected_count);
    }
}

#[tokio::test]
async fn the_spare_instance_of_an_unloaded_component_is_dropped() {
    let runtime = runtime(RuntimeOptions::default());
    let unloaded = plugin(&runtime, COUNTING_GUEST).await;
    call_and_wait(&unloaded).await;
    drop(unloaded);
    call_and_wait(&plugin(&runtime, COUNTING_GUEST).await).await;
    assert_eq!(spare_count(&runtime), 1);
}
