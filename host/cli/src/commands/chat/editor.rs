//! The line editor of a chat at a terminal: history, completion and messages of several lines.

use std::borrow::Cow;
use std::future::Future;
use std::io::{self, IsTerminal};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use anstream::{AutoStream, ColorChoice};
use reedline::{
    ColumnarMenu, Completer, CompletionResult, DefaultPrompt, EditCommand, Emacs, FileBackedHistory, KeyCode,
    KeyModifiers, MenuBuilder, Prompt, PromptEditMode, PromptHistorySearch, Reedline, ReedlineEvent, ReedlineMenu,
    Signal, Span, Suggestion, default_emacs_keybindings,
};

use crate::input::environment::variable;
use toolwit::tool::file::private_options;

/// Maximum number of messages in the history.
const HISTORY_ENTRIES_MAX: usize = 1_000;

/// Maximum size of a history file that is read, in bytes.
const HISTORY_BYTES_MAX: u64 = 16 << 20;

const MENU: &str = "completions";

/// The outcome of reading a line from a person.
#[derive(Debug)]
pub(super) enum EditorInput {
    /// An entered line. It contains line breaks if the person typed Alt-Enter.
    Line(String),
    /// Ctrl-C.
    Interrupt,
    /// Ctrl-D.
    End,
    /// No line, because the caller stopped the read. The next line begins with the text that was typed so far.
    Stopped,
}

/// The editor in which a person types lines at a terminal.
pub(super) struct LineEditor {
    /// `None` while a line is read, and after a read that panicked or was dropped.
    editor: Option<Reedline>,
    /// Stops the running read when it is set to `true`.
    break_signal: Arc<AtomicBool>,
    completions: Completions,
}

impl LineEditor {
    /// Creates the editor. Returns `None` if standard input, output and error are not all terminals, or if the terminal
    /// cannot move its cursor. If the history file cannot be used, `warn` receives the reason, and the history is kept in
    /// memory only.
    pub(super) fn at_terminal(history_path: Option<&Path>, warn: impl Fn(String)) -> Option<Self> {
        let are_terminals = io::stdin().is_terminal() && io::stdout().is_terminal() && io::stderr().is_terminal();
        if !are_terminals || variable("TERM").is_some_and(|terminal| terminal == "dumb") {
            return None;
        }
        let break_signal = Arc::<AtomicBool>::default();
        let completions = Completions::default();
        let menu = ColumnarMenu::default().with_name(MENU);
        let mut editor = Reedline::create()
            .with_break_signal(break_signal.clone())
            .with_ansi_colors(AutoStream::choice(&io::stderr()) != ColorChoice::Never)
            .with_completer(Box::new(completions.clone()))
            .with_quick_completions(true)
            .with_partial_completions(true)
            .with_menu(ReedlineMenu::EngineCompleter(Box::new(menu)))
            .with_edit_mode(Box::new(key_bindings()))
            .with_history_exclusion_prefix(Some(" ".to_owned()))
            .use_bracketed_paste(true);
        match history_path.map(open_history) {
            Some(Ok(history)) => editor = editor.with_history(Box::new(history)),
            Some(Err(reason)) => warn(reason),
            None => {}
        }
        Some(Self {
            editor: Some(editor),
            break_signal,
            completions,
        })
    }

    /// Sets the words that Tab completes.
    pub(super) fn set_completions(&self, words: Vec<String>) {
        *self.completions.0.lock().unwrap_or_else(PoisonError::into_inner) = words;
    }

    /// Reads a line. Returns [`EditorInput::Stopped`] if `stop` completes first, and [`EditorInput::End`] if an earlier
    /// read panicked or was dropped.
    ///
    /// # Errors
    /// If the terminal cannot be used.
    pub(super) async fn read(&mut self, stop: impl Future<Output = ()>) -> io::Result<EditorInput> {
        let Some(mut editor) = self.editor.take() else {
            return Ok(EditorInput::End);
        };
        let mut reading = tokio::task::spawn_blocking(move || {
            let signal = editor.read_line(&ChatPrompt(DefaultPrompt::default()));
            (editor, signal)
        });
        let outcome = tokio::select! {
            biased;
            outcome = &mut reading => outcome,
            () = stop => {
                self.break_signal.store(true, Ordering::Relaxed);
                reading.await
            }
        };
        self.break_signal.store(false, Ordering::Relaxed);
        let (editor, signal) = outcome.map_err(io::Error::other)?;
        self.editor = Some(editor);
        Ok(match signal? {
            Signal::Success(line) => EditorInput::Line(line),
            Signal::CtrlC => EditorInput::Interrupt,
            Signal::CtrlD => EditorInput::End,
            _ => EditorInput::Stopped,
        })
    }
}

