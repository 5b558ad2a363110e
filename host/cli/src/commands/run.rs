//! `toolwit run`: runs one turn of a model with the tools of plugins.

use std::fs::File;
use std::io::BufWriter;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use serde::Serialize;
use tokio_util::sync::CancellationToken;

use crate::exit::Exit;
use crate::failure::Failure;
use crate::input::call_arguments::read_text;
use crate::input::interceptors::InterceptorFlags;
use crate::input::limits::{LimitFlags, RunLimitFlags};
use crate::input::plugins::{AuthorityFlags, PluginFlags};
use crate::input::project_trust::ProjectTrust;
use crate::input::vectors::with_word_vectors;
use crate::output::conversation;
use crate::output::page::{FAINT, Page};
use crate::output::printer::{Format, Printer};
use crate::output::progress::Spinner;
use crate::output::stream_preview::StreamPreview;
use toolwit::agent::{Event, RunError, RunFailure, RunOutcome, Trace};
use toolwit::limits::PROMPT_BYTES_MAX;
use toolwit::model::ChatModel;
use toolwit::models::{ModelSpec, connect};
use toolwit::registry::Project;
use toolwit::tool::{Origin, OutputSink};
use toolwit::{Error, ErrorKind, Phase};
use toolwit::{Exposure, ToolwitBuilder};

const EXAMPLES: &str = "\
Examples:
  toolwit run \"What is John Smith's average spend?\" --model openai:gpt-5 --plugins target/plugins
  toolwit run \"How many words has this?\" --model ollama:qwen3 --trace trace.jsonl
  toolwit run \"What is new?\" --model anthropic:claude-sonnet-4-5
  toolwit run \"Hello\" --model openai:my-model --base-url http://127.0.0.1:8080/v1
  toolwit run \"Hello\" --model scripted:scenario.toml -q

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
    interceptors: InterceptorFlags,
    #[command(flatten)]
    run_limits: RunLimitFlags,
    #[command(flatten)]
    limits: LimitFlags,
}

/// The exposure of tools to the model.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum ExposureFlag {
    /// All tools of all plugins
    Flat,
    /// One facade tool per interface, which reveals its tools when called
    Facade,
    /// Tools that match the prompt or a search of the model
    Search,
}

impl From<ExposureFlag> for Exposure {
    fn from(flag: ExposureFlag) -> Self {
        match flag {
            ExposureFlag::Flat => Self::Flat,
            ExposureFlag::Facade => Self::Facade,
            ExposureFlag::Search => Self::Search,
        }
    }
}

