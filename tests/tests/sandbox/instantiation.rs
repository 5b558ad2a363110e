//! Guests that misbehave before their first call.

use std::time::{Duration, Instant};

use serde_json::json;
use toolwit::limits::LimitOverrides;
use toolwit::{Error, ErrorKind, Phase};
use toolwit_tests::{Conversation, Guests};

/// A component whose core module does something when it is instantiated.
fn with_start(body: &str) -> String {
    format!(
        r#"(component
            (core module $m
                (memory 1)
                (func $begin {body})
                (start $begin)
                (func (export "fine") (result i32) i32.const 42))
            (core instance $i (instantiate $m))
            (func (export "fine") (result u32) (canon lift (core func $i "fine"))))"#
    )
}

async fn call_error(text: &str, limits: LimitOverrides) -> Error {
    let guests = Guests::new();
    let plugin = guests.text("starter", text).await.unwrap();
    let mut conversation = Conversation::over(&[&plugin]).limited(limits);
    conversation.error("fine", json!({})).await
}

// attack: A16
#[tokio::test(flavor = "multi_thread")]
async fn start_function_is_limited_like_a_call() {
    let limits = || {
        LimitOverrides::default()
            .with_fuel_max(20_000_000)
            .with_wall_max(Duration::from_secs(5))
            .with_memory_bytes_max(1 << 20)
    };
    let grow = "(loop $a (br_if $a (i32.ne (memory.grow (i32.const 1)) (i32.const -1)))) unreachable";
    for (body, limits, kind) in [
        ("(loop $again (br $again))", limits(), ErrorKind::Fuel),
        (
            "(loop $again (br $again))",
            LimitOverrides::default().with_wall_max(Duration::from_millis(100)),
            ErrorKind::Timeout,
        ),
        ("unreachable", limits(), ErrorKind::Trap),
        ("(call $begin)", limits(), ErrorKind::Stack),
        (grow, limits(), ErrorKind::Memory),
    ] {
        let error = call_error(&with_start(body), limits).await;
        assert_eq!(
            (error.kind, error.phase),
            (kind, Phase::Instantiate),
            "{body}: {error:#?}"
        );
    }
}

// attack: B7
#[tokio::test]
async fn initial_memory_of_a_component_counts() {
    let text = r#"(component
        (core module $m (memory 100) (func (export "fine") (result i32) i32.const 42))
        (core instance $i (instantiate $m))
        (func (export "fine") (result u32) (canon lift (core func $i "fine"))))"#;
    let error = call_error(text, LimitOverrides::default().with_memory_bytes_max(1 << 20)).await;
    assert_eq!((error.kind, error.phase), (ErrorKind::Memory, Phase::Instantiate));
    assert_eq!(error.limit.as_ref().unwrap().used, 100 << 16);
}

async fn load_error(text: &str) -> Error {
    match Guests::new().text("large", text).await {
        Ok(_) => panic!("it was loaded"),
        Err(error) => error,
    }
}

// attack: B7
#[tokio::test]
async fn component_that_exceeds_the_limits_of_every_call_is_refused_at_load() {
    let module = |body: &str| format!("(component (core module $m {body}) (core instance (instantiate $m)))");
    for (text, kind, limit) in [
        (module("(memory 20000)"), ErrorKind::Memory, "memory_bytes_max"),
        (
            module("(table 100001 funcref)"),
            ErrorKind::TableElements,
            "table_elements_max",
        ),
        (
            format!(
                "(component (core module $m) {})",
                "(core instance (instantiate $m))".repeat(65)
            ),
            ErrorKind::Instances,
            "instances_max",
        ),
        (module(&"(memory 0)".repeat(65)), ErrorKind::Instances, "instances_max"),
    ] {
        let error = load_error(&text).await;
        assert_eq!((error.kind, error.phase), (kind, Phase::Load), "{error:#?}");
        assert_eq!(error.limit.as_ref().unwrap().limit, limit);
    }
}

/// Nested components, each of which instantiates the previous one twice.
fn doubling_components(times: usize) -> String {
    chained_components(times, 2)
}

/// Nested components, each of which instantiates the previous one a number of times.
fn chained_components(times: usize, copies: usize) -> String {
    let mut text = String::from("(component (component $c0 (core module $m) (core instance (instantiate $m)))");
    let instances = "(instance (instantiate $inner)) ".repeat(copies);
    for at in 1..=times {
        let before = at - 1;
        text.push_str(&format!(
            "(component $c{at} (alias outer 1 $c{before} (component $inner)) {instances})"
        ));
    }
    text.push_str(&format!("(instance (instantiate $c{times})))"));
    text
}

// attack: A14
#[tokio::test]
async fn component_with_a_billion_instances_is_refused_quickly() {
    let started = Instant::now();
    let error = load_error(&doubling_components(30)).await;
    assert_eq!(
        (error.kind, error.phase),
        (ErrorKind::Instances, Phase::Load),
        "{error:#?}"
    );
    assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
    assert!(
        Guests::new().text("small", &doubling_components(6)).await.is_ok(),
        "64 instances are allowed"
    );
    let error = load_error(&doubling_components(7)).await;
    assert_eq!(
        error.message,
        "each of its instances needs 128 core instances and may have 64"
    );
}

// attack: A14
#[tokio::test]
async fn component_whose_instantiation_nests_too_deep_is_refused_with_the_depth() {
    assert!(
        Guests::new().text("flat", &chained_components(50, 1)).await.is_ok(),
        "51 levels are allowed"
    );
    let error = load_error(&chained_components(150, 1)).await;
    assert_eq!(error.kind, ErrorKind::Instances, "{error:#?}");
    assert_eq!(error.message, "its instantiation nests components deeper than 100");
    assert_eq!(error.limit.as_ref().unwrap().limit, "COMPONENT_DEPTH_MAX");
}