/// Returns the key bindings: those of Emacs, with Tab for completions and Alt-Enter for a new line.
fn key_bindings() -> Emacs {
    let mut bindings = default_emacs_keybindings();
    let complete = vec![ReedlineEvent::Menu(MENU.to_owned()), ReedlineEvent::MenuNext];
    bindings.add_binding(KeyModifiers::NONE, KeyCode::Tab, ReedlineEvent::UntilFound(complete));
    let new_line = ReedlineEvent::Edit(vec![EditCommand::InsertNewline]);
    bindings.add_binding(KeyModifiers::ALT, KeyCode::Enter, new_line);
    Emacs::new(bindings)
}

/// Opens the history, and creates its file if necessary. Only the owner can read a new file.
fn open_history(path: &Path) -> Result<FileBackedHistory, String> {
    let unusable = |error: &dyn std::fmt::Display| format!("the history {} is not used: {error}", path.display());
    path.parent()
        .map_or(Ok(()), std::fs::create_dir_all)
        .map_err(|error| unusable(&error))?;
    let mut options = private_options();
    let file = options.create(true).append(true).open(path);
    let file = file.map_err(|error| unusable(&error))?;
    let size = file.metadata().map_err(|error| unusable(&error))?.len();
    if size > HISTORY_BYTES_MAX {
        return Err(unusable(&"the file is too large"));
    }
    FileBackedHistory::with_file(HISTORY_ENTRIES_MAX, path.to_owned()).map_err(|error| unusable(&error))
}

/// The words that Tab completes: commands and names of tools. Clones share the words.
#[derive(Clone, Default)]
struct Completions(Arc<Mutex<Vec<String>>>);

impl Completer for Completions {
    fn complete(&mut self, line: &str, position: usize) -> CompletionResult {
        let words = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        CompletionResult::fresh(suggestions(&words, line.get(..position).unwrap_or_default()))
    }
}

/// Returns the words that begin with the last word of the text. Commands are suggested only at the start of the text.
fn suggestions(words: &[String], text: &str) -> Vec<Suggestion> {
    let last_word = text.rsplit(char::is_whitespace).next().unwrap_or_default();
    let start = text.len() - last_word.len();
    let is_allowed_here = |word: &String| start == 0 || !word.starts_with('/');
    let fits = |word: &&String| !last_word.is_empty() && word.starts_with(last_word) && is_allowed_here(word);
    words
        .iter()
        .filter(fits)
        .map(|word| Suggestion {
            value: word.clone(),
            span: Span::new(start, text.len()),
            append_whitespace: true,
            ..Suggestion::default()
        })
        .collect()
}

/// The prompt for a message. While the person searches the history, the default prompt of reedline is shown.
struct ChatPrompt(DefaultPrompt);

impl Prompt for ChatPrompt {
    fn render_prompt_left(&self) -> Cow<'_, str> {
        Cow::Borrowed("")
    }

    fn render_prompt_right(&self) -> Cow<'_, str> {
        Cow::Borrowed("")
    }

    fn render_prompt_indicator(&self, _: PromptEditMode) -> Cow<'_, str> {
        Cow::Borrowed("> ")
    }

    fn render_prompt_multiline_indicator(&self) -> Cow<'_, str> {
        Cow::Borrowed("  ")
    }

    fn render_prompt_history_search_indicator(&self, search: PromptHistorySearch) -> Cow<'_, str> {
        self.0.render_prompt_history_search_indicator(search)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn tab_completes_commands_at_the_start_of_a_line_and_tools_everywhere() {
        let words = ["/tools", "tools_list", "add"].map(str::to_owned);
        let complete = |text: &str| {
            let suggestions = suggestions(&words, text).into_iter();
            let completions = suggestions.map(|suggestion| (suggestion.span.start, suggestion.value));
            completions.collect::<Vec<_>>()
        };
        assert_eq!(complete("/to"), [(0, "/tools".to_owned())]);
        assert_eq!(complete("use\u{3000}too"), [(6, "tools_list".to_owned())]);
        assert_eq!(complete("what is /to"), []);
        assert_eq!(complete(""), []);
    }

    #[cfg(unix)]
    #[test]
    fn history_file_is_private_and_has_a_size_limit() {
        use std::os::unix::fs::PermissionsExt;
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("data/history.txt");
        open_history(&path).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
        file.set_len(HISTORY_BYTES_MAX + 1).unwrap();
        assert!(open_history(&path).unwrap_err().contains("too large"));
        assert!(open_history(directory.path()).is_err());
    }
}
