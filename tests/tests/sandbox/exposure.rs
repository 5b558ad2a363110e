//! Exposure of plugin tools to a model: interfaces as facades, chained resources, shared tools of many entities.

use std::path::Path;
use std::sync::Arc;

use serde_json::json;
use tempfile::TempDir;
use toolwit::sandbox::CodeCacheLocation;
use toolwit::{Exposure, RunOutcome, ScriptedModel, Toolwit};

/// An interface of two functions, and a function of the world.
const CALC: &str = r#"(component
    (core module $m (func (export "one") (result i32) i32.const 1) (func (export "two") (result i32) i32.const 2))
    (core instance $c (instantiate $m))
    (func $one (result u32) (canon lift (core func $c "one")))
    (func $two (result u32) (canon lift (core func $c "two")))
    (instance $ops (export "one" (func $one)) (export "two" (func $two)))
    (export "demo:calc/ops@0.1.0" (instance $ops))
    (export "ping" (func $one)))"#;

fn token() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("guests/wat/token.wat");
    std::fs::read_to_string(path).unwrap()
}

/// Runs a scripted model over one plugin with a manifest. Returns the outcome, and the names that were declared at
/// each inference.
async fn run_script(name: &str, text: &str, manifest: &str, model: ScriptedModel) -> (RunOutcome, Vec<Vec<String>>) {
    let directory = TempDir::new().unwrap();
    let component = wat::parse_str(text).unwrap();
    std::fs::write(directory.path().join(name).with_extension("wasm"), component).unwrap();
    std::fs::write(directory.path().join(name).with_extension("toml"), manifest).unwrap();
    let host = Toolwit::builder()
        .plugins(directory.path())
        .code_cache(CodeCacheLocation::Off)
        .build()
        .await
        .unwrap();
    let model = Arc::new(model);
    let outcome = host.conversation().model(model.clone()).run("go").await.unwrap();
    let names = |tools: &[toolwit::tool::ToolName]| tools.iter().map(ToString::to_string).collect();
    let shown = model.requests().iter().map(|request| names(&request.tools)).collect();
    (outcome, shown)
}

fn answers(outcome: &RunOutcome) -> Vec<&str> {
    let history = outcome.history.iter();
    let answers = history.filter(|message| matches!(message.role, toolwit::tool::Role::Tool { .. }));
    answers.map(toolwit::tool::Message::content).collect()
}

// accept: 58, accept: 104
#[tokio::test]
async fn manifest_turns_interfaces_into_facades() {
    let model = ScriptedModel::new()
        .call("two", json!({}))
        .call("ops", json!({}))
        .call("two", json!({}))
        .answer("ok");
    let manifest = "facade = true\ndescription = \"Counts.\"";
    let (outcome, shown) = run_script("calc", CALC, manifest, model).await;
    assert_eq!(shown[0], ["ops", "ping"]);
    assert_eq!(shown[2], ["ops", "ping", "one", "two", "ops_context"]);
    let results = answers(&outcome);
    assert!(results[0].contains("call `ops` first"), "{}", results[0]);
    assert_eq!(results[2], "2");
}

// accept: 43, accept: 44, accept: 45, accept: 46
#[tokio::test]
async fn manifest_declares_the_methods_of_a_resource_from_the_start() {
    let model = ScriptedModel::new()
        .call("token_bump", json!({}))
        .call("make", json!({}))
        .call("token_bump", json!({}))
        .call("token_bump", json!({}))
        .call("make", json!({}))
        .call("token_bump", json!({}))
        .call("many", json!({"count": 3}))
        .call("token_bump", json!({}))
        .answer("ok");
    let (outcome, shown) = run_script("token", &token(), "chain = [\"token\"]", model).await;
    let results = answers(&outcome);
    assert!(results[0].contains("not available yet"), "{}", results[0]);
    assert!(
        results[1].contains(r#""available_tools":["token_bump","token_explode","token_spin"]"#),
        "{}",
        results[1]
    );
    assert_eq!((results[2], results[3]), ("1", "2"));
    assert_eq!(results[5], "1", "the most recent instance");
    assert_eq!(results[7], "2", "several instances do not change the binding");
    assert_eq!(shown[0], shown[8], "declared from the start");
}

#[tokio::test]
async fn chain_over_a_missing_resource_breaks_the_package() {
    let directory = TempDir::new().unwrap();
    std::fs::write(directory.path().join("token.wasm"), wat::parse_str(token()).unwrap()).unwrap();
    std::fs::write(directory.path().join("token.toml"), "chain = [\"coin\"]").unwrap();
    let host = Toolwit::builder()
        .plugins(directory.path())
        .code_cache(CodeCacheLocation::Off)
        .build()
        .await
        .unwrap();
    let reason = host.registry().packages()[0].broken_reason().unwrap().to_string();
    assert!(reason.contains("`coin` under `chain`"), "{reason}");
}

// accept: 29, accept: 40
#[tokio::test]
async fn five_hundred_entities_of_a_plugin_need_as_many_tools_as_one() {
    let model = ScriptedModel::new()
        .call("many", json!({"count": 500}))
        .call("token_bump", json!({"token_id": "500"}))
        .answer("ok");
    let (outcome, shown) = run_script("token", &token(), "", model).await;
    assert_eq!(answers(&outcome)[1], "1");
    assert_eq!(shown[1].len(), shown[0].len() + 3, "its three methods");
}

#[tokio::test]
async fn tool_filter_of_a_conversation_applies_to_entity_methods_in_every_exposure() {
    for manifest in ["", "chain = [\"token\"]"] {
        for exposure in [Exposure::Flat, Exposure::Search] {
            let directory = TempDir::new().unwrap();
            std::fs::write(directory.path().join("token.wasm"), wat::parse_str(token()).unwrap()).unwrap();
            std::fs::write(directory.path().join("token.toml"), manifest).unwrap();
            let host = Toolwit::builder()
                .plugins(directory.path())
                .code_cache(CodeCacheLocation::Off);
            let host = host.exposure(exposure).build().await.unwrap();
            let model = || {
                let arguments = match manifest {
                    "" => json!({"token_id": "1"}),
                    _ => json!({}),
                };
                let model = ScriptedModel::new().call("make", json!({}));
                model
                    .call("token_bump", arguments.clone())
                    .call("token_explode", arguments)
                    .answer("ok")
            };
            let all = host
                .conversation()
                .model(Arc::new(model()))
                .run("make a token")
                .await
                .unwrap();
            let results = answers(&all);
            assert!(
                results[0].contains("token_explode"),
                "{exposure:?} {manifest}: {}",
                results[0]
            );
            assert_eq!(results[1], "1");
            assert!(results[2].contains("unreachable"), "the method runs: {}", results[2]);

            let scripted = Arc::new(model());
            let some = host.conversation_among(|id| id != "token#[method]token.explode");
            let some = some.model(scripted.clone()).run("make a token").await.unwrap();
            let results = answers(&some);
            assert!(
                results[0].contains("token_bump") && !results[0].contains("token_explode"),
                "{exposure:?} {manifest}: {}",
                results[0]
            );
            assert_eq!(results[1], "1");
            assert!(
                results[2].contains("token_explode") && !results[2].contains("unreachable"),
                "{}",
                results[2]
            );
            let shown = scripted.requests();
            let mut names = shown.iter().flat_map(|request| &request.tools);
            assert!(
                names.all(|name| name.as_str() != "token_explode"),
                "{exposure:?} {manifest}"
            );
        }
    }
}
