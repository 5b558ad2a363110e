//! `toolwit run`: one question to a model that has the tools of plugins.

use std::fs::File;
use std::io::BufWriter;
use std::path::PathBuf;
use std::sync::Arc;

use serde::Serialize;
use tokio_util::sync::CancellationToken;

use crate::exit::Exit;
use crate::failure::Failure;
use crate::input::call_arguments::read_text;
use crate::input::limits::LimitFlags;
use crate::input::plugins::{AuthorityFlags, PluginFlags};
use crate::output::conversation;
use crate::output::page::{FAINT, Page};
use crate::output::printer::{Format, Printer};
use crate::output::progress::Spinner;
use toolwit::Exposure;
use toolwit::agent::{Event, LoopLimits, RunError, RunFailure, RunOutcome, Trace};
use toolwit::model::ChatModel;
use toolwit::models::{ModelSpec, connect};
use toolwit::tool::OutputSink;
use toolwit::{Error, ErrorKind, Phase};

const EXAMPLES: &str = "\
Examples:
  toolwit run \"What is John Smith's average spend?\" --model openai:gpt-5 --plugins target/plugins
  toolwit run \"How many words has this?\" --model ollama:qwen3 --trace trace.jsonl
  toolwit run \"Hello\" --model openai:my-model --base-url http://127.0.0.1:8080/v1
  toolwit run \"Hello\" --model scripted:scenario.toml -q

The key of openai: models comes from OPENAI_API_KEY.";

/// The longest question that is read from standard input, in bytes.
const PROMPT_BYTES_MAX: u64 = 4 << 20;

/// Answer one question with a model and the tools of plugins
///
/// The answer goes to standard output; what the model calls, what comes back and which tools come in go to standard error.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Run {
    /// What to ask, or - for standard input
    prompt: String,
    /// The model: openai:NAME, ollama:NAME or scripted:FILE
    #[arg(long, value_name = "MODEL", env = "TOOLWIT_MODEL", hide_env_values = true)]
    model: Option<String>,
    /// Where the model is asked, usually ending in /v1 [default: the provider's own]
    #[arg(long, value_name = "URL")]
    base_url: Option<String>,
    /// Instructions that come before the question
    #[arg(long, value_name = "TEXT")]
    system: Option<String>,
    /// Write everything that happens to a file, as lines of JSON
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// The most inferences [default: 20]
    #[arg(long, value_name = "N")]
    max_iterations: Option<u32>,
    /// Which tools the model is shown: all of them, or those that a search finds [default: all, while they are few]
    #[arg(long, value_name = "HOW")]
    exposure: Option<ExposureFlag>,
    #[command(flatten)]
    plugins: PluginFlags,
    #[command(flatten)]
    authority: AuthorityFlags,
    #[command(flatten)]
    limits: LimitFlags,
}

/// Which tools the model is shown.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum ExposureFlag {
    /// All tools of all plugins
    Flat,
    /// All tools, the functions of each interface behind one that opens into them
    Facade,
    /// What is found by the question and by the model
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
        let host = self.plugins.granted(&self.limits, &self.authority).await?;
        let host = host.exposure(exposure).build().await?;
        let mut limits = LoopLimits::default();
        limits.iterations_max = self.max_iterations.unwrap_or(limits.iterations_max);
        let mut builder = host.conversation().model(model.clone()).limits(limits);
        if let Some(system) = self.system {
            builder = builder.system(system);
        }
        if let Some(path) = &self.trace {
            builder = builder.observer(trace(path)?);
        }
        let tale = Arc::new(Tale::new(printer, model.name()));
        let teller = tale.clone();
        let builder = builder.output(tale).observer(move |event: &Event| teller.tell(event));
        let mut conversation = builder.build()?;
        let ended = conversation.turn(prompt).cancel(cancel.clone()).run().await;
        // The tale's line must be gone before the answer is printed.
        drop(conversation);
        match ended {
            Ok(outcome) => answered(&outcome, &*model, printer),
            Err(error) => failed(&error, printer),
        }
    }

    async fn connect(&self) -> Result<Arc<dyn ChatModel>, Error> {
        let Some(name) = &self.model else {
            let message = "no model was named";
            return Err(Error::new(ErrorKind::Configuration, Phase::Model, message)
                .with_suggestion("name one with `--model openai:NAME`, or set TOOLWIT_MODEL"));
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

/// A run that has no full answer; what it reached is told too.
#[derive(Serialize)]
struct Failed<'a> {
    ok: bool,
    error: &'a Error,
    #[serde(flatten)]
    outcome: &'a RunOutcome,
}

/// Prints the answer, or everything as JSON. A scripted model may say that its scenario was not played to the end.
fn answered(outcome: &RunOutcome, model: &dyn ChatModel, printer: Printer) -> Result<Exit, Failure> {
    if printer.format() == Format::Human {
        print_answer(outcome, printer)?;
    }
    match (model.finish().map_err(Error::from), printer.format()) {
        (Ok(()), Format::Human) => Ok(Exit::Success),
        (Ok(()), Format::Json) => printer.document(outcome).map(|()| Exit::Success),
        (Err(error), _) => refused(&error, outcome, printer),
    }
}

fn print_answer(outcome: &RunOutcome, printer: Printer) -> Result<(), Failure> {
    printer.data(Page::new().text(outcome.text().trim_end()).end())
}

/// Prints why there is no full answer, and what there is of it.
pub(crate) fn failed(ended: &RunError, printer: Printer) -> Result<Exit, Failure> {
    if printer.format() == Format::Human && ended.outcome.answer.is_some() {
        print_answer(&ended.outcome, printer)?;
    }
    let exit = refused(&ended.failure.report(), &ended.outcome, printer)?;
    Ok(match ended.failure {
        // It was the model that named a tool which is not there, not the user.
        RunFailure::UnknownTools { .. } => Exit::Failed,
        _ => exit,
    })
}

/// Prints an error, in JSON with what the run reached.
pub(crate) fn refused(error: &Error, outcome: &RunOutcome, printer: Printer) -> Result<Exit, Failure> {
    match printer.format() {
        Format::Json => printer.document(&Failed {
            ok: false,
            error,
            outcome,
        })?,
        Format::Human => printer.print_error(error),
    }
    Ok(Exit::of(error))
}

/// Tells what happens while it happens.
struct Tale {
    printer: Printer,
    model: String,
    spinner: Spinner,
}

/// What tools say to the user.
impl OutputSink for Tale {
    fn progress(&self, text: &str) {
        self.spinner.set_text(text);
    }

    fn communicate(&self, text: &str) {
        let mut page = Page::new();
        conversation::message(&mut page, text);
        self.spinner.suspend(|| self.printer.message(&page));
    }
}

impl Tale {
    fn new(printer: Printer, model: &str) -> Self {
        Self {
            printer,
            model: model.to_owned(),
            spinner: Spinner::new(printer, "starting"),
        }
    }

    fn tell(&self, event: &Event) {
        match event {
            Event::IterationStarted { .. } => self.spinner.set_text(&format!("asking {}", self.model)),
            Event::ToolStarted { name, .. } => self.spinner.set_text(&format!("calling {name}")),
            Event::NestedCallStarted { tool, .. } => self.spinner.set_text(&format!("calling {tool}")),
            Event::NestedCallFinished { .. } => {
                let mut page = Page::new();
                conversation::nested(&mut page, event);
                self.spinner.suspend(|| self.printer.detail(&page));
            }
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
