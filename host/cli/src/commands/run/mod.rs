//! `toolwit run`: runs one turn of a model with the tools of plugins.

mod conversation_flags;
mod progress;

use serde::Serialize;
use tokio_util::sync::CancellationToken;

use crate::exit::Exit;
use crate::failure::Failure;
use crate::input::call_arguments::read_text;
use crate::output::printer::{Format, Printer};
use toolwit::Error;
use toolwit::agent::{RunError, RunFailure, RunOutcome};
use toolwit::limits::PROMPT_BYTES_MAX;
use toolwit::model::ChatModel;

pub(crate) use conversation_flags::{ConversationFlags, Prepared};
pub(crate) use progress::RunProgress;

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
    #[command(flatten)]
    conversation: ConversationFlags,
}

impl Run {
    pub(crate) async fn run(self, printer: Printer, cancel: &CancellationToken) -> Result<Exit, Failure> {
        let prompt = match self.prompt.as_str() {
            "-" => read_text("-".to_owned(), PROMPT_BYTES_MAX, cancel).await?,
            _ => self.prompt,
        };
        let show = |model: &str| RunProgress::new(printer, model);
        let Prepared { builder, model, .. } = self.conversation.prepare(show, cancel).await?;
        let mut conversation = builder.build()?;
        let ended = conversation.turn(prompt).cancel(cancel.clone()).run().await;
        // Removes the spinner before the answer is printed.
        drop(conversation);
        match ended {
            Ok(outcome) => print_outcome(&outcome, &*model, printer),
            Err(error) => print_failure(&error, printer),
        }
    }
}

/// A failed run, with the part of the outcome that it reached.
#[derive(Serialize)]
struct FailedRun<'a> {
    ok: bool,
    error: &'a Error,
    #[serde(flatten)]
    outcome: &'a RunOutcome,
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
