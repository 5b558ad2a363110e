//! Options of a conversation with a model.

use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::progress::RunProgress;
use crate::approval::{AnswerFile, TerminalApprover};
use crate::input::approvals::{ApprovalFlags, can_ask};
use crate::input::budget::BudgetFlags;
use crate::input::configuration::data_path;
use crate::input::exposure::ExposureFlag;
use crate::input::limits::{LimitFlags, RunLimitFlags};
use crate::input::plugins::{AuthorityFlags, PluginFlags};
use crate::input::project_trust::ProjectTrust;
use crate::input::vectors::with_word_vectors;
use toolwit::agent::{ConversationBuilder, Event, ProcessTools, Trace};
use toolwit::model::ChatModel;
use toolwit::models::{ModelSpec, connect};
use toolwit::registry::Project;
use toolwit::tool::{ApprovalMemory, ApprovalPolicy, Approvals, Origin};
use toolwit::{Error, ErrorKind, Phase};
use toolwit::{Exposure, ToolwitBuilder};

/// Options of a conversation with a model: the model, its tools and its limits.
#[derive(Debug, clap::Args)]
pub(crate) struct ConversationFlags {
    /// Model: PROVIDER:NAME, such as openai:gpt-5, or scripted:FILE
    #[arg(long, value_name = "MODEL", env = "TOOLWIT_MODEL", hide_env_values = true)]
    model: Option<String>,
    /// Base URL of the provider's API, usually ending in /v1 [default: that of the provider]
    #[arg(long, value_name = "URL")]
    base_url: Option<String>,
    /// System prompt
    #[arg(long, value_name = "TEXT")]
    system: Option<String>,
    /// File to write the trace to, as JSON lines
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Tools that the model sees at the start [default: all if there are few, else search]
    #[arg(long, value_name = "MODE")]
    exposure: Option<ExposureFlag>,
    /// Role whose tools the model has, instead of all; can be repeated
    #[arg(long = "role", value_name = "ROLE")]
    roles: Vec<String>,
    /// Path to the file with the tool groups of roles [default: toolwit.toml]
    #[arg(long, value_name = "FILE")]
    groups: Option<PathBuf>,
    #[command(flatten)]
    plugins: PluginFlags,
    #[command(flatten)]
    authority: AuthorityFlags,
    #[command(flatten)]
    approvals: ApprovalFlags,
    #[command(flatten)]
    budget: BudgetFlags,
    #[command(flatten)]
    run_limits: RunLimitFlags,
    #[command(flatten)]
    limits: LimitFlags,
}

/// A conversation that is configured, with the model and the display that it uses.
pub(crate) struct Prepared {
    pub(crate) builder: ConversationBuilder,
    pub(crate) model: Arc<dyn ChatModel>,
    pub(crate) progress: Arc<RunProgress>,
}

impl ConversationFlags {
    /// Connects the model, loads the plugins and configures the conversation. `show` creates the display for the name of the model.
    pub(crate) async fn prepare(
        self,
        show: impl FnOnce(&str) -> RunProgress,
        cancel: &CancellationToken,
    ) -> Result<Prepared, Error> {
        let budget = self.budget.budget()?;
        let model = self.budget.priced(self.connect().await?, cancel).await?;
        let policy = self.approvals.policy()?;
        let exposure = self.exposure.map(Exposure::from).unwrap_or_default();
        let host = with_word_vectors(self.plugins.granted(&self.limits, &self.authority)?);
        let groups = groups_file(self.groups, &self.roles)?;
        let host = groups.into_iter().fold(host, ToolwitBuilder::groups_file);
        let host = host.exposure(exposure).build().await?;
        let limits = self.run_limits.limits(&ProjectTrust::find()?.run_limits());
        let conversation = if self.roles.is_empty() {
            host.conversation()
        } else {
            host.conversation_for(self.roles)
        };
        let mut builder = conversation.model(model.clone()).limits(limits).budget(budget);
        if self.budget.budget_tools {
            builder = builder.tools(ProcessTools::tools()?);
        }
        if let Some(system) = self.system {
            builder = builder.system(system);
        }
        if let Some(path) = &self.trace {
            builder = builder.observer(trace(path)?);
        }
        let progress = Arc::new(show(model.name()));
        let observer = progress.clone();
        let builder = builder
            .approvals(approvals(policy, &progress))
            .output(progress.clone())
            .observer(move |event: &Event, _: &Origin| observer.print(event));
        Ok(Prepared {
            builder,
            model,
            progress,
        })
    }

    async fn connect(&self) -> Result<Arc<dyn ChatModel>, Error> {
        let Some(name) = &self.model else {
            let message = "no model was given";
            return Err(Error::new(ErrorKind::Configuration, Phase::Model, message)
                .with_suggestion("pass `--model openai:NAME`, or set TOOLWIT_MODEL"));
        };
        let mut spec: ModelSpec = name.parse()?;
        if let Some(url) = &self.base_url {
            spec = spec.with_base_url(url)?;
        }
        Ok(connect(&spec).await?)
    }
}

/// Returns the approvals of a run: a person at the terminal, if there is one, and the answers of earlier runs.
fn approvals(policy: ApprovalPolicy, progress: &Arc<RunProgress>) -> Approvals {
    let memory = match data_path("approvals.json") {
        Some(path) => ApprovalMemory::stored_in(Arc::new(AnswerFile::new(path))),
        None => ApprovalMemory::new(),
    };
    let approvals = Approvals::new(policy).with_memory(memory);
    if can_ask() {
        approvals.with_approver(TerminalApprover::new(progress.clone()))
    } else {
        approvals
    }
}

fn trace(path: &Path) -> Result<Trace<BufWriter<File>>, Error> {
    let file = File::create(path).map_err(|error| {
        let message = format!("the trace `{}` cannot be written: {error}", path.display());
        Error::new(ErrorKind::Io, Phase::Registry, message).with_source(error)
    })?;
    Ok(Trace::new(BufWriter::new(file)))
}

/// Returns the file with the tool groups: the given one or, if there are roles, that of the current directory.
fn groups_file(given: Option<PathBuf>, roles: &[String]) -> Result<Option<PathBuf>, Error> {
    if given.is_some() || roles.is_empty() {
        return Ok(given);
    }
    let default = PathBuf::from(Project::FILE_NAME);
    if default.is_file() {
        return Ok(Some(default));
    }
    let file = Project::FILE_NAME;
    let message = format!("`--role` needs tool groups, and `{file}` does not exist in the current directory");
    let hint = format!("add a table `[groups.ROLE]` to `{file}`, or pass another file with `--groups FILE`");
    Err(Error::new(ErrorKind::Configuration, Phase::Registry, message).with_suggestion(hint))
}