impl Run {
    pub(crate) async fn run(self, printer: Printer, cancel: &CancellationToken) -> Result<Exit, Failure> {
        let model = self.connect().await?;
        let prompt = match self.prompt.as_str() {
            "-" => read_text("-".to_owned(), PROMPT_BYTES_MAX, cancel).await?,
            _ => self.prompt,
        };
        let exposure = self.exposure.map(Exposure::from).unwrap_or_default();
        let host = self
            .plugins
            .intercepted(&self.limits, &self.authority, &self.interceptors)?;
        let host = with_word_vectors(host);
        let groups = groups_file(self.groups, &self.roles)?;
        let host = groups.into_iter().fold(host, ToolwitBuilder::groups_file);
        let host = host.exposure(exposure).build().await?;
        let limits = self.run_limits.limits(&ProjectTrust::find()?.run_limits());
        let conversation = if self.roles.is_empty() {
            host.conversation()
        } else {
            host.conversation_for(self.roles)
        };
        let mut builder = conversation.model(model.clone()).limits(limits);
        if let Some(system) = self.system {
            builder = builder.system(system);
        }
        if let Some(path) = &self.trace {
            builder = builder.observer(trace(path)?);
        }
        let progress = Arc::new(RunProgress::new(printer, model.name()));
        let observer = progress.clone();
        let builder = builder
            .output(progress)
            .observer(move |event: &Event, _: &Origin| observer.print(event));
        let mut conversation = builder.build()?;
        let ended = conversation.turn(prompt).cancel(cancel.clone()).run().await;
        // Removes the spinner before the answer is printed.
        drop(conversation);
        match ended {
            Ok(outcome) => print_outcome(&outcome, &*model, printer),
            Err(error) => print_failure(&error, printer),
        }
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

fn trace(path: &PathBuf) -> Result<Trace<BufWriter<File>>, Error> {
    let file = File::create(path).map_err(|error| {
        let message = format!("the trace `{}` cannot be written: {error}", path.display());
        Error::new(ErrorKind::Io, Phase::Registry, message).with_source(error)
    })?;
    Ok(Trace::new(BufWriter::new(file)))
}

/// A failed run, with the part of the outcome that it reached.
#[derive(Serialize)]
struct FailedRun<'a> {
    ok: bool,
    error: &'a Error,
    #[serde(flatten)]
    outcome: &'a RunOutcome,
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

/// Prints the answer, or the outcome as JSON. Fails if a scripted model has turns left.
fn print_outcome(outcome: &RunOutcome, model: &dyn ChatModel, printer: Printer) -> Result<Exit, Failure> {
    if printer.format() == Format::Human {
        print_answer(outcome, printer)?;
    }
    match (model.finish().map_err(Error::from), printer.format()) {
        (Ok(()), Format::Human) => Ok(Exit::Success),
        (Ok(()), Format::Json) => printer.document(outcome).map(|()| Exit::Success),
        (Err(error), _) => print_error_with_outcome(&error, outcome, printer),
    }
}

fn print_answer(outcome: &RunOutcome, printer: Printer) -> Result<(), Failure> {
    printer.outside_text(outcome.text().trim_end())
}

/// Prints the error of a run, after its partial answer if there is one.
pub(crate) fn print_failure(ended: &RunError, printer: Printer) -> Result<Exit, Failure> {
    if printer.format() == Format::Human && ended.outcome.answer.is_some() {
        print_answer(&ended.outcome, printer)?;
    }
    let exit = print_error_with_outcome(&ended.report(), &ended.outcome, printer)?;
    Ok(match ended.failure {
        // The model called an unknown tool, not the user.
        RunFailure::UnknownTools { .. } => Exit::Failed,
        _ => exit,
    })
}

/// Prints an error. The JSON document also has the outcome that the run reached.
pub(crate) fn print_error_with_outcome(error: &Error, outcome: &RunOutcome, printer: Printer) -> Result<Exit, Failure> {
    match printer.format() {
        Format::Json => printer.document(&FailedRun {
            ok: false,
            error,
            outcome,
        })?,
        Format::Human => printer.print_error(error),
    }
    Ok(Exit::of(error))
}

/// Prints events while the model runs, and shows a spinner between them.
struct RunProgress {
    printer: Printer,
    model: String,
    spinner: Spinner,
    /// The text of the current response so far.
    preview: Mutex<StreamPreview>,
}

impl OutputSink for RunProgress {
    fn progress(&self, text: &str) {
        self.spinner.set_text(text);
    }

    fn communicate(&self, text: &str) {
        let mut page = Page::new();
        conversation::message(&mut page, text);
        self.spinner.suspend(|| self.printer.message(&page));
    }

    fn words(&self, text: &str, _: &Origin) {
        self.show_piece(&self.model, text);
    }

    fn reasoning(&self, text: &str, _: &Origin) {
        self.show_piece("thinking", text);
    }

    fn call_announced(&self, name: &str, _: &Origin) {
        self.spinner
            .set_text(&format!("{} prepares a call of {name}", self.model));
    }
}

impl RunProgress {
    fn new(printer: Printer, model: &str) -> Self {
        Self {
            printer,
            model: model.to_owned(),
            spinner: Spinner::new(printer, "starting"),
            preview: Mutex::default(),
        }
    }

    /// Shows the end of a streamed text. The complete answer is printed when the run ends.
    fn show_piece(&self, label: &str, piece: &str) {
        if self.spinner.is_visible() {
            let mut preview = self.preview.lock().unwrap_or_else(PoisonError::into_inner);
            self.spinner.set_text(&format!("{label}: {}", preview.push(piece)));
        }
    }

    fn print(&self, event: &Event) {
        match event {
            Event::IterationStarted { .. } => {
                self.preview.lock().unwrap_or_else(PoisonError::into_inner).clear();
                self.spinner.set_text(&format!("asking {}", self.model));
            }
            Event::ToolStarted { name, .. } => self.spinner.set_text(&format!("calling {name}")),
            Event::NestedCallStarted { tool, .. } => self.spinner.set_text(&format!("calling {tool}")),
            Event::NestedCallFinished { .. } => {
                let mut page = Page::new();
                conversation::nested(&mut page, event);
                self.spinner.suspend(|| self.printer.detail(&page));
            }
            Event::AccessDenied { denied, .. } => self.spinner.suspend(|| self.printer.denied(denied)),
            Event::Finished {
                iterations,
                tool_calls,
                usage,
                wall_ms,
                ..
            } => {
                let mut page = Page::new();
                let tokens = usage.tokens.input_tokens + usage.tokens.output_tokens;
                let cost = format!("{iterations} inferences, {tool_calls} tool calls, {tokens} tokens, {wall_ms} ms");
                page.styled(FAINT, cost).end();
                self.spinner.suspend(|| self.printer.detail(&page));
            }
            _ => {}
        }
        let mut page = Page::new();
        conversation::event(&mut page, event);
        self.spinner.suspend(|| self.printer.message(&page));
    }
}
