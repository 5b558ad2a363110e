//! The options that a session stores for the runs that continue it.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::paths::absolute;
use super::run_options::{RunOptions, without_unset};
use super::withheld_option::{WithheldOption, withhold_credentials};
use crate::output::printer::Printer;
use crate::shell::SuggestedCommand;
use toolwit::agent::Journal;
use toolwit::registry::Project;
use toolwit::{Error, ErrorKind, Phase};

/// The version of the format of [`StoredOptions`].
const FORMAT_VERSION: u64 = 1;

/// The options as a session stores them. An unknown field is an error, because it may be an option that limits the run.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredOptions {
    version: u64,
    /// The directory of the project in which the run began, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    project: Option<PathBuf>,
    /// The options that were set, but are not stored because they can contain credentials.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    withheld: Vec<WithheldOption>,
    #[serde(default)]
    options: RunOptions,
}

/// Stores the options of a run in its session, without credentials, unless the session's last stored options are equal.
///
/// # Errors
/// If a path is not UTF-8, or the current directory or the project in it cannot be read.
pub(crate) fn store(journal: &Journal, options: &RunOptions) -> Result<(), Error> {
    let mut options = options.for_other_directory()?;
    let project = PathBuf::from(Project::FILE_NAME);
    let project = project.is_file().then(|| absolute(".".as_ref())).transpose()?;
    let withheld = withhold_credentials(&mut options);
    let stored_options = StoredOptions {
        version: FORMAT_VERSION,
        project,
        withheld,
        options,
    };
    let settings = serde_json::to_value(stored_options)
        .map(without_unset)
        .map_err(|error| {
            let message = format!("the options cannot be stored with the session: {error}");
            Error::new(ErrorKind::Configuration, Phase::Registry, message).with_source(error)
        })?;
    if journal.settings().is_none_or(|(_, earlier)| earlier != settings) {
        journal.store_settings(settings);
    }
    Ok(())
}

/// Returns the options of the command line, completed with those of the session. Options that weaken the approvals or
/// the sandbox are not restored; a hint names them.
///
/// # Errors
/// If the stored options or the policy file are not valid, or the command line does not repeat a withheld option.
pub(crate) fn restore(cli_options: RunOptions, journal: &Journal, printer: Printer) -> Result<RunOptions, Error> {
    let Some((entry, settings)) = journal.settings() else {
        return Ok(cli_options);
    };
    let stored = parse_stored_options(settings).map_err(|reason| {
        let session = journal.session();
        let message = format!("the options of the session `{session}` (entry {entry}) cannot be used: {reason}");
        let fork = SuggestedCommand::new("sessions fork")
            .operand(session.as_str())
            .operand("NEW");
        let fork = fork.option("at", &entry.to_string());
        Error::new(ErrorKind::Configuration, Phase::Registry, message).with_suggestion(format!(
            "use a newer version of the program, or fork the session before this entry: `{fork}`"
        ))
    })?;
    if let Some(option) = stored.withheld.iter().find(|option| !option.is_set(&cli_options)) {
        let flag = option.flag();
        let message =
            format!("the session does not have its `{flag}`, because it can contain credentials and is not stored");
        return Err(
            Error::new(ErrorKind::Configuration, Phase::Model, message).with_suggestion(format!("pass `{flag}` again"))
        );
    }
    let mut stored_options = stored.options;
    if cli_options.model.is_some() && provider(&cli_options) != provider(&stored_options) {
        // The server at the stored URL would receive the key of the other provider.
        stored_options.base_url = None;
    }
    if stored_options.plugins.wasi.is_wasi3_enabled() && !cli_options.plugins.wasi.is_wasi3_enabled() {
        stored_options.plugins.wasi = cli_options.plugins.wasi;
        print_not_restored(printer, "--wasi-p3");
    }
    let cli_options = with_files_of_environment(cli_options)?;
    let mut options = cli_options.completed_with(&stored_options).map_err(|error| {
        let message = format!("the options of the session cannot be used: {error}");
        Error::new(ErrorKind::Configuration, Phase::Registry, message).with_source(error)
    })?;
    if cli_options.approvals.mode().is_none()
        && let Some(mode) = options.approvals.remove_weaker_mode()?
    {
        print_not_restored(printer, &format!("--approve {mode}"));
    }
    print_restored(&cli_options, &options, stored.project.as_deref(), printer)?;
    Ok(options)
}

/// Returns the provider of the model, if a model is set.
fn provider(options: &RunOptions) -> Option<&str> {
    options.model.as_deref()?.split(':').next()
}

fn print_not_restored(printer: Printer, option: &str) {
    printer.hint(format_args!(
        "the run had `{option}`, which weakens its protection and is not restored; pass it again to continue with it"
    ));
}

/// Sets the grants file and the policy file that the environment names, unless the command line names them. So these
/// files take precedence over the stored ones, because an earlier run must not decide about permissions.
fn with_files_of_environment(mut cli_options: RunOptions) -> Result<RunOptions, Error> {
    cli_options.grants_and_secrets.grants = cli_options.grants_and_secrets.grants.for_other_directory()?;
    cli_options.approvals = cli_options.approvals.for_other_directory()?;
    Ok(cli_options)
}

/// Prints the restored grants file and policy file, and the project of the session if its settings do not apply.
fn print_restored(
    cli_options: &RunOptions,
    options: &RunOptions,
    project: Option<&std::path::Path>,
    printer: Printer,
) -> Result<(), Error> {
    let grants = options.grants_and_secrets.grants.named_file();
    let policy = options.approvals.named_file();
    let cli_grants = cli_options.grants_and_secrets.grants.named_file();
    let cli_policy = cli_options.approvals.named_file();
    let restored_files = [
        ("--grants", grants.filter(|_| cli_grants.is_none())),
        ("--policy", policy.filter(|_| cli_policy.is_none())),
    ];
    for (flag, path) in restored_files {
        if let Some(path) = path {
            printer.hint(format_args!(
                "continuing with `{flag} {}` of the session",
                path.display()
            ));
        }
    }
    if let Some(project) = project.filter(|project| absolute(".".as_ref()).is_ok_and(|current| current != *project)) {
        printer.hint(format_args!(
            "the run began in the project {}, whose settings do not apply in this directory",
            project.display()
        ));
    }
    Ok(())
}

fn parse_stored_options(settings: Value) -> Result<StoredOptions, String> {
    match settings.get("version").and_then(Value::as_u64) {
        Some(FORMAT_VERSION) => serde_json::from_value(settings).map_err(|error| error.to_string()),
        Some(version) => Err(format!("version {version} is not supported")),
        None => Err("the version is missing".to_owned()),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
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
        without_unset(serde_json::to_value(stored).unwrap())
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
        let restored = restore(RunOptions::default(), &journal(settings.clone()).await, printer()).unwrap();
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
        let restore_with = |flags: &[&str]| restore(options(flags), &journal, printer()).unwrap();
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
            let error = restore(RunOptions::default(), &journal, printer()).unwrap_err();
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
        let restored = restore(RunOptions::default(), &journal, printer()).unwrap();
        assert!(!restored.plugins.wasi.is_wasi3_enabled(), "`--wasi-p3` is not restored");
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
        let restore_with = |model: &str| restore(options(&["--model", model]), &journal, printer()).unwrap();
        assert_eq!(restore_with("openai:b").base_url.as_deref(), Some("http://localhost:1"));
        assert_eq!(restore_with("anthropic:c").base_url, None);
    }
}
