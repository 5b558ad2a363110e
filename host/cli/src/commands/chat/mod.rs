//! `toolwit chat`: a conversation with a model, one line of input per turn.

mod line;
mod slash;

use std::io::{self, IsTerminal};
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use self::line::{Line, read_line};
use self::slash::{Slash, pin};
use crate::commands::run::{RunFlags, RunProgress, interrupted, open_or_create};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::input::sessions::SessionFlags;
use crate::interrupt::TurnInterrupts;
use crate::output::page::{FAINT, Page};
use crate::output::printer::{Format, Printer, write_stderr};
use toolwit::agent::{Conversation, RunError, RunOutcome, SessionId};
use toolwit::{Error, ErrorKind, Phase};

const EXAMPLES: &str = "\
Examples:
  toolwit chat --model openai:gpt-5 --plugins target/plugins
  toolwit chat --model ollama:qwen3 --system \"Answer briefly.\"
  toolwit chat --model openai:gpt-5 --session spend
  toolwit chat --model scripted:scenario.toml < questions.txt

Commands in the chat:
  /tools [TEXT]  list the tools that can be called
  /budget        show tokens, cost and calls
  /pin           keep your last message when older ones are summarized
  /wait          wait for a background call
  /help          list these commands
  /quit          end the session, as does Ctrl-D

Ctrl-C cancels the turn. A second one within 2 seconds ends the session.";

/// Chat with a model that has the tools of plugins
///
/// Each line of input is a message. Answers go to standard output as they arrive. Tool calls, results, injected tools and the
/// model's reasoning go to standard error.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Chat {
    /// Name of the session that stores the conversation; a session that exists is continued
    #[arg(long, value_name = "NAME")]
    session: Option<SessionId>,
    #[command(flatten)]
    sessions: SessionFlags,
    #[command(flatten)]
    flags: RunFlags,
}

impl Chat {
    pub(crate) async fn run(self, printer: Printer, cancel: &CancellationToken) -> Result<Exit, Failure> {
        if printer.format() == Format::Json {
            let message = "a chat is not one JSON document";
            return Err(Error::new(ErrorKind::Configuration, Phase::Registry, message)
                .with_suggestion("`toolwit run PROMPT --json` answers one message")
                .into());
        }
        let is_interactive = io::stdin().is_terminal();
        let interrupts = TurnInterrupts::listen(printer, cancel.clone(), is_interactive).map_err(|error| {
            let message = format!("signals cannot be received: {error}");
            Error::new(ErrorKind::Internal, Phase::Registry, message).with_source(error)
        })?;
        let model = self.flags.connect(cancel).await?;
        let journal = match &self.session {
            Some(session) => Some(open_or_create(&self.sessions, session).await?),
            None => None,
        };
        let progress = Arc::new(RunProgress::streaming(printer, model.name()));
        let built = self.flags.conversation(&model, journal, progress.clone(), cancel).await;
        progress.end_turn();
        let mut conversation = built?;
        if let (Some(session), Some(_)) = (&self.session, conversation.interrupted_run()) {
            return Err(interrupted(session).into());
        }
        let session = Session {
            printer,
            is_interactive,
            interrupts: &interrupts,
            progress: &progress,
            cancel,
        };
        let exit = session.run(&mut conversation).await?;
        drop(conversation);
        model.finish().map_err(Error::from)?;
        Ok(exit)
    }
}

/// A chat that runs.
struct Session<'s> {
    printer: Printer,
    is_interactive: bool,
    interrupts: &'s TurnInterrupts,
    progress: &'s RunProgress,
    cancel: &'s CancellationToken,
}

impl Session<'_> {
    /// Runs turns until the input ends. Without a person, the exit code is that of the worst turn.
    async fn run(&self, conversation: &mut Conversation) -> Result<Exit, Failure> {
        let mut worst = Exit::Success;
        loop {
            if self.is_interactive {
                self.prompt(conversation);
            }
            let line = tokio::select! {
                biased;
                () = self.cancel.cancelled() => return Ok(Exit::Interrupted),
                line = read_line() => line?,
            };
            let exit = match line {
                Line::End => break,
                Line::Empty => Exit::Success,
                Line::Command(Slash::Quit) => break,
                Line::Command(Slash::Wait) => self.wait(conversation).await,
                Line::Command(Slash::Pin) => self.print(pin(conversation).await),
                Line::Command(command) => self.print(command.page(conversation)),
                Line::Message(text) => {
                    let turn = self.interrupts.begin_turn();
                    let ended = conversation.turn(text).cancel(turn).run().await;
                    self.end_turn(ended)
                }
            };
            if self.cancel.is_cancelled() {
                return Ok(Exit::Interrupted);
            }
            if !self.is_interactive {
                worst = worst.max(exit);
            }
        }
        Ok(worst)
    }

    fn prompt(&self, conversation: &Conversation) {
        let mut page = Page::new();
        if conversation.background_calls() > 0 {
            let text = "a call continues in the background; /wait shows its result";
            page.styled(FAINT, text).end();
        }
        page.text("> ");
        write_stderr(&page);
    }

    /// Waits for a late result, and runs the model on it.
    async fn wait(&self, conversation: &mut Conversation) -> Exit {
        if conversation.background_calls() == 0 {
            self.printer.hint("no call runs in the background");
            return Exit::Success;
        }
        let turn = self.interrupts.begin_turn();
        let ended = tokio::select! {
            biased;
            // A run that is dropped leaves a valid history.
            () = turn.cancelled() => None,
            ended = conversation.wake() => ended,
        };
        match ended {
            Some(ended) => self.end_turn(ended),
            None => {
                self.interrupts.end_turn();
                self.progress.end_turn();
                Exit::Success
            }
        }
    }

    fn end_turn(&self, ended: Result<RunOutcome, RunError>) -> Exit {
        self.interrupts.end_turn();
        self.progress.end_turn();
        match ended {
            Ok(_) => Exit::Success,
            Err(error) => {
                let error = error.report();
                self.printer.print_error(&error);
                Exit::of(&error)
            }
        }
    }

    /// Prints the output of a command.
    fn print(&self, page: Result<Page, Error>) -> Exit {
        match page {
            Ok(page) => {
                write_stderr(&page);
                Exit::Success
            }
            Err(error) => {
                self.printer.print_error(&error);
                Exit::Usage
            }
        }
    }
}
