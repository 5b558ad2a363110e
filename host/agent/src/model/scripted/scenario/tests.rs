#![allow(clippy::unwrap_used, clippy::panic)]

use serde_json::json;

use super::*;
use crate::model::{Expectation, FinishReason, TextMatch, TokenUsage};

fn parse_error(text: &str) -> String {
    match ScriptedModel::parse(text) {
        Err(ModelError::Configuration { message, .. }) => message,
        other => panic!("{text}: {other:?}"),
    }
}

// accept: 126
#[test]
fn a_scenario_equals_the_script_built_in_rust() {
    let text = r#"
        name = "average spend"
        prompt = "What is John Smith's average spend?"

        [[turn]]
        expect.tools = ["search_customer"]
        expect.no_tools = "customer_c123_get_average_spend"
        expect.prompt.contains = "John"
        say = "Let me look that customer up."
        call = [
          { tool = "search_customer", arguments = { name = "John Smith", limit = 3, exact = true, bounds = [1.5] } },
          { tool = "broken", arguments_text = "{\"a\":", id = "same" },
          { tool = "nothing" },
        ]

        [[turn]]
        expect.last_result.json."/id" = "c-123"
        expect.last_result.lacks = ["error", "nobody"]
        expect.results = [{ is_error = true }, { tool = "broken", equals = "x" }]
        fail.unavailable = { status = 503, message = "overloaded" }

        [[turn]]
        silent = true

        [[turn]]
        answer = "{{result.amount}}"
        finish = "length"
        usage = { input_tokens = 10, cached_tokens = 4, output_tokens = 5 }
    "#;
    let script = ScriptedModel::parse(text).unwrap();
    let arguments = json!({"name": "John Smith", "limit": 3, "exact": true, "bounds": [1.5]});
    let turns = [
        ScriptedTurn::call("search_customer", arguments)
            .and_call_verbatim("broken", "{\"a\":")
            .with_id("same")
            .and_call("nothing", json!({}))
            .with_text("Let me look that customer up.")
            .with_expectation(
                Expectation::new()
                    .tools(["search_customer"])
                    .no_tools(["customer_c123_get_average_spend"])
                    .prompt(TextMatch::new().contains("John")),
            ),
        ScriptedTurn::fail(ModelError::Unavailable {
            attempts: 1,
            message: "overloaded".into(),
            status: Some(503),
        })
        .with_expectation(
            Expectation::new()
                .last_result(TextMatch::new().json("/id", "c-123").lacks("error").lacks("nobody"))
                .results([TextMatch::new().error(), TextMatch::new().tool("broken").equals("x")]),
        ),
        ScriptedTurn::silence(),
        ScriptedTurn::answer("{{result.amount}}")
            .with_finish_reason(FinishReason::Length)
            .with_usage(TokenUsage::new(10, 4, 5)),
    ];
    assert_eq!(script.turns, turns);
    assert_eq!(
        (script.name.as_str(), script.prompt()),
        ("average spend", Some("What is John Smith's average spend?"))
    );
}

#[test]
fn an_invalid_file_is_refused_with_line_and_column() {
    let invalid = [
        ("nane = \"x\"", "line 1, column 1", "unknown field `nane`, expected"),
        (
            "[[turn]]\nanswer = \"\"\nexpct.tools = \"a\"",
            "line 3, column 1",
            "unknown field `expct`",
        ),
        (
            "[[turn]]\nanswer = \"\"\nexpect.last_result.contain = \"a\"",
            "line 3, column 20",
            "unknown field `contain`",
        ),
        (
            "[[turn]]\ncall = [{ tol = \"a\" }]",
            "line 2, column 11",
            "unknown field `tol`",
        ),
        (
            "[[turn]]\nanswer = \"\"\nexpect.tools = []",
            "line 3, column 16",
            "a text or a non-empty list of texts",
        ),
        (
            "[[turn]]\nanswer = \"\"\nfinish = \"lenght\"",
            "line 3, column 10",
            "unknown variant `lenght`",
        ),
        (
            "[[turn]]\nfail.refusd = { message = \"\" }",
            "line 2, column 6",
            "unknown variant `refusd`",
        ),
        ("[[turn]\n", "line 1, column 8", ""),
        (
            "[[turn]]\ncall = [{ tool = \"a\", arguments = { at = 2024-01-01 } }]",
            "line 2, column 35",
            "in quotes",
        ),
        (
            "[[turn]]\ncall = [{ tool = \"a\", arguments = { at = nan } }]",
            "line 2, column 35",
            "no number `NaN`",
        ),
    ];
    for (text, position, why) in invalid {
        let message = parse_error(text);
        assert!(
            message.contains(&format!("at {position}:")) && message.contains(why),
            "{text}\n{message}"
        );
    }
}

#[test]
fn an_invalid_turn_is_refused_with_the_position_where_it_begins() {
    let as_second_turn = |turn: &str| format!("[[turn]]\nanswer = \"\"\n\n[[turn]]\n{turn}");
    let invalid = [
        ("", "has no action"),
        ("say = \"x\"", "`answer`"),
        ("answer = \"\"\ncall = [{ tool = \"a\" }]", "both `answer` and `call`"),
        ("call = []", "`call` is empty"),
        (
            "call = [{ tool = \"a\", arguments = {}, arguments_text = \"\" }]",
            "not both",
        ),
        ("call = [{ tool = \"a\", arguments = 3 }]", "must be a table"),
        (
            "call = [{ tool = \"a\", arguments = { x = \"{{oops\" } }]",
            "not closed",
        ),
        ("silent = false", "only be `true`"),
        ("silent = true\nfinish = \"stop\"", "require an `answer`"),
        ("answer = \"{{result..x}}\"", "empty step"),
        ("answer = \"\"\nexpect = {}", "never fail"),
        ("answer = \"\"\nexpect.last_result = {}", "never fail"),
        ("answer = \"\"\nexpect.last_result.json = {}", "JSON pointers"),
        ("answer = \"\"\nexpect.last_result.contains = \"\"", "never fail"),
    ];
    for (turn, why) in invalid {
        let message = parse_error(&as_second_turn(turn));
        assert!(
            message.contains("at line 4, column 1:") && message.contains(why),
            "{turn}\n{message}"
        );
    }
    assert!(parse_error("name = \"empty\"").contains("no `[[turn]]`"));
}

#[tokio::test]
async fn the_file_name_is_the_default_script_name_and_errors_contain_the_path() {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = dir.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let script = ScriptedModel::load(write("greet.toml", "[[turn]]\nanswer = \"hi\""))
        .await
        .unwrap();
    assert_eq!(script.name, "greet");
    let too_long = format!("# {}\n[[turn]]\nanswer = \"hi\"", "x".repeat(1 << 20));
    for path in [
        write("long.toml", &too_long),
        dir.path().join("absent.toml"),
        write("bad.toml", "[["),
    ] {
        let error = ScriptedModel::load(&path).await.unwrap_err().to_string();
        assert!(error.contains(&path.display().to_string()), "{error}");
    }
}

// attack: J11
#[cfg(unix)]
#[tokio::test]
async fn a_scenario_that_is_not_a_regular_file_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let (file, link) = (directory.path().join("a.toml"), directory.path().join("b.toml"));
    std::fs::write(&file, "[[turn]]\nanswer = \"a\"\n").unwrap();
    std::os::unix::fs::symlink("/dev/null", &link).unwrap();
    ScriptedModel::load(&file).await.unwrap();
    let refused = ScriptedModel::load(&link).await.unwrap_err();
    assert!(refused.to_string().contains("is not a regular file"), "{refused}");
}