// attack: A14
#[tokio::test]
async fn components_passed_as_arguments_are_counted_where_they_are_instantiated() {
    let text = r#"(component
        (component $worker (core module $m) (core instance (instantiate $m)))
        (component $carrier
            (import "worker" (component $w))
            (export "again" (component $w)))
        (instance $i (instantiate $carrier (with "worker" (component $worker))))
        (alias export $i "again" (component $handed))
        (component $crowd
            (import "worker" (component $w))
            (instance (instantiate $w)) (instance (instantiate $w)) (instance (instantiate $w)))
        REPEAT)"#;
    let crowd = "(instance (instantiate $crowd (with \"worker\" (component $handed))))";
    let guests = Guests::new();
    assert!(
        guests
            .text("few", &text.replace("REPEAT", &crowd.repeat(21)))
            .await
            .is_ok()
    );
    let error = load_error(&text.replace("REPEAT", &crowd.repeat(22))).await;
    assert_eq!(
        error.message,
        "each of its instances needs 66 core instances and may have 64"
    );
}

// attack: A14
#[tokio::test]
async fn deeply_nested_components_are_refused() {
    let text = format!("{}{}", "(component ".repeat(5_000), ")".repeat(5_000));
    let bytes = nested_components(5_000);
    assert!(text.len() > bytes.len() / 4);
    let error = match Guests::new().bytes("deep", bytes).await {
        Ok(_) => panic!("it was loaded"),
        Err(error) => error,
    };
    assert_eq!(error.kind, ErrorKind::MalformedComponent, "{error:#?}");
    assert!(error.message.contains("nest deeper than 100"), "{error}");
}

/// Components nested in each other, assembled from the innermost.
fn nested_components(depth: usize) -> Vec<u8> {
    let mut bytes = wasm_encoder::Component::new().finish();
    for _ in 0..depth {
        let mut outer = wasm_encoder::Component::new();
        outer.section(&wasm_encoder::RawSection { id: 4, data: &bytes });
        bytes = outer.finish();
    }
    bytes
}

// attack: A8
#[tokio::test(flavor = "multi_thread")]
async fn async_functions_return_or_are_stopped() {
    let guests = Guests::new();
    let plugin = guests.wat("asynchronous").await;
    let mut conversation = Conversation::over(&[&plugin]);
    assert_eq!(conversation.value("answer", json!({})).await, json!(42));
    let mut bounded =
        Conversation::over(&[&plugin]).limited(LimitOverrides::default().with_wall_max(Duration::from_millis(100)));
    assert_eq!(bounded.error("never", json!({})).await.kind, ErrorKind::Timeout);
    assert_eq!(conversation.value("answer", json!({})).await, json!(42));
}

/// A component that takes long to compile.
fn slow_to_compile() -> String {
    let body = "(local.set 0 (i32.add (i32.mul (local.get 0) (i32.const 31)) (i32.popcnt (local.get 0))))".repeat(60);
    let functions: String = (0..2_000)
        .map(|_| format!("(func (param i32) (result i32) {body} (local.get 0))"))
        .collect();
    format!(
        r#"(component
            (core module $m {functions} (func (export "fine") (result i32) i32.const 42))
            (core instance $i (instantiate $m))
            (func (export "fine") (result u32) (canon lift (core func $i "fine"))))"#
    )
}

// attack: A17
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn compilation_blocks_no_other_call_and_is_not_charged_to_the_deadline() {
    const CALL_WALL_MAX: Duration = Duration::from_millis(50);
    let guests = Guests::new();
    let counter = guests.wat("counter").await;
    let large_one = guests.text("large", &slow_to_compile()).await.unwrap();
    let compiling = tokio::spawn(async move { large_one.compile().await.unwrap() });
    let (mut others, mut served) = (Conversation::over(&[&counter]), 0);
    while !compiling.is_finished() {
        assert_eq!(others.value("next", json!({})).await, json!(1));
        served += 1;
    }
    let took = compiling.await.unwrap();
    assert!(
        took > CALL_WALL_MAX && served > 10,
        "{took:?}, {served} calls were served"
    );
    let fresh = Guests::new();
    let large_one = fresh.text("large", &slow_to_compile()).await.unwrap();
    let mut bounded = Conversation::over(&[&large_one]).limited(LimitOverrides::default().with_wall_max(CALL_WALL_MAX));
    assert_eq!(bounded.value("fine", json!({})).await, json!(42));
}

// accept: 119
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn call_waits_for_compilation_up_to_the_load_limit_and_works_afterwards() {
    let guests = Guests::with(|options| options.engine_limits.load_wall_max = Duration::from_millis(1));
    let large_one = guests.text("large", &slow_to_compile()).await.unwrap();
    let mut conversation = Conversation::over(&[&large_one]);
    let error = conversation.error("fine", json!({})).await;
    assert_eq!((error.kind, error.phase), (ErrorKind::Timeout, Phase::Load));
    assert_eq!(error.limit.as_ref().unwrap().limit, "load_wall_max");
    assert!(error.suggestion.as_deref().unwrap().contains("compiling continues"));
    while let Err(error) = large_one.compile().await {
        assert_eq!(error.kind, ErrorKind::Timeout, "it only needs longer: {error}");
    }
    assert_eq!(conversation.value("fine", json!({})).await, json!(42));
}
