//! Traces of runs: the settings that a trace stores, and the options of a replay.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};

use clap::ValueEnum;

use super::RunFlags;
use crate::input::budget::BudgetFlags;
use crate::input::grants::GrantFlags;
use crate::input::interceptors::InterceptorFlags;
use crate::input::limits::{LimitFlags, RunLimitFlags};
use crate::input::mcp::McpFlags;
use crate::input::model_options::ToolCallFlag;
use crate::input::paths::absolute;
use crate::input::plugins::{GrantAndSecretFlags, PluginFlags};
use crate::input::project_trust::ProjectTrust;
use crate::input::run_options::RunOptions;
use crate::input::sessions::SessionFlags;
use crate::input::user_key::UserKey;
use toolwit::agent::{Event, Journal, LoopLimits, Observer, Recording, StartedReplay, Trace};
use toolwit::model::{ChatModel, ChatOptions};
use toolwit::registry::InterceptorSettings;
use toolwit::tool::Origin;
use toolwit::tool::file::private_options;
use toolwit::{Error, ErrorKind, Phase, Toolwit};

/// Creates a trace with the settings of the run, and with the earlier entries of its session.
pub(super) fn start_trace(
    path: &Path,
    model: &str,
    settings: BTreeMap<String, Vec<String>>,
    journal: Option<&Journal>,
) -> Result<Trace<BufWriter<File>>, Error> {
    let file = create_private(path).map_err(|error| {
        let message = format!("the trace `{}` cannot be written: {error}", path.display());
        Error::new(ErrorKind::Io, Phase::Registry, message).with_source(error)
    })?;
    let trace = Trace::new(BufWriter::new(file));
    let event = Event::TraceStarted {
        model: model.to_owned(),
        settings,
    };
    trace.observe(&event, &Origin::default());
    trace.write_earlier(journal.map(Journal::earlier_entries).unwrap_or_default());
    Ok(trace)
}

/// Creates or empties a file that only its owner may read, because a trace contains messages, arguments and results.
fn create_private(path: &Path) -> io::Result<File> {
    let file = private_options().create(true).write(true).truncate(true).open(path)?;
    // The file may exist with other permissions. A device or a pipe keeps them.
    #[cfg(unix)]
    if file.metadata()?.is_file() {
        use std::os::unix::fs::PermissionsExt;
        file.set_permissions(std::fs::Permissions::from_mode(0o600))?;
    }
    Ok(file)
}

/// The options of a replay. Options that are not set are those of the trace.
#[derive(Debug)]
pub(crate) struct ReplayOptions {
    pub(crate) is_forked: bool,
    pub(crate) plugins: PluginFlags,
    pub(crate) mcp: McpFlags,
    pub(crate) grants_and_secrets: GrantAndSecretFlags,
    pub(crate) approvals: crate::input::approvals::ApprovalFlags,
    pub(crate) run_limits: RunLimitFlags,
    pub(crate) limits: LimitFlags,
    pub(crate) sessions: SessionFlags,
}

impl RunFlags {
    /// Returns the settings that a trace stores for a replay: the name of each setting, with its values. `limits` are
    /// the limits of the run.
    pub(super) fn trace_settings(
        &self,
        host: &Toolwit,
        limits: &LoopLimits,
    ) -> Result<BTreeMap<String, Vec<String>>, Error> {
        let paths = |paths: Vec<PathBuf>| paths.iter().map(|path| path.to_string_lossy().into_owned()).collect();
        let single = |value: Option<String>| value.into_iter().collect();
        let grants = self.options.grants_and_secrets.grants.applied_path().ok().flatten();
        let grants = grants.as_deref().map(absolute).transpose()?;
        let plugins = self.options.plugins.directories().unwrap_or_default();
        let plugins = plugins
            .iter()
            .map(|path| absolute(path))
            .collect::<Result<Vec<_>, _>>()?;
        let authentication_code = grants
            .as_deref()
            .and_then(|grants| authentication_code(grants, &plugins));
        let options = self.options.model_options.options().ok();
        let options = options.filter(|options| *options != ChatOptions::default());
        let interceptors = self.options.interceptors.all()?;
        let digests = interceptors
            .iter()
            .map(|setting| interceptor_digest(host, &setting.plugin));
        let (cost, model_table) = self.options.budget.trace_settings();
        let settings: [(&str, Vec<String>); 16] = [
            (
                "options",
                single(options.and_then(|options| serde_json::to_string(&options).ok())),
            ),
            ("plugins", paths(plugins)),
            ("grants", paths(grants.into_iter().collect())),
            ("access-code", single(authentication_code)),
            ("mcp", paths(self.options.mcp.files().to_vec())),
            ("interceptor", interceptors.iter().map(ToString::to_string).collect()),
            ("interceptor-digest", digests.collect()),
            ("system", single(self.options.system.clone())),
            ("role", self.options.roles.clone()),
            ("groups", paths(self.options.groups.iter().cloned().collect())),
            ("exposure", single(value_name(self.options.exposure))),
            ("delivery", single(value_name(self.options.delivery))),
            ("tool-calls", single(self.options.model_options.tool_calls_name())),
            (
                "budget-tools",
                single(self.options.budget.budget_tools.then(|| "true".to_owned())),
            ),
            ("cost", single(cost)),
            ("model-table", paths(model_table.into_iter().cloned().collect())),
        ];
        let non_empty = settings.into_iter().filter(|(_, values)| !values.is_empty());
        let mut settings: BTreeMap<_, _> = non_empty.map(|(name, values)| (name.to_owned(), values)).collect();
        settings.insert("limits".to_owned(), single(serde_json::to_string(limits).ok()));
        Ok(settings)
    }

