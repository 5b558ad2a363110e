//! `toolwit replay`: runs a recorded conversation again.

mod report;
mod what_if;

use std::path::PathBuf;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use self::report::ReplayOutcome;
use self::what_if::report_refused_accesses;
use crate::commands::run::{ReplayOptions, RunFlags, RunProgress, print_end, recorded_value};
use crate::commands::trace::read_recording;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::input::approvals::ApprovalFlags;
use crate::input::limits::{LimitFlags, RunLimitFlags};
use crate::input::mcp::McpFlags;
use crate::input::model_options::ToolCallFlag;
use crate::input::plugins::{GrantAndSecretFlags, PluginFlags};
use crate::input::sessions::SessionFlags;
use crate::output::printer::Printer;
use toolwit::agent::{Journal, Recording, Replay, SessionId, StartedReplay};
use toolwit::{Error, ErrorKind, Phase};

const EXAMPLES: &str = "\
Examples:
  toolwit run \"Count the words\" --model openai:gpt-5 --trace run.jsonl
  toolwit replay run.jsonl
  toolwit replay run.jsonl --fork 7 --model anthropic:claude-sonnet-4-5
  toolwit replay run.jsonl --fork 7 --answer \"There are none.\" --session other
  toolwit replay traces/ --what-if stricter.toml";

/// Run a recorded conversation again and compare
///
/// The responses of the model come from the trace. A call runs again, with frozen clocks and randomness, if it changes
/// nothing and its result depends only on its plugin and its arguments. The results of all other calls come from the
/// trace. Differences are shown as a diff, and the exit code is 1. Plugins, grants and roles are those of the trace
/// unless an option names others.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ReplayTrace {
    /// Path to the trace; with `--what-if` also a folder of traces
    #[arg(value_name = "FILE")]
    recorded_trace: PathBuf,
    /// Number of the event from which on calls run as in a new conversation
    #[arg(long, value_name = "EVENT")]
    fork: Option<u64>,
    /// Text of the first response of the model after the fork, instead of the recorded response
    #[arg(long, value_name = "TEXT", requires = "fork")]
    answer: Option<String>,
    /// Model after the fork: PROVIDER:NAME or scripted:FILE [default: the responses of the trace]
    #[arg(long, value_name = "MODEL", requires = "fork")]
    model: Option<String>,
    /// Base URL of the provider's API
    #[arg(long, value_name = "URL", requires = "model")]
    base_url: Option<String>,
    /// Format in which the model after the fork calls tools [default: that of the trace]
    #[arg(long, value_name = "FORMAT", requires = "model")]
    tool_calls: Option<ToolCallFlag>,
    /// Name of the session that stores the fork
    #[arg(long, value_name = "NAME", requires = "fork")]
    session: Option<SessionId>,
    /// File to write the trace of the replay to; two replays of a trace write the same bytes
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Report which recorded accesses this grants file would refuse, without executing any call
    #[arg(long, value_name = "FILE", conflicts_with_all = ["fork", "trace"])]
    what_if: Option<PathBuf>,
    #[command(flatten)]
    sessions: SessionFlags,
    #[command(flatten)]
    plugins: PluginFlags,
    #[command(flatten)]
    mcp: McpFlags,
    #[command(flatten)]
    grants_and_secrets: GrantAndSecretFlags,
    #[command(flatten)]
    approvals: ApprovalFlags,
    #[command(flatten)]
    run_limits: RunLimitFlags,
    #[command(flatten)]
    limits: LimitFlags,
}

impl ReplayTrace {
    pub(crate) async fn run(self, printer: Printer, cancel: &CancellationToken) -> Result<Exit, Failure> {
        if let Some(grants) = &self.what_if {
            return report_refused_accesses(&self.recorded_trace, grants, printer, cancel).await;
        }
        let recording = read_recording(&self.recorded_trace, cancel).await?;
        self.check_recording(&recording)?;
        let (trace, is_forked) = (self.trace.clone(), self.fork.is_some());
        let journal = match &self.session {
            Some(session) => Some(
                Journal::create(&self.sessions.open_trusted().await?, session)
                    .await
                    .map_err(Error::from)?,
            ),
            None => None,
        };
        let replay = self.start(recording, cancel).await?;
        let flags = self.into_flags(&replay)?;
        let model = flags.describe_model(replay.model(), cancel).await?;
        let progress = Arc::new(RunProgress::new(printer, model.name()));
        let mut conversation = flags.build_conversation(&model, journal, progress, cancel).await?;
        let outcome = conversation.run_replay(&replay, cancel.clone()).await;
        drop(conversation);
        if cancel.is_cancelled() {
            return Ok(Exit::Interrupted);
        }
        if let Some(path) = &trace {
            write_trace(path, &replay)?;
        }
        match (is_forked, outcome) {
            (true, Some(outcome)) => print_end(outcome, &*model, printer),
            _ => ReplayOutcome::of(&replay).print(printer),
        }
    }

    /// Checks that the trace begins with a turn, and that it has the event at which the replay forks.
    fn check_recording(&self, recording: &Recording) -> Result<(), Error> {
        if recording.prompts().is_empty() {
            let message = format!(
                "the trace `{}` does not begin with a turn",
                self.recorded_trace.display()
            );
            return Err(Error::new(ErrorKind::Configuration, Phase::Registry, message)
                .with_suggestion("record a trace with `toolwit run PROMPT --trace FILE`"));
        }
        let last = recording.entries().last().map_or(0, |entry| entry.sequence);
        if let Some(fork) = self.fork.filter(|fork| *fork > last) {
            let message = format!("the trace has no event {fork}; its last one is {last}");
            return Err(Error::new(ErrorKind::Configuration, Phase::Registry, message)
                .with_suggestion("`toolwit trace FILE` shows the numbers of the events"));
        }
        Ok(())
    }

    /// Creates the replay, and connects to the model after the fork.
    async fn start(&self, recording: Recording, cancel: &CancellationToken) -> Result<StartedReplay, Failure> {
        let recorded_tool_calls = recorded_value(&recording, "tool-calls");
        let mut replay = Replay::new(recording);
        if let Some(fork) = self.fork {
            replay = replay.with_fork(fork);
        }
        if let Some(answer) = &self.answer {
            replay = replay.with_answer(answer);
        }
        if self.model.is_some() {
            let tool_calls = self.tool_calls.or(recorded_tool_calls);
            let flags = RunFlags::default().with_model(self.model.clone(), self.base_url.clone(), tool_calls);
            replay = replay.with_model(flags.connect(cancel).await?);
        }
        Ok(replay.start())
    }

    fn into_flags(self, replay: &StartedReplay) -> Result<RunFlags, Error> {
        let options = ReplayOptions {
            is_forked: self.fork.is_some(),
            plugins: self.plugins,
            mcp: self.mcp,
            grants_and_secrets: self.grants_and_secrets,
            approvals: self.approvals,
            run_limits: self.run_limits,
            limits: self.limits,
            sessions: self.sessions,
        };
        RunFlags::for_replay(replay, options)
    }
}

fn write_trace(path: &PathBuf, replay: &StartedReplay) -> Result<(), Error> {
    std::fs::write(path, replay.trace()).map_err(|error| {
        let message = format!("the trace `{}` cannot be written: {error}", path.display());
        Error::new(ErrorKind::Io, Phase::Registry, message).with_source(error)
    })
}
