//! `toolwit run`: runs a prompt with a model and the tools of plugins.

mod approvals;
mod ending;
mod held_output;
mod progress;
mod recording;

use std::path::PathBuf;
use std::sync::Arc;

use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::approval::{DeferredApprover, PreparedAnswers};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::input::call_arguments::read_text;
use crate::input::exposure::DeliveryFlag;
use crate::input::model_options::read_answer_schema;
use crate::input::pictures::read_pictures;
use crate::input::run_options::RunOptions;
use crate::input::sessions::SessionFlags;
use crate::input::stored_options;
use crate::input::vectors::with_word_vectors;
use crate::output::printer::Printer;
use crate::shell::SuggestedCommand;
use toolwit::agent::{
    Event, Journal, JournalError, Observer, ProcessTools, RunOutcome, SessionId, StartedReplay, TypedOutcome, UserTurn,
};
use toolwit::journal::SqliteJournalStore;
use toolwit::limits::{PROMPT_BYTES_MAX, Span};
use toolwit::mcp::McpServers;
use toolwit::model::{ChatModel, ToolDelivery};
use toolwit::models::connect;
use toolwit::registry::Project;
use toolwit::tool::{Origin, OutputSink, ToolContext};
use toolwit::{Conversation, ConversationBuilder, Error, ErrorKind, Exposure, Phase, Toolwit, ToolwitBuilder};

use approvals::{approvals, forked_approvals, with_respondent};
pub(crate) use approvals::{approver, deferred_approver, report_waiting_calls, suspend_for_later};
pub(crate) use ending::{next_run_command, print_end, print_end_in_session, print_error_with_outcome, print_failure};
pub(crate) use progress::RunProgress;
use recording::start_trace;
pub(crate) use recording::{ReplayOptions, recorded_value};

const EXAMPLES: &str = "\
Examples:
  toolwit run \"What is John Smith's average spend?\" --model openai:gpt-5 --plugins target/plugins
  toolwit run \"How many words has this?\" --model ollama:qwen3 --trace trace.jsonl
  toolwit run \"What is new?\" --model anthropic:claude-sonnet-4-5
  toolwit run \"Hello\" --model openai:my-model --base-url http://127.0.0.1:8080/v1
  toolwit run \"What is 2 + 3?\" --model llamacpp:gemma-3-270m --tool-calls json
  toolwit run \"Which issues are open?\" --model openai:gpt-5 --mcp mcp.toml
  toolwit run \"Hello\" --model scripted:scenario.toml -q
  toolwit run \"How warm is Rome?\" --model gemini:gemini-3-pro --answer-schema weather.json
  toolwit run \"What is on this picture?\" --model openai:gpt-5 --attach photo.jpg
  toolwit run \"And in euros?\" --model openai:gpt-5 --session spend

Providers: openai, openai-responses, anthropic, gemini, azure, openrouter, groq, deepseek, mistral, vllm, llamacpp, ollama.
The key comes from the provider's variable, such as OPENAI_API_KEY or ANTHROPIC_API_KEY.";

/// Run a prompt with a model and the tools of plugins
///
/// The answer goes to standard output. Tool calls, results and injected tools go to standard error.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Run {
    /// Prompt, or - for standard input
    prompt: String,
    /// Name of the session that stores the conversation; an existing session is continued
    #[arg(long, value_name = "NAME")]
    session: Option<SessionId>,
    /// File with a JSON Schema that the answer must fit; the answer is printed as JSON
    #[arg(long, value_name = "FILE")]
    answer_schema: Option<String>,
    /// Picture for the model, a PNG, JPEG, GIF or WebP file; can be repeated
    #[arg(long = "attach", value_name = "FILE")]
    attachments: Vec<PathBuf>,
    /// Time to wait for `toolwit approve` if a call needs an approval and there is no terminal; then the command ends,
    /// and `toolwit resume` continues the run
    #[arg(long, value_name = "TIME", requires = "session", num_args = 0..=1, require_equals = true, default_missing_value = "0s")]
    ask_later: Option<Span>,
    #[command(flatten)]
    flags: RunFlags,
}

