//! Tests of the stored options of sessions.

use clap::{Args, Command, FromArgMatches};
use serde_json::json;
use toolwit::agent::MemoryJournalStore;

use super::*;
use crate::output::printer::{Format, Verbosity};

fn options(flags: &[&str]) -> RunOptions {
    let command = RunOptions::augment_args(Command::new("test").no_binary_name(true));
    RunOptions::from_arg_matches(&command.get_matches_from(flags)).unwrap()
}

fn printer() -> Printer {
    Printer::new(Format::Human, Verbosity::Quiet)
}

/// Stores settings in a session, and returns the reopened journal of the session.
async fn journal(settings: Value) -> Journal {
    let (store, session) = (MemoryJournalStore::new(), "s".parse().unwrap());
    let journal = Journal::create(&store, &session).await.unwrap();
    journal.store_settings(settings);
    journal.commit().await.unwrap();
    drop(journal);
    Journal::open(&store, &session).await.unwrap()
}

fn stored_settings(options: &RunOptions) -> Value {
    let stored = StoredOptions {
        version: FORMAT_VERSION,
        project: None,
        withheld: Vec::new(),
        options: options.clone(),
    };
    with_code(without_unset(serde_json::to_value(stored).unwrap()), Some(&key()))
}

fn key() -> UserKey {
    UserKey::from_bytes([7; 32])
}

fn restore_own(cli_options: RunOptions, journal: &Journal) -> Result<RunOptions, Error> {
    restore_with_key(cli_options, journal, Some(&key()), printer())
}

#[tokio::test]
async fn each_option_is_restored() {
    let command = RunOptions::augment_args(Command::new("test"));
    // `--wasi-p3` is not restored, `--no-mcp` excludes `--mcp`, and the file of `--policy` must exist.
    let excluded = ["wasi-p3", "no-mcp", "policy"];
    let mut flags = Vec::new();
    for argument in command.get_arguments() {
        let name = argument.get_long().unwrap();
        let value = match name {
            "exposure" => "facade",
            "delivery" => "gateway",
            "approve" => "always",
            "effort" => "high",
            "pictures" => "yes",
            "tool-calls" => "json",
            "run-wall" | "wall" => "1500ms",
            "nested-depth" => "7",
            "temperature" | "cost" => "1.5",
            name if excluded.contains(&name) => continue,
            name if name.ends_with("-bytes") => "4MiB",
            _ if argument.get_action().takes_values() => "5000",
            _ => {
                flags.push(format!("--{name}"));
                continue;
            }
        };
        flags.push(format!("--{name}={value}"));
    }
    let flags: Vec<_> = flags.iter().map(String::as_str).collect();
    let cli_options = options(&flags);
    let settings = stored_settings(&cli_options);
    let restored = restore_own(RunOptions::default(), &journal(settings.clone()).await).unwrap();
    assert_eq!(stored_settings(&restored), settings);
    assert_eq!(count_leaves(&settings["options"]), flags.len(), "{settings}");
}

fn count_leaves(value: &Value) -> usize {
    match value {
        Value::Object(fields) => fields.values().map(count_leaves).sum(),
        _ => 1,
    }
}

#[tokio::test]
async fn options_of_the_command_line_replace_stored_ones() {
    let stored = [
        "--model", "openai:a", "--system", "S", "--mcp", "m.toml", "--calls", "3",
    ];
    let journal = journal(stored_settings(&options(&stored))).await;
    let restore_with = |flags: &[&str]| restore_own(options(flags), &journal).unwrap();
    let restored = restore_with(&["--model", "openai:b", "--no-mcp"]);
    assert_eq!(
        (restored.model.as_deref(), restored.system.as_deref()),
        (Some("openai:b"), Some("S"))
    );
    assert!(restored.mcp.files().is_empty() && restored.mcp.is_set());
    assert_eq!(restore_with(&[]).mcp.files().len(), 1);
}

