//! `toolwit demo`: runs a conversation with a scripted model, the real agent loop and real plugins.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use tokio_util::sync::CancellationToken;

use crate::commands::run;
use crate::commands::shipped::ShippedPlugins;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::conversation;
use crate::output::page::{FAINT, Page};
use crate::output::printer::{Format, Printer};
use crate::output::progress::with_spinner;
use crate::shell::SuggestedCommand;
use toolwit::Error;
use toolwit::Toolwit;
use toolwit::agent::{Event, RunOutcome};
use toolwit::model::{ChatModel, ScriptedModel};
use toolwit::tool::Origin;

/// The turns of the scripted model.
const SCENARIO: &str = include_str!("scenario.toml");

/// The plugins that the scenario uses.
const SCENARIO_PLUGINS: [&str; 1] = ["customers"];

/// The plugins that are built in a clone of the repository: those of the scenario, and others for the user to try.
const CLONE_PLUGINS: [&str; 5] = ["calc", "customers", "quota", "redact", "text"];

/// Run a scripted conversation, without an API key
///
/// Builds plugins that ship with Toolwit if they are missing or older than their source, and runs a scenario. The build
/// needs Rust, and downloads the dependencies of the plugins once. Outside of the repository in which this program was
/// compiled, only the plugin of the scenario is built, from source that is part of this program. The model is scripted;
/// the agent loop, the plugins and their results are real. With --json, prints the same document as
/// `toolwit run --json`.
#[derive(Debug, clap::Args)]
pub(crate) struct Demo {}

/// The recorded events of the conversation, in order.
type RecordedEvents = Arc<Mutex<Vec<Event>>>;

impl Demo {
    #[allow(clippy::unused_self, reason = "all commands have the same signature")]
    pub(crate) async fn run(self, printer: Printer, cancel: &CancellationToken) -> Result<Exit, Failure> {
        let model = Arc::new(ScriptedModel::parse(SCENARIO).map_err(Error::from)?);
        let prompt = model.prompt().unwrap_or_default().to_owned();
        let shipped = ShippedPlugins::find()?;
        let mut components = Vec::new();
        let names: &[&str] = if shipped.is_clone {
            &CLONE_PLUGINS
        } else {
            &SCENARIO_PLUGINS
        };
        for name in names {
            components.push(shipped.build(name, printer, cancel).await?);
        }
        let host = load(&components, printer, cancel).await?;
        let events = RecordedEvents::default();
        let observed_events = events.clone();
        let observer = move |event: &Event, _: &Origin| {
            observed_events
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(event.clone())
        };
        let mut conversation = host.conversation().model(model.clone()).observer(observer).build()?;
        let outcome_or_error = conversation.turn(prompt.as_str()).cancel(cancel.clone()).run().await;
        if printer.format() == Format::Human {
            let events = events.lock().unwrap_or_else(PoisonError::into_inner);
            printer.print_page(&transcript(&prompt, &events, outcome_or_error.as_ref().ok()))?;
        }
        let outcome = match outcome_or_error {
            Ok(outcome) => outcome,
            Err(error) => return run::print_failure(&error, printer),
        };
        if let Err(error) = model.end_use() {
            return run::print_error_with_outcome(&error.into(), &outcome, printer);
        }
        match printer.format() {
            Format::Json => printer.document(&outcome)?,
            Format::Human => printer.hint(next_step(&shipped.component_directory)),
        }
        Ok(Exit::Success)
    }
}

/// Loads and compiles the plugins. After an interrupt, compiles no further plugin. The run that follows then ends as
/// cancelled.
async fn load(components: &[PathBuf], printer: Printer, cancel: &CancellationToken) -> Result<Toolwit, Error> {
    let mut builder = Toolwit::builder();
    for component in components {
        builder = builder.plugins(component);
    }
    let host = builder.build().await?;
    for package in host.registry().packages() {
        if let Some(reason) = package.broken_reason() {
            return Err(reason.clone());
        }
    }
    let compilation = async {
        for plugin in host.registry().plugins() {
            if cancel.is_cancelled() {
                break;
            }
            plugin.compile().await?;
        }
        Ok::<_, Error>(())
    };
    with_spinner(printer, "compiling the plugins for this machine", compilation).await?;
    Ok(host)
}

fn transcript(prompt: &str, events: &[Event], outcome: Option<&RunOutcome>) -> Page {
    let mut page = Page::new();
    page.styled(
        FAINT,
        "The model is scripted; the agent loop, the plugins and their results are real.",
    )
    .end();
    page.gap();
    conversation::write_prompt(&mut page, prompt);
    for event in events {
        if let Event::TurnStarted { tools, .. } = event {
            let count = tools.len();
            page.styled(FAINT, format_args!("           {count} tools at the start"))
                .end();
        }
        conversation::write_event(&mut page, event);
    }
    if let Some(outcome) = outcome {
        page.gap();
        conversation::write_answer(&mut page, outcome.text());
    }
    page
}

/// Returns a hint with a next command that works in the current directory.
fn next_step(directory: &Path) -> String {
    let here = std::env::current_dir().unwrap_or_default();
    let directory = directory.strip_prefix(&here).unwrap_or(directory).to_string_lossy();
    let program = std::env::args_os().next().unwrap_or_else(|| "toolwit".into());
    let command = SuggestedCommand::of_program(&program.to_string_lossy(), "show").operand("search_customer");
    let command = command.option("plugins", &directory);
    format!("`{command}` shows the first tool that was called")
}
