//! The authentication code of the options that a session stores.

use serde_json::Value;

use super::run_options::RunOptions;
use super::user_key::UserKey;
use crate::shell::SuggestedCommand;
use toolwit::{Error, ErrorKind, Phase};

/// The field of the stored options with their code.
const FIELD: &str = "code";

/// Adds an authentication code of this user to the options that a session stores. Another user who edits the options cannot
/// create a code for them.
pub(super) fn with_code(mut settings: Value, key: Option<&UserKey>) -> Value {
    if let (Some(key), Some(fields)) = (key, settings.as_object().cloned())
        && let Some(object) = settings.as_object_mut()
    {
        let code = key.code(&covered_text(&Value::Object(fields)));
        object.insert(FIELD.to_owned(), Value::String(code));
    }
    settings
}

/// Returns stored options without their code, and whether this user has stored them on this machine.
pub(super) fn without_code(settings: &Value, key: Option<&UserKey>) -> (Value, bool) {
    let mut settings = settings.clone();
    let code = settings.as_object_mut().and_then(|object| object.shift_remove(FIELD));
    let is_own = match (key, code.as_ref().and_then(Value::as_str)) {
        (Some(key), Some(code)) => key.verifies(&covered_text(&settings), code),
        _ => false,
    };
    (settings, is_own)
}

fn covered_text(settings: &Value) -> String {
    format!("session options: {settings}")
}

/// Refuses stored options of another user that start programs, grant access, approve calls or choose the server that receives the
/// key of the model, unless the command line replaces them.
///
/// # Errors
/// [`ErrorKind::Configuration`] with the options to pass.
pub(super) fn require_confirmed(cli_options: &RunOptions, stored: &RunOptions) -> Result<(), Error> {
    let mut unconfirmed = Vec::new();
    if !cli_options.mcp.is_set() {
        unconfirmed.extend(
            stored
                .mcp
                .files()
                .iter()
                .map(|file| ("mcp", file.display().to_string())),
        );
    }
    let grants = |options: &RunOptions| options.grants_and_secrets.grants.named_file();
    let policy = |options: &RunOptions| options.approvals.named_file();
    for (flag, cli_file, stored_file) in [
        ("grants", grants(cli_options), grants(stored)),
        ("policy", policy(cli_options), policy(stored)),
    ] {
        if let (None, Some(file)) = (cli_file, stored_file) {
            unconfirmed.push((flag, file.display().to_string()));
        }
    }
    if let (None, Some(url)) = (&cli_options.base_url, &stored.base_url) {
        unconfirmed.push(("base-url", url.clone()));
    }
    if let (None, Some(model)) = (&cli_options.model, &stored.model)
        && model.contains('@')
    {
        unconfirmed.push(("model", model.clone()));
    }
    let (cli, old) = (&cli_options.model_connection, &stored.model_connection);
    if let (None, Some(proxy)) = (&cli.proxy, &old.proxy) {
        unconfirmed.push(("model-proxy", proxy.clone()));
    }
    if cli.headers.is_empty() {
        unconfirmed.extend(old.headers.iter().map(|header| ("model-header", header.clone())));
    }
    if unconfirmed.is_empty() {
        return Ok(());
    }
    let flags = unconfirmed
        .iter()
        .fold(SuggestedCommand::new("resume"), |command, (flag, value)| {
            command.option(flag, value)
        })
        .to_string();
    let flags = flags.trim_start_matches("toolwit resume ");
    let message = "nothing proves that this user stored the options of the session on this machine: MCP servers, grants, a policy or the URL of a model could be those of another user";
    Err(
        Error::new(ErrorKind::Configuration, Phase::Registry, message).with_suggestion(format!(
            "if you trust them, pass them again: `{flags}`; otherwise pass other values, such as `--no-mcp`"
        )),
    )
}