    /// Returns the options of the model in the replayed trace. `None` without a replay, or if the trace has no options.
    pub(super) fn recorded_model_options(&self) -> Option<ChatOptions> {
        let replay = self.replay.as_ref()?;
        serde_json::from_str(replay.recording().setting("options").first()?).ok()
    }

    /// Returns the limits of the run. Options take precedence over the limits of the replayed trace or, without a
    /// replay, of the project.
    pub(crate) fn effective_limits(&self, model: &dyn ChatModel) -> Result<LoopLimits, Error> {
        let recorded_limits = self
            .replay
            .as_ref()
            .and_then(|replay| replay.recording().setting("limits").first());
        let limits = match recorded_limits {
            Some(text) => self
                .options
                .run_limits
                .override_limits(serde_json::from_str(text).map_err(|error| {
                    let message = format!("the limits in the trace cannot be read: {error}");
                    Error::new(ErrorKind::Configuration, Phase::Registry, message)
                })?),
            None => self.options.run_limits.limits(&ProjectTrust::find()?.run_limits()),
        };
        Ok(limits.for_model(model))
    }

    /// Checks that the interceptors are the components that the replayed trace recorded.
    pub(super) fn check_interceptor_digests(&self, host: &Toolwit) -> Result<(), Error> {
        let Some(replay) = &self.replay else { return Ok(()) };
        let recorded_digests = replay.recording().setting("interceptor-digest");
        check_digests(&self.options.interceptors.all()?, recorded_digests, |plugin| {
            interceptor_digest(host, plugin)
        })
    }

    /// Creates the options of a replay.
    ///
    /// # Errors
    /// - If the trace has MCP servers, and neither `--mcp` nor `--no-mcp` is set.
    /// - If the trace would use a grants file, but this user neither recorded the trace nor selected the file.
    /// - If a setting of the trace is not valid.
    pub(crate) fn for_replay(replay: &StartedReplay, options: ReplayOptions) -> Result<Self, Error> {
        let recording = replay.recording();
        let first_value = |name: &str| recording.setting(name).first();
        if let (Some(file), false) = (first_value("mcp"), options.mcp.is_set()) {
            // A trace must not start programs.
            let message = format!("the run had the MCP servers of `{}`", file.escape_debug());
            return Err(Error::new(ErrorKind::Configuration, Phase::Registry, message)
                .with_suggestion("pass the file with `--mcp FILE`, or `--no-mcp` to replay without them"));
        }
        let (sessions, is_forked) = (options.sessions, options.is_forked);
        let mut grants_and_secrets = options.grants_and_secrets;
        if let Some(file) = first_value("grants").filter(|_| grants_and_secrets.grants.named_file().is_none()) {
            grants_and_secrets.grants = recorded_grants(recording, file, grants_and_secrets.grants)?;
        }
        let mut options = RunOptions {
            system: first_value("system").cloned(),
            exposure: recorded_value(recording, "exposure"),
            delivery: recorded_value(recording, "delivery"),
            roles: recording.setting("role").to_vec(),
            groups: first_value("groups").map(PathBuf::from),
            plugins: options.plugins.with_trace_defaults(recording.setting("plugins")),
            mcp: options.mcp,
            grants_and_secrets,
            interceptors: InterceptorFlags::from_trace(recording.setting("interceptor"))?,
            approvals: options.approvals,
            budget: BudgetFlags::default().with_trace_defaults(first_value("cost"), first_value("model-table")),
            run_limits: options.run_limits,
            limits: options.limits,
            ..RunOptions::default()
        };
        options.budget.budget_tools = first_value("budget-tools").is_some();
        Ok(Self {
            options,
            sessions,
            replay: Some(replay.clone()),
            is_forked,
            ..Self::default()
        })
    }