/// The options that `run`, `chat`, `resume` and `replay` share.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct RunFlags {
    /// File to write the trace to, as JSON lines
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) options: RunOptions,
    #[command(flatten)]
    pub(crate) sessions: SessionFlags,
    /// The replay that runs instead of a new conversation.
    #[clap(skip)]
    replay: Option<StartedReplay>,
    /// Whether the replay has a fork: an event from which on calls run as in a new conversation.
    #[clap(skip)]
    is_forked: bool,
    /// The approver of calls. `None` for a person at the terminal.
    #[clap(skip)]
    answers: Option<PreparedAnswers>,
    /// Observes the run, to find out when all unfinished calls wait for an answer of another process.
    #[clap(skip)]
    deferred_approver: Option<Arc<DeferredApprover>>,
}

impl Run {
    pub(crate) async fn run(self, printer: Printer, cancel: &CancellationToken) -> Result<Exit, Failure> {
        let stored_session = match self.session {
            Some(session) => Some((self.flags.sessions.open_trusted().await?, session)),
            None => None,
        };
        let existing_journal = match &stored_session {
            Some((store, session)) => open_session(store, session).await?,
            None => None,
        };
        let flags = self
            .flags
            .with_ask_later(self.ask_later)
            .with_session_options(existing_journal.as_ref(), printer)?;
        // The model is connected before a session is created, so that a wrong model leaves no empty session.
        let model = flags.connect(cancel).await?;
        let prompt = match self.prompt.as_str() {
            "-" => read_text("-".to_owned(), PROMPT_BYTES_MAX, cancel).await?,
            _ => self.prompt,
        };
        let schema = match self.answer_schema {
            Some(file) => Some(read_answer_schema(file, cancel).await?),
            None => None,
        };
        let pictures = read_pictures(self.attachments, &*model, printer, cancel).await?;
        let journal = match &stored_session {
            Some((store, session)) => Some(create_if_missing(existing_journal, store, session).await?),
            None => None,
        };
        let session = stored_session.map(|(_, session)| session);
        let progress = Arc::new(RunProgress::new(printer, model.name()));
        let deferred_approver = session
            .as_ref()
            .and_then(|session| deferred_approver(flags.options.ask_later, session, &flags.sessions, &progress));
        let answers = PreparedAnswers::new(approver(&progress, deferred_approver.as_ref()));
        let sessions = flags.sessions.clone();
        let flags = flags.with_approvers(answers, deferred_approver.clone());
        let mut conversation = flags.build_conversation(&model, journal, progress, cancel).await?;
        if let (Some(session), Some(_)) = (&session, conversation.interrupted_run()) {
            return Err(interrupted_run_error(session, &sessions).into());
        }
        let suspension = conversation.suspension();
        let turn = conversation.turn(prompt).cancel(cancel.clone());
        let turn = pictures.into_iter().fold(turn, UserTurn::picture);
        let run = async {
            match &schema {
                Some(schema) => turn.run_json(schema).await.map(json_outcome),
                None => turn.run().await,
            }
        };
        let outcome = tokio::select! {
            biased;
            outcome = run => Ok(outcome),
            questions = suspend_for_later(deferred_approver.as_deref(), suspension) => Err(questions?),
        };
        // Removes the spinner before the answer is printed.
        drop(conversation);
        match (outcome, &session) {
            (Ok(outcome), Some(session)) => print_end_in_session(outcome, session, &sessions, &*model, printer),
            (Ok(outcome), None) => print_end(outcome, &*model, printer),
            (Err(questions), Some(session)) => {
                Err(report_waiting_calls(session, &questions, &sessions, printer).into())
            }
            // Only the run of a session can leave questions to a later process.
            (Err(_), None) => Ok(Exit::Stopped),
        }
    }
}

