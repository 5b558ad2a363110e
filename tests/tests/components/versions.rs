//! Components of other versions of `toolwit:plugin` and of WASI.

use serde_json::json;
use toolwit::sandbox::{Scope, WasiVersions};
use toolwit::{ErrorKind, Tool, ToolContext};
use toolwit_tests::Guests;

/// A component that imports an interface with one function.
fn component_importing(interface: &str) -> String {
    format!(r#"(component (import "{interface}" (instance (export "progress" (func (param "text" string))))))"#)
}

#[tokio::test]
async fn component_of_the_first_version_works() {
    let guests = Guests::new();
    let courier = guests.rust("courier").await;
    let imports: Vec<_> = courier
        .inspection()
        .imports
        .iter()
        .map(|import| import.name.clone())
        .collect();
    assert!(
        imports.contains(&"toolwit:plugin/output@0.1.0".to_owned()),
        "{imports:?}"
    );
    let tools = courier.tools(&Scope::new());
    let attach = tools.iter().find(|tool| tool.definition().name() == "attach").unwrap();
    let arguments = json!({"kind": "note", "value": "[1]"}).as_object().unwrap().clone();
    let result = attach.call(arguments, &ToolContext::new()).await.unwrap();
    assert_eq!(result.artifacts[0].value, json!([1]));
}

#[tokio::test]
async fn component_of_a_later_version_is_refused_with_both_versions_and_the_fix() {
    let guests = Guests::new();
    for later in ["0.1.9", "0.2.0", "1.0.0"] {
        let text = component_importing(&format!("toolwit:plugin/output@{later}"));
        let error = guests.text("later", &text).await.err().unwrap();
        assert_eq!(error.kind, ErrorKind::UnknownImport);
        assert!(
            error.message.contains(&format!("`toolwit:plugin/output@{later}`")),
            "{error}"
        );
        let fix = error.suggestion.as_ref().unwrap();
        assert!(
            fix.contains("0.1.2") && fix.contains("build the component against"),
            "{fix}"
        );
    }
}

#[tokio::test]
async fn an_export_of_a_later_version_is_named_with_both_versions_and_the_fix() {
    let exporting = |interface: &str| {
        format!(
            r#"(component
                (core module $m (func (export "f") (result i32) i32.const 1))
                (core instance $i (instantiate $m))
                (func $f (result u32) (canon lift (core func $i "f")))
                (instance $e (export "before" (func $f)))
                (export "{interface}" (instance $e)))"#
        )
    };
    for interface in ["interceptor", "dynamic"] {
        for later in ["0.1.9", "0.2.0", "1.0.0"] {
            let export = format!("toolwit:plugin/{interface}@{later}");
            let plugin = Guests::new().text("later", &exporting(&export)).await.unwrap();
            let inspection = plugin.inspection();
            assert!(
                inspection.tools.is_empty(),
                "{export}: no function of it becomes a tool"
            );
            let skipped = &inspection.skipped[0];
            assert_eq!(skipped.export, export);
            for part in [later, "0.1.2", "build the component against"] {
                assert!(skipped.reason.contains(part), "{export}: {}", skipped.reason);
            }
        }
    }
}

// attack: A7, attack: Q5
#[tokio::test]
async fn interfaces_of_wasi_3_need_the_switch_and_others_are_never_offered() {
    let guests = Guests::with(|options| options.wasi = WasiVersions::Wasi2And3);
    let random = r#"(component
        (import "wasi:random/random@0.3.0" (instance $r (export "get-random-u64" (func (result u64)))))
        (core func $get (canon lower (func $r "get-random-u64")))
        (core module $m (import "" "get" (func $get (result i64))) (func (export "draw") (result i64) call $get))
        (core instance $i (instantiate $m (with "" (instance (export "get" (func $get))))))
        (func (export "draw") (result u64) (canon lift (core func $i "draw"))))"#;
    let refused = Guests::new().text("draw", random).await.err().unwrap();
    assert!(
        refused.suggestion.as_ref().unwrap().contains("Wasi2And3"),
        "{refused:?}"
    );
    let draw = guests.text("draw", random).await.unwrap();
    let tools = draw.tools(&Scope::new());
    let result = tools[0]
        .call(toolwit::Arguments::new(), &ToolContext::new())
        .await
        .unwrap();
    assert!(result.for_llm.parse::<u64>().is_ok(), "{}", result.for_llm);
    for never in [
        "wasi:http/handler@0.3.0",
        "wasi:clocks/timezone@0.3.0",
        "wasi:random/random@0.3.0-rc-2026-01-01",
    ] {
        let error = guests.text("never", &component_importing(never)).await.err().unwrap();
        assert!(error.message.contains(&format!("`{never}`")), "{error}");
    }
}

/// A program that exports `wasi:cli/run` in two versions, as toolchains for 0.2 make of a program for 0.3. `exit_status` differs.
const TWO_RUNS: &str = r#"(component
    (core module $m
        (func (export "fail") (result i32) i32.const 1)
        (func (export "run") (result i32) i32.const 0))
    (core instance $i (instantiate $m))
    (func $earlier (result (result)) (canon lift (core func $i "fail")))
    (func $later (result (result)) (canon lift (core func $i "run")))
    (instance $run2 (export "run" (func $earlier)))
    (instance $run3 (export "run" (func $later)))
    (export "wasi:cli/run@0.3.0" (instance $run3))
    (export "wasi:cli/run@0.2.6" (instance $run2)))"#;

#[tokio::test]
async fn a_program_for_two_versions_of_wasi_is_one_tool_which_runs_the_later_one() {
    let program = Guests::new().text("program", TWO_RUNS).await.unwrap();
    let tools = program.tools(&Scope::new());
    let names: Vec<_> = tools.iter().map(|tool| tool.definition().name()).collect();
    assert_eq!(names, ["program"]);
    let result = tools[0]
        .call(toolwit::Arguments::new(), &ToolContext::new())
        .await
        .unwrap();
    assert!(result.for_llm.contains(r#""exit_status":0"#), "{}", result.for_llm);
    let skipped = &program.inspection().skipped;
    assert_eq!(skipped.len(), 1);
    assert_eq!(skipped[0].export, "wasi:cli/run@0.2.6");
    assert_eq!(skipped[0].reason, "`wasi:cli/run@0.3.0` runs the same program");
}
