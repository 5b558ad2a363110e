//! The slash commands of the chat, such as `/tools`.

use crate::output::page::{FAINT, NAME, Page, counted, first_sentence};
use toolwit::agent::Conversation;
use toolwit::{Error, ErrorKind, Phase};

/// A command in the chat.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ChatCommand {
    /// Lists the tools whose name or description contains this lowercase text.
    Tools(String),
    /// Shows the used tokens, cost and calls, and the remaining cost budget.
    Budget,
    /// Keeps the user's last message when older ones are summarized.
    Pin,
    /// Waits for a background call.
    Wait,
    /// Continues the interrupted run: the run that an earlier process did not finish.
    Resume,
    /// Allows the call with this id or, if the id is empty, the only call that waits for an answer.
    Approve(String),
    /// Denies a call. If the first word is the id of a call that waits for an answer, the text after the id is the reason.
    /// Otherwise, the only call that waits is denied, and the complete text is the reason.
    Deny(String),
    /// Decides whether a call took effect. The text is the id of the call, followed by `done`, `not-done` or `run-again`.
    Resolve(String),
    /// Attaches the picture in this file to the next message.
    Attach(String),
    /// Lists the commands.
    Help,
    /// Ends the session.
    Quit,
    /// A text that is not a command, without its slash.
    Unknown(String),
}

impl ChatCommand {
    /// Parses a command without its slash.
    pub(super) fn parse(command: &str) -> Self {
        let (name, argument) = command.split_once(char::is_whitespace).unwrap_or((command, ""));
        match (name, argument.trim()) {
            ("tools", text) => Self::Tools(text.to_lowercase()),
            ("budget", "") => Self::Budget,
            ("pin", "") => Self::Pin,
            ("wait", "") => Self::Wait,
            ("resume", "") => Self::Resume,
            ("approve", call) => Self::Approve(call.to_owned()),
            ("deny", text) => Self::Deny(text.to_owned()),
            ("resolve", decision) => Self::Resolve(decision.to_owned()),
            ("attach", file) if !file.is_empty() => Self::Attach(file.trim_matches(['"', '\'']).to_owned()),
            ("help" | "?", "") => Self::Help,
            ("quit" | "exit", "") => Self::Quit,
            _ => Self::Unknown(command.to_owned()),
        }
    }
}

/// The commands and their descriptions.
const COMMANDS: [(&str, &str); 11] = [
    ("/tools [TEXT]", "list the tools that can be called"),
    ("/budget", "show tokens, cost and calls"),
    ("/pin", "keep your last message when older ones are summarized"),
    ("/attach FILE", "attach a picture to your next message"),
    ("/wait", "wait for a background call"),
    ("/resume", "continue a run that was interrupted when its process ended"),
    (
        "/approve [CALL]",
        "allow a call of an interrupted run that waits for an answer",
    ),
    (
        "/deny [CALL] TEXT",
        "deny a call of an interrupted run; the model reads the text",
    ),
    (
        "/resolve CALL HOW",
        "decide about an interrupted call: done, not-done or run-again",
    ),
    ("/help", "list the commands"),
    ("/quit", "end the session"),
];

/// Returns the names of the commands, with the slash.
pub(super) fn command_names() -> impl Iterator<Item = &'static str> {
    let name = |usage: &'static str| usage.split(' ').next().unwrap_or(usage);
    COMMANDS.iter().map(move |(usage, _)| name(usage))
}

/// Returns the error for a text that is not a command. The text has no slash.
pub(super) fn unknown_command(text: &str) -> Error {
    let message = format!("`/{text}` is not a command of the chat");
    Error::new(ErrorKind::Configuration, Phase::Registry, message)
        .with_suggestion("`/help` lists the commands; begin a message with `//` to send a slash")
}

/// Lists the commands.
pub(super) fn help() -> Page {
    let mut page = Page::new();
    for (usage, text) in COMMANDS {
        page.styled(NAME, format_args!("{usage:<19}"))
            .text(" ")
            .text(text)
            .end();
    }
    page
}

/// Keeps the user's last message when older ones are summarized.
///
/// # Errors
/// If the user has not sent a message, or the session cannot be written.
pub(super) async fn pin(conversation: &mut Conversation) -> Result<Page, Error> {
    let Some(text) = conversation.pin_last_user_message().await? else {
        let message = "the conversation has no message to keep";
        return Err(Error::new(ErrorKind::Configuration, Phase::Registry, message)
            .with_suggestion("send a message first; `/pin` keeps the last message that you sent"));
    };
    let mut page = Page::new();
    page.styled(FAINT, "kept:").text(" ").text(first_sentence(text)).end();
    Ok(page)
}

/// Lists the tools whose name or description contains the lowercase `text`.
pub(super) fn list_tools(conversation: &Conversation, text: &str) -> Page {
    let mut page = Page::new();
    let mut count = 0;
    for tool in conversation.tools().iter() {
        let name = tool.name.as_str();
        let description = &tool.definition.description;
        if name.to_lowercase().contains(text) || description.to_lowercase().contains(text) {
            page.styled(NAME, name)
                .text("  ")
                .text(first_sentence(description))
                .end();
            count += 1;
        }
    }
    page.styled(FAINT, counted(count, "tool")).end();
    page
}

/// Shows the used tokens, cost and calls, and the remaining cost budget.
pub(super) fn show_budget(conversation: &Conversation) -> Page {
    let process = conversation.process();
    let (tokens, remaining) = (process.tokens(), process.remaining());
    let mut page = Page::new();
    page.text(format_args!(
        "{} input tokens, {} output tokens, {}",
        tokens.input_tokens,
        tokens.output_tokens,
        counted(process.calls() as usize, "tool call")
    ));
    page.text(format_args!(", ${:.4}", process.cost().as_usd())).end();
    let remaining_cost = remaining.cost_usd.map(|cost| format!("${:.4} left", cost.as_usd()));
    let remaining_cost = remaining_cost.unwrap_or_else(|| "no cost limit".to_owned());
    page.styled(FAINT, remaining_cost).end();
    page
}
