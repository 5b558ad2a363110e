//! The input of a chat: a person with a line editor, or lines of standard input.

use std::future::pending;
use std::io::{self, IsTerminal};

use tokio_util::sync::CancellationToken;

use super::editor::{EditorInput, LineEditor};
use super::line::{Line, read_error, read_line};
use super::slash;
use crate::input::configuration::chat_history_path;
use crate::output::page::{FAINT, Page};
use crate::output::printer::{Printer, write_stderr};
use toolwit::Error;
use toolwit::agent::Conversation;

/// The next event of a chat.
#[derive(Debug)]
pub(super) enum ChatEvent {
    /// A line was entered.
    Line(Line),
    /// Ctrl-C at the prompt.
    Interrupt,
    /// The line editor stopped, because the late result of a background call has arrived or the chat is cancelled.
    EditorStopped,
}

/// The input of a chat.
pub(super) enum ChatInput {
    /// A person with a line editor.
    Editor(Box<LineEditor>),
    /// Lines of standard input, with a prompt if it is a terminal without a line editor.
    Lines { has_prompt: bool },
}

impl ChatInput {
    pub(super) fn open(printer: Printer) -> Self {
        let history = chat_history_path();
        match LineEditor::at_terminal(history.as_deref(), |reason| printer.warn(reason)) {
            Some(editor) => Self::Editor(Box::new(editor)),
            None => Self::Lines {
                has_prompt: io::stdin().is_terminal(),
            },
        }
    }

    /// Returns whether a person types the input at a terminal.
    pub(super) fn has_person(&self) -> bool {
        match self {
            Self::Editor(_) => true,
            Self::Lines { has_prompt } => *has_prompt,
        }
    }

    /// Waits for a line or for the cancellation. With a line editor, the arrival of a late result also ends the wait.
    ///
    /// # Errors
    /// If the input cannot be read, or a line is too long.
    pub(super) async fn next(
        &mut self,
        conversation: &mut Conversation,
        cancel: &CancellationToken,
    ) -> Result<ChatEvent, Error> {
        let has_background_calls = conversation.background_calls() > 0;
        match self {
            Self::Editor(editor) => {
                if has_background_calls {
                    print_notice("a call runs in the background; its result appears when it arrives");
                }
                editor.set_completions(completions(conversation));
                let late_result = async {
                    if !conversation.wait_for_late_result().await {
                        pending::<()>().await;
                    }
                };
                let typed = editor.read(async {
                    tokio::select! {
                        () = cancel.cancelled() => {}
                        () = late_result => {}
                    }
                });
                match typed.await.map_err(read_error)? {
                    EditorInput::Line(line) => Line::parse(&line).map(ChatEvent::Line),
                    EditorInput::Interrupt => Ok(ChatEvent::Interrupt),
                    EditorInput::End => Ok(ChatEvent::Line(Line::End)),
                    EditorInput::Stopped => {
                        // Ends the line that the person was typing, so that the next output begins on a new line.
                        write_stderr(Page::new().end());
                        Ok(ChatEvent::EditorStopped)
                    }
                }
            }
            Self::Lines { has_prompt } => {
                if *has_prompt {
                    if has_background_calls {
                        print_notice("a call runs in the background; /wait shows its result");
                    }
                    write_stderr(Page::new().text("> "));
                }
                tokio::select! {
                    biased;
                    () = cancel.cancelled() => Ok(ChatEvent::Line(Line::End)),
                    line = read_line() => line.map(ChatEvent::Line),
                }
            }
        }
    }
}

fn print_notice(text: &str) {
    write_stderr(Page::new().styled(FAINT, text).end());
}

/// Returns the words that Tab completes: the commands and the names of the callable tools.
fn completions(conversation: &Conversation) -> Vec<String> {
    let tools = conversation.tools().iter().map(|tool| tool.name.to_string());
    slash::command_names().map(str::to_owned).chain(tools).collect()
}
