//! Traces of runs: what a replay needs to know of the options, and a conversation that replays one.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};

use clap::ValueEnum;

use super::RunFlags;
use crate::input::exposure::ExposureFlag;
use crate::input::limits::{LimitFlags, RunLimitFlags};
use crate::input::mcp::McpFlags;
use crate::input::plugins::{AuthorityFlags, PluginFlags};
use toolwit::agent::{Event, Journal, Observer, Recording, StartedReplay, Trace};
use toolwit::model::ChatOptions;
use toolwit::tool::Origin;
use toolwit::{Error, ErrorKind, Phase};

/// Creates a trace with the options of the run, and with the earlier entries of its session.
pub(super) fn start_trace(
    path: &Path,
    model: &str,
    settings: BTreeMap<String, Vec<String>>,
    journal: Option<&Journal>,
) -> Result<Trace<BufWriter<File>>, Error> {
    let file = File::create(path).map_err(|error| {
        let message = format!("the trace `{}` cannot be written: {error}", path.display());
        Error::new(ErrorKind::Io, Phase::Registry, message).with_source(error)
    })?;
    let trace = Trace::new(BufWriter::new(file));
    let started = Event::TraceStarted {
        model: model.to_owned(),
        settings,
    };
    trace.observe(&started, &Origin::default());
    trace.write_earlier(journal.map(Journal::earlier_entries).unwrap_or_default());
    Ok(trace)
}

/// The options of a replay. Options that are not set are those of the trace.
#[derive(Debug)]
pub(crate) struct Replaying {
    pub(crate) is_forked: bool,
    pub(crate) plugins: PluginFlags,
    pub(crate) mcp: McpFlags,
    pub(crate) authority: AuthorityFlags,
    pub(crate) approvals: crate::input::approvals::ApprovalFlags,
    pub(crate) run_limits: RunLimitFlags,
    pub(crate) limits: LimitFlags,
}

impl RunFlags {
    /// Returns the options that a replay needs, each with its values.
    pub(super) fn settings(&self) -> BTreeMap<String, Vec<String>> {
        let paths = |paths: Vec<PathBuf>| paths.iter().map(|path| path.to_string_lossy().into_owned()).collect();
        let grants = self.authority.grants.existing().ok().flatten();
        let exposure = self.exposure.and_then(|flag| flag.to_possible_value());
        let budget_tools = self.budget.budget_tools.then(|| "true".to_owned());
        let options = self.model_options.options().ok();
        let options = options.filter(|options| *options != ChatOptions::default());
        let options = options.and_then(|options| serde_json::to_string(&options).ok());
        let settings: [(&str, Vec<String>); 9] = [
            ("options", options.into_iter().collect()),
            ("plugins", paths(self.plugins.directories().unwrap_or_default())),
            ("grants", paths(grants.into_iter().collect())),
            ("system", self.system.iter().cloned().collect()),
            ("role", self.roles.clone()),
            ("groups", paths(self.groups.iter().cloned().collect())),
            (
                "exposure",
                exposure.map(|value| value.get_name().to_owned()).into_iter().collect(),
            ),
            ("budget-tools", budget_tools.into_iter().collect()),
            ("context-tokens", self.run_limits.context_tokens().into_iter().collect()),
        ];
        let set = settings.into_iter().filter(|(_, values)| !values.is_empty());
        set.map(|(name, values)| (name.to_owned(), values)).collect()
    }

    /// Returns the options of the model in the trace that is replayed.
    pub(super) fn recorded_options(&self) -> Option<ChatOptions> {
        let replay = self.replay.as_ref()?;
        serde_json::from_str(replay.recording().setting("options").first()?).ok()
    }

    /// Creates the options of a replay.
    pub(crate) fn replaying(replay: &StartedReplay, options: Replaying) -> Self {
        let recording = replay.recording();
        let first = |name: &str| recording.setting(name).first();
        let mut authority = options.authority;
        authority.grants = authority.grants.with_recorded(first("grants"));
        let mut flags = Self {
            system: first("system").cloned(),
            exposure: exposure(recording),
            roles: recording.setting("role").to_vec(),
            groups: first("groups").map(PathBuf::from),
            plugins: options.plugins.with_recorded(recording.setting("plugins")),
            mcp: options.mcp,
            authority,
            approvals: options.approvals,
            run_limits: options.run_limits.with_recorded(first("context-tokens")),
            limits: options.limits,
            replay: Some(replay.clone()),
            is_forked: options.is_forked,
            ..Self::default()
        };
        flags.budget.budget_tools = first("budget-tools").is_some();
        flags
    }

    /// Connects to the model of a replay.
    pub(crate) fn with_model(mut self, model: Option<String>, base_url: Option<String>) -> Self {
        self.model = model;
        self.base_url = base_url;
        self
    }
}

fn exposure(recording: &Recording) -> Option<ExposureFlag> {
    let name = recording.setting("exposure").first()?;
    ExposureFlag::from_str(name, false).ok()
}
