//! The options that a session stores for the runs that continue it.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::host_files;
use super::options_code::{require_confirmed, with_code, without_code};
use super::paths::absolute;
use super::run_options::{RunOptions, without_unset};
use super::user_key::UserKey;
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
    let settings = with_code(settings, UserKey::load().as_ref());
    if journal.settings().is_none_or(|(_, earlier)| earlier != settings) {
        journal.store_settings(settings);
    }
    Ok(())
}

/// Returns the options of the command line, completed with those of the session. Options that weaken the approvals or
/// the sandbox are not restored; a hint names them.
///
/// # Errors
/// If the stored options or the policy file are not valid, or the command line does not repeat a withheld option or one that another
/// user may have stored.
pub(crate) fn restore(cli_options: RunOptions, journal: &Journal, printer: Printer) -> Result<RunOptions, Error> {
    restore_with_key(cli_options, journal, UserKey::load().as_ref(), printer)
}

fn restore_with_key(
    cli_options: RunOptions,
    journal: &Journal,
    key: Option<&UserKey>,
    printer: Printer,
) -> Result<RunOptions, Error> {
    let Some((entry, settings)) = journal.settings() else {
        return Ok(cli_options);
    };
    let (settings, is_own) = without_code(&settings, key);
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
    if !is_own {
        require_confirmed(&cli_options, &stored_options)?;
    }
    if cli_options.model.is_some() && provider(&cli_options) != provider(&stored_options) {
        // The server at the stored URL would receive the key of the other provider, and that provider the headers for this server.
        stored_options.base_url = None;
        stored_options.model_connection.headers.clear();
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
    host_files::add_stored_options(&serde_json::to_value(&options).unwrap_or_default());
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
mod tests;