/// Returns an outcome whose answer is the parsed value, without the text around it.
fn json_outcome(mut typed: TypedOutcome<Value>) -> RunOutcome {
    typed.outcome.answer = Some(format!("{:#}", typed.value));
    typed.outcome
}

/// Opens the session, if it exists.
pub(crate) async fn open_session(store: &SqliteJournalStore, session: &SessionId) -> Result<Option<Journal>, Error> {
    match Journal::open(store, session).await {
        Err(JournalError::Missing(_)) => Ok(None),
        result => Ok(Some(result?)),
    }
}

/// Returns the journal of a session that was opened, or creates the session.
pub(crate) async fn create_if_missing(
    existing_journal: Option<Journal>,
    store: &SqliteJournalStore,
    session: &SessionId,
) -> Result<Journal, Error> {
    match existing_journal {
        Some(journal) => Ok(journal),
        None => Ok(Journal::create(store, session).await?),
    }
}

fn interrupted_run_error(session: &SessionId, sessions: &SessionFlags) -> Error {
    let message = format!("the last run of the session `{session}` did not end");
    let command = sessions.add_to_command(SuggestedCommand::new("resume").operand(session.as_str()));
    Error::new(ErrorKind::Configuration, Phase::Registry, message)
        .with_suggestion(format!("continue it with `{command}`"))
}

impl RunFlags {
    /// Sets the time for which a call waits for its approval. `None` means that calls do not wait.
    pub(crate) fn with_ask_later(mut self, answer_timeout: Option<Span>) -> Self {
        self.options.ask_later = answer_timeout;
        self
    }

    /// Sets each option that is not set to its value in the session's previous run.
    pub(crate) fn with_session_options(mut self, session: Option<&Journal>, printer: Printer) -> Result<Self, Error> {
        if let Some(journal) = session {
            self.options = stored_options::restore(self.options, journal, printer)?;
        }
        Ok(self)
    }

    /// Connects to the model, and adds its properties in the model table.
    pub(crate) async fn connect(&self, cancel: &CancellationToken) -> Result<Arc<dyn ChatModel>, Failure> {
        let spec = self.options.model_spec()?;
        self.describe_model(connect(&spec).await.map_err(Error::from)?, cancel)
            .await
    }

    /// Sets the approver of calls, and the approver to which it leaves questions for another process, if there is one.
    pub(crate) fn with_approvers(
        mut self,
        answers: PreparedAnswers,
        deferred_approver: Option<Arc<DeferredApprover>>,
    ) -> Self {
        self.answers = Some(answers);
        self.deferred_approver = deferred_approver;
        self
    }

    /// Returns whether the options allow every call without a question.
    pub(crate) fn allows_every_call(&self) -> bool {
        self.options.approvals.allows_every_call()
    }

    /// Adds the properties in the model table to a model that does not have them.
    pub(crate) async fn describe_model(
        &self,
        model: Arc<dyn ChatModel>,
        cancel: &CancellationToken,
    ) -> Result<Arc<dyn ChatModel>, Failure> {
        let pictures = self.options.model_connection.accepts_pictures();
        Ok(self.options.budget.describe_model(model, pictures, cancel).await?)
    }