// attack: M5
#[tokio::test]
async fn hostile_stored_options_are_refused() {
    let with_version = |(options, reason): (Value, _)| (json!({"version": 1, "options": options}), reason);
    let hostile_settings = [
        (json!([]), "version is missing"),
        (json!({"version": 2}), "version 2 is not supported"),
        (json!({"version": 1, "granted": true}), "unknown field `granted`"),
    ];
    let hostile_options = [
        (json!({"allow_all": true}), "unknown field `allow_all`"),
        (json!({"model": 7}), "invalid type"),
        (json!({"plugins": ["/"]}), "invalid"),
        (json!({"limits": {"nested_depth": 17}}), "17 is not in the range"),
        (json!({"limits": {"wall": "-1s"}}), "is not a span of time"),
        (json!({"model_options": {"max_tokens": 0}}), "0 is not in the range"),
        (
            json!({"run_limits": {"context_tokens": 999}}),
            "999 is not in the range",
        ),
        (json!({"approvals": {"approve": "all"}}), "unknown variant `all`"),
    ];
    for (settings, reason) in hostile_settings.into_iter().chain(hostile_options.map(with_version)) {
        let journal = journal(settings).await;
        let error = restore_own(RunOptions::default(), &journal).unwrap_err();
        assert!(error.message.contains(reason), "{reason}: {error}");
        assert!(
            error
                .suggestion
                .as_deref()
                .unwrap()
                .contains("toolwit sessions fork s NEW --at 0")
        );
    }
    let journal = journal(json!({"version": 1, "options": {"plugins": {"wasi": {"wasi_p3": true}}}})).await;
    let restored = restore_own(RunOptions::default(), &journal).unwrap();
    assert!(!restored.plugins.wasi.is_wasi3_enabled(), "`--wasi-p3` is not restored");
}

// attack: M5
#[tokio::test]
async fn edited_options_start_no_server_until_they_are_passed_again() {
    let mut settings = stored_settings(&options(&["--model", "openai:a", "--mcp", "m.toml"]));
    settings["options"]["mcp"]["files"] = json!(["/evil.toml"]);
    let edited = journal(settings).await;
    let error = restore_own(options(&[]), &edited).unwrap_err();
    assert!(error.message.starts_with("nothing proves"), "{error}");
    let suggestion = error.suggestion.as_deref().unwrap();
    assert!(suggestion.contains("`--mcp /evil.toml`"), "{suggestion}");
    for flags in [&["--mcp", "/evil.toml"][..], &["--no-mcp"]] {
        assert!(restore_own(options(flags), &edited).is_ok(), "{flags:?}");
    }
    let of_another = restore_with_key(options(&[]), &edited, None, printer());
    assert!(of_another.is_err(), "without a key, nothing is proved");
}

#[test]
fn urls_with_credentials_are_withheld() {
    for (model, url, withheld) in [
        ("openai:a", Some("http://localhost:1/v1"), &[][..]),
        ("openai:a", Some("http://u:p@localhost/v1"), &["--base-url"]),
        ("openai:a", Some("http://localhost/v1?key=k"), &["--base-url"]),
        ("openai:a", Some("not a url"), &["--base-url"]),
        ("openai:a@http://token@localhost/v1", None, &["--model"]),
        ("openai:a@HTTP://user:password@localhost/v1", None, &["--model"]),
        ("openai:a@http://localhost/v1", None, &[]),
    ] {
        let mut options = RunOptions {
            model: Some(model.to_owned()),
            base_url: url.map(str::to_owned),
            ..RunOptions::default()
        };
        let flags: Vec<_> = withhold_credentials(&mut options)
            .into_iter()
            .map(WithheldOption::flag)
            .collect();
        assert_eq!(flags, withheld, "{model} {url:?}");
        assert_eq!(options.base_url.is_none(), url.is_none() || withheld == ["--base-url"]);
    }
}

#[tokio::test]
async fn stored_base_url_is_not_used_for_another_provider() {
    let settings = stored_settings(&options(&["--model", "openai:a", "--base-url", "http://localhost:1"]));
    let journal = journal(settings).await;
    let restore_with = |model: &str| restore_own(options(&["--model", model]), &journal).unwrap();
    assert_eq!(restore_with("openai:b").base_url.as_deref(), Some("http://localhost:1"));
    assert_eq!(restore_with("anthropic:c").base_url, None);
}
