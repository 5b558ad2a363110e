//! `toolwit chat`: a conversation with a model, one line of input per turn.

mod editor;
mod input;
mod interrupted_run;
mod line;
mod slash;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio_util::sync::CancellationToken;

use self::input::{ChatEvent, ChatInput};
use self::line::Line;
use self::slash::ChatCommand;
use crate::approval::PreparedAnswers;
use crate::commands::run::{RunFlags, RunProgress, approver, create_if_missing, open_session};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::input::approvals::can_ask;
use crate::input::pictures::{read_picture, too_many_pictures, warn_if_not_accepted};
use crate::interrupt::TurnInterrupts;
use crate::output::page::Page;
use crate::output::printer::{Format, Printer, write_stderr};
use toolwit::agent::{Conversation, RunError, RunOutcome, SessionId, UserTurn};
use toolwit::journal::SqliteJournalStore;
use toolwit::limits::PICTURES_PER_MESSAGE_MAX;
use toolwit::model::ChatModel;
use toolwit::tool::Picture;
use toolwit::{Error, ErrorKind, Phase};

const EXAMPLES: &str = "\
Examples:
  toolwit chat --model openai:gpt-5 --plugins target/plugins
  toolwit chat --model ollama:qwen3 --system \"Answer briefly.\"
  toolwit chat --model openai:gpt-5 --session spend
  toolwit chat --model scripted:scenario.toml < questions.txt

Commands in the chat:
  /tools [TEXT]       list the tools that can be called
  /budget             show tokens, cost and calls
  /pin                keep your last message when older ones are summarized
  /attach FILE        attach a picture to your next message
  /wait               wait for a background call
  /resume             continue a run that was interrupted when its process ended
  /approve [CALL]     allow a call of an interrupted run that waits for an answer
  /deny [CALL] TEXT   deny a call of an interrupted run; the model reads the text
  /resolve CALL HOW   decide about an interrupted call: done, not-done or run-again
  /help               list these commands
  /quit               end the session, as does Ctrl-D

At a terminal the arrow keys and Ctrl-R find earlier messages, Tab completes commands and names of tools, and Alt-Enter begins a new line.
Ctrl-C cancels the turn. A second one within 2 seconds ends the session.";

/// Chat with a model that has the tools of plugins
///
/// Each line of input is a message. Answers go to standard output as they arrive. Tool calls, results, injected tools
/// and the model's reasoning go to standard error. At a terminal, the model answers the late result of a background
/// call when it arrives.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Chat {
    /// Name of the session that stores the conversation; a session that exists is continued
    #[arg(long, value_name = "NAME")]
    session: Option<SessionId>,
    #[command(flatten)]
    flags: RunFlags,
}

impl Chat {
    pub(crate) async fn run(self, printer: Printer, cancel: &CancellationToken) -> Result<Exit, Failure> {
        if printer.format() == Format::Json {
            let message = "`toolwit chat` does not support `--json`";
            return Err(Error::new(ErrorKind::Configuration, Phase::Registry, message)
                .with_suggestion("`toolwit run PROMPT --json` answers one message")
                .into());
        }
        let mut input = ChatInput::open(printer);
        let interrupts = TurnInterrupts::listen(printer, cancel.clone(), input.has_person()).map_err(|error| {
            let message = format!("signals cannot be received: {error}");
            Error::new(ErrorKind::Internal, Phase::Registry, message).with_source(error)
        })?;
        let stored_session = match self.session {
            Some(session) => Some((self.flags.sessions.open_trusted().await?, session)),
            None => None,
        };
        let existing_journal = match &stored_session {
            Some((store, session)) => open_session(store, session).await?,
            None => None,
        };
        let flags = self.flags.with_session_options(existing_journal.as_ref(), printer)?;
        let model = flags.connect(cancel).await?;
        let journal = match &stored_session {
            Some((store, session)) => Some(create_if_missing(existing_journal, store, session).await?),
            None => None,
        };
        let progress = Arc::new(RunProgress::streaming(printer, model.name()));
        let answers = PreparedAnswers::new(approver(&progress, None));
        let requires_prior_answers = !can_ask() && !flags.allows_every_call();
        let flags = flags.with_approvers(answers.clone(), None);
        let conversation_or_error = flags
            .build_conversation(&model, journal, progress.clone(), cancel)
            .await;
        progress.end_turn();
        let mut conversation = conversation_or_error?;
        let session = ChatSession {
            printer,
            interrupts: &interrupts,
            progress: &progress,
            cancel,
            answers,
            requires_prior_answers,
            stored_session,
            model: &*model,
            attached: Mutex::default(),
        };
        session.show_interrupted_run(&conversation).await;
        let exit = session.run(&mut input, &mut conversation).await?;
        drop(conversation);
        model.end_use().map_err(Error::from)?;
        Ok(exit)
    }
}

/// A running chat.
struct ChatSession<'s> {
    printer: Printer,
    interrupts: &'s TurnInterrupts,
    progress: &'s RunProgress,
    cancel: &'s CancellationToken,
    /// The user's answers to the questions of an interrupted run.
    answers: PreparedAnswers,
    /// Whether all questions of an interrupted run must have an answer before the run can continue, because no person can
    /// be asked during the run.
    requires_prior_answers: bool,
    /// The store and the name of the session, if the conversation has a session.
    stored_session: Option<(SqliteJournalStore, SessionId)>,
    model: &'s dyn ChatModel,
    /// The pictures for the next message.
    attached: Mutex<Vec<Picture>>,
}