    /// Selects the model after the fork of a replay.
    pub(crate) fn with_model(
        mut self,
        model: Option<String>,
        base_url: Option<String>,
        tool_calls: Option<ToolCallFlag>,
    ) -> Self {
        self.options.model = model;
        self.options.base_url = base_url;
        self.options.model_options = self.options.model_options.with_tool_calls(tool_calls);
        self
    }
}

/// Returns the authentication code of a trace: a message authentication code over the paths of the grants file and of
/// the plugins. It proves that this user recorded the trace. `None` if the user has no key.
fn authentication_code(grants: &Path, plugins: &[PathBuf]) -> Option<String> {
    let plugins: Vec<_> = plugins.iter().map(|path| path.to_string_lossy()).collect();
    Some(UserKey::load()?.code(&authenticated_text(&grants.to_string_lossy(), &plugins)))
}

/// Returns the text over which the authentication code of a trace is computed.
fn authenticated_text(grants: &str, plugins: &[impl AsRef<str>]) -> String {
    let mut text = format!("access of a trace: {grants:?}");
    for path in plugins {
        let _ = write!(text, " {:?}", path.as_ref());
    }
    text
}

/// Returns flags with the grants file of a trace, if this user recorded the trace, or if the flags already select this
/// file.
///
/// # Errors
/// In other cases, because the trace of another user must not give plugins access.
fn recorded_grants(recording: &Recording, file: &str, grants: GrantFlags) -> Result<GrantFlags, Error> {
    if grants.applied_path()?.as_deref() == Some(Path::new(file)) {
        return Ok(grants);
    }
    let text = authenticated_text(file, recording.setting("plugins"));
    if let (Some(key), Some(code)) = (UserKey::load(), recording.setting("access-code").first())
        && key.verifies(&text, code)
    {
        return Ok(grants.with_recorded_file(file));
    }
    let message = format!(
        "the run had the grants of `{}`, and this user did not record the trace on this machine",
        file.escape_debug()
    );
    Err(Error::new(ErrorKind::Configuration, Phase::Registry, message)
        .with_suggestion("pass the grants that apply with `--grants FILE`"))
}

/// Checks that interceptors have the recorded digests. The interceptors and the digests are in the same order.
fn check_digests(
    interceptors: &[InterceptorSettings],
    recorded_digests: &[String],
    digest_of: impl Fn(&str) -> String,
) -> Result<(), Error> {
    for (index, setting) in interceptors.iter().enumerate() {
        let (plugin, digest) = (&setting.plugin, digest_of(&setting.plugin));
        let recorded_digest = recorded_digests.get(index).map_or("", String::as_str);
        if digest != *recorded_digest {
            let message = format!(
                "the interceptor `{plugin}` is not the component of the trace: its digest is `{digest}`, not `{}`",
                recorded_digest.escape_debug()
            );
            return Err(Error::new(ErrorKind::Configuration, Phase::Registry, message)
                .with_suggestion("add the recorded version to a directory, and pass it with `--plugins DIR`"));
        }
    }
    Ok(())
}

/// Returns the value of an option in a trace, or `None` if the trace has no value, or has a value that this version of
/// Toolwit does not know.
pub(crate) fn recorded_value<V: ValueEnum>(recording: &Recording, name: &str) -> Option<V> {
    V::from_str(recording.setting(name).first()?, false).ok()
}

/// Returns the value of an option as it is written on the command line, if the option is set.
fn value_name<V: ValueEnum>(flag: Option<V>) -> Option<String> {
    Some(flag?.to_possible_value()?.get_name().to_owned())
}

/// Returns the digest of the component of an interceptor, or an empty text if the host does not have the component.
fn interceptor_digest(host: &Toolwit, plugin: &str) -> String {
    let registry = host.registry();
    registry
        .plugin_of(plugin)
        .map(|plugin| plugin.digest().to_owned())
        .unwrap_or_default()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn the_error_names_the_interceptor_whose_digest_differs() {
        let settings = ["quota=pay", "redact"].map(|text| text.parse().unwrap());
        let recorded = ["11".to_owned(), "22".to_owned()];
        let recorded_digest_of = |plugin: &str| if plugin == "quota" { "11" } else { "22" }.to_owned();
        check_digests(&settings, &recorded, recorded_digest_of).unwrap();
        let error = check_digests(&settings, &recorded, |_| "11".to_owned()).unwrap_err();
        assert!(
            error.message.contains("`redact`") && error.message.contains("not `22`"),
            "{error}"
        );
    }
}