    /// Stores the options in the journal, connects to the required MCP servers, and builds the conversation, which
    /// prints its events through `progress`.
    pub(crate) async fn build_conversation(
        self,
        model: &Arc<dyn ChatModel>,
        journal: Option<Journal>,
        progress: Arc<RunProgress>,
        cancel: &CancellationToken,
    ) -> Result<Conversation, Failure> {
        if let Some(journal) = &journal {
            stored_options::store(journal, &self.options)?;
        }
        let budget = self.options.budget.budget()?;
        let options = match self.recorded_model_options() {
            Some(options) => options,
            None => self.options.model_options.options()?,
        };
        let policy = self.options.approvals.policy()?;
        let servers = self.options.mcp.servers(&self.options.grants_and_secrets.secrets)?;
        let host = self.build_host(&servers).await?;
        connect_required_servers(&servers, &*progress, cancel).await?;
        let limits = self.effective_limits(&**model)?;
        let settings = self.trace_settings(&host, &limits)?;
        let conversation = if self.options.roles.is_empty() {
            host.conversation()
        } else {
            host.conversation_for(self.options.roles)
        };
        let conversation = self.replay.iter().fold(conversation, ConversationBuilder::replay);
        let mut builder = conversation
            .model(model.clone())
            .delivery(self.options.delivery.map(ToolDelivery::from).unwrap_or_default())
            .limits(limits)
            .budget(budget)
            .options(options);
        if self.options.budget.budget_tools {
            builder = builder.tools(ProcessTools::tools()?);
        }
        if let Some(system) = self.options.system {
            builder = builder.system(system);
        }
        // A trace needs the events that only a conversation with a journal emits.
        let journal = journal.or_else(|| self.trace.is_some().then(Journal::unstored));
        if let Some(path) = &self.trace {
            builder = builder.observer(start_trace(path, model.name(), settings, journal.as_ref())?);
        }
        if let Some(journal) = journal {
            builder = builder.journal(journal);
        }
        builder = match self.replay {
            Some(replay) if self.is_forked => {
                with_respondent(builder, &progress).approvals(forked_approvals(policy, &progress, &replay))
            }
            Some(_) => builder,
            None => with_respondent(builder, &progress).approvals(approvals(policy, &progress, self.answers)),
        };
        if let Some(approver) = self.deferred_approver {
            builder = builder.observer(move |event: &Event, origin: &Origin| approver.observe(event, origin));
        }
        let observer = progress.clone();
        let builder = builder
            .output(progress)
            .observer(move |event: &Event, _: &Origin| observer.print(event));
        Ok(builder.build()?)
    }

    /// Builds the host of the conversation.
    async fn build_host(&self, servers: &McpServers) -> Result<Toolwit, Error> {
        let host = self.options.plugins.builder_with_interceptors(
            &self.options.limits,
            &self.options.grants_and_secrets,
            servers,
            &self.options.interceptors,
        )?;
        let host = with_word_vectors(host);
        let protected_paths = self.sessions.protected_paths().into_iter();
        let host = protected_paths.fold(host, ToolwitBuilder::protect);
        let groups = groups_file(self.options.groups.clone(), &self.options.roles)?;
        let host = groups.into_iter().fold(host, ToolwitBuilder::groups_file);
        let frozen_seconds = self
            .replay
            .as_ref()
            .map(|replay| replay.recording().started_at_ms() / 1000);
        let host = frozen_seconds.into_iter().fold(host, ToolwitBuilder::frozen_at);
        let host = host.exposure(self.exposure()).build().await?;
        self.check_interceptor_digests(&host)?;
        Ok(host)
    }

    /// Returns the exposure. With native delivery, the default is all tools, because the provider searches them.
    fn exposure(&self) -> Exposure {
        match (self.options.exposure, self.options.delivery) {
            (None, Some(DeliveryFlag::Native)) => Exposure::Flat,
            (exposure, _) => exposure.map(Exposure::from).unwrap_or_default(),
        }
    }
}

/// Contacts the required MCP servers, without which the run must not start.
async fn connect_required_servers(
    servers: &McpServers,
    output: &dyn OutputSink,
    cancel: &CancellationToken,
) -> Result<(), Error> {
    let context = ToolContext::new();
    output.progress("starting MCP servers");
    let connection = servers.connect_required(&context);
    tokio::select! {
        biased;
        result = connection => result,
        () = cancel.cancelled() => {
            let message = "interrupted while MCP servers were started";
            Err(Error::new(ErrorKind::Cancelled, Phase::Load, message))
        }
    }
}

/// Returns the file with the tool groups: `path` or, if there are roles, the project file of the current directory.
/// If that project file is used and does not exist, returns an error.
fn groups_file(path: Option<PathBuf>, roles: &[String]) -> Result<Option<PathBuf>, Error> {
    if path.is_some() || roles.is_empty() {
        return Ok(path);
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