impl ChatSession<'_> {
    /// Handles lines of input and late results until the input ends or the chat is cancelled. If a person types the input,
    /// the exit code is success. Otherwise, the exit code is the worst of all turns and commands. A cancelled chat always
    /// has the exit code [`Exit::Interrupted`].
    async fn run(&self, input: &mut ChatInput, conversation: &mut Conversation) -> Result<Exit, Failure> {
        let mut worst_exit = Exit::Success;
        loop {
            let event = input.next(conversation, self.cancel).await?;
            let exit = match event {
                _ if self.cancel.is_cancelled() => return Ok(Exit::Interrupted),
                ChatEvent::Interrupt => {
                    self.interrupts.ctrl_c();
                    Exit::Success
                }
                ChatEvent::EditorStopped => self.wait(conversation).await,
                ChatEvent::Line(Line::End | Line::Command(ChatCommand::Quit)) => break,
                ChatEvent::Line(line) => self.execute(line, conversation).await,
            };
            if self.cancel.is_cancelled() {
                return Ok(Exit::Interrupted);
            }
            if !input.has_person() {
                worst_exit = worst_exit.max(exit);
            }
        }
        Ok(worst_exit)
    }

    /// Executes a command, or sends a message to the model. The caller handles the end of the input and `/quit`.
    async fn execute(&self, line: Line, conversation: &mut Conversation) -> Exit {
        let command = match line {
            Line::Empty | Line::End => return Exit::Success,
            Line::Message(text) => return self.send(text, conversation).await,
            Line::Command(command) => command,
        };
        match command {
            ChatCommand::Wait => self.wait(conversation).await,
            ChatCommand::Resume => self.resume(conversation).await,
            ChatCommand::Approve(call) => self.approve(&call, conversation).await,
            ChatCommand::Deny(text) => self.deny(&text, conversation).await,
            ChatCommand::Resolve(decision) => self.print(interrupted_run::resolve(&decision, conversation)),
            ChatCommand::Attach(file) => self.print(self.attach(file).await),
            ChatCommand::Pin => self.print(slash::pin(conversation).await),
            ChatCommand::Tools(text) => self.print(Ok(slash::list_tools(conversation, &text))),
            ChatCommand::Budget => self.print(Ok(slash::show_budget(conversation))),
            ChatCommand::Help | ChatCommand::Quit => self.print(Ok(slash::help())),
            ChatCommand::Unknown(name) => self.print(Err(slash::unknown_command(&name))),
        }
    }

    async fn send(&self, text: String, conversation: &mut Conversation) -> Exit {
        if conversation.interrupted_run().is_some() {
            return self.print(Err(interrupted_run::interrupted_run_error()));
        }
        let turn_cancel = self.interrupts.begin_turn();
        let pictures = std::mem::take(&mut *self.attached());
        let turn = conversation.turn(text).cancel(turn_cancel);
        let outcome = pictures.into_iter().fold(turn, UserTurn::picture).run().await;
        self.end_turn(outcome)
    }

    /// Attaches the picture in a file to the next message.
    async fn attach(&self, file: String) -> Result<Page, Error> {
        if self.attached().len() >= PICTURES_PER_MESSAGE_MAX {
            return Err(too_many_pictures());
        }
        let picture = read_picture(file.into(), self.cancel).await?;
        warn_if_not_accepted(self.model, self.printer);
        let mut page = Page::new();
        page.text(format_args!("attached to your next message: {picture}"))
            .end();
        self.attached().push(picture);
        Ok(page)
    }

    fn attached(&self) -> MutexGuard<'_, Vec<Picture>> {
        self.attached.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the late result of a background call, and runs the model on the result.
    async fn wait(&self, conversation: &mut Conversation) -> Exit {
        if conversation.background_calls() == 0 {
            self.printer.hint("no call runs in the background");
            return Exit::Success;
        }
        let turn_cancel = self.interrupts.begin_turn();
        let outcome = tokio::select! {
            biased;
            // Dropping the future of `wake` leaves a valid history.
            () = turn_cancel.cancelled() => None,
            outcome = conversation.wake() => outcome,
        };
        match outcome {
            Some(outcome) => self.end_turn(outcome),
            None => {
                self.interrupts.end_turn();
                self.progress.end_turn();
                Exit::Success
            }
        }
    }

    fn end_turn(&self, outcome: Result<RunOutcome, RunError>) -> Exit {
        self.interrupts.end_turn();
        self.progress.end_turn();
        match outcome {
            Ok(_) => Exit::Success,
            Err(error) => {
                let error = error.report();
                self.printer.print_error(&error);
                Exit::of(&error)
            }
        }
    }

    /// Prints the output of a chat command, or the error of the command, to standard error.
    fn print(&self, page: Result<Page, Error>) -> Exit {
        match page {
            Ok(page) => {
                write_stderr(&page);
                Exit::Success
            }
            Err(error) => {
                self.printer.print_error(&error);
                Exit::UsageOrConfiguration
            }
        }
    }
}
