//! The syntax tree of a script.

/// Commands that run one after the other.
pub(crate) type Script = Vec<List>;

/// Pipelines, each with the condition under which it runs.
pub(crate) type List = Vec<(Condition, Pipeline)>;

/// The condition on the status before a pipeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Condition {
    /// No condition.
    Always,
    /// After `&&`.
    Success,
    /// After `||`.
    Failure,
}

/// Commands that are connected by pipes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pipeline {
    pub(crate) is_negated: bool,
    pub(crate) commands: Vec<Command>,
}

/// A simple command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Command {
    pub(crate) assignments: Vec<(String, Word)>,
    pub(crate) words: Vec<Word>,
    pub(crate) redirects: Vec<Redirect>,
}

/// A redirect of standard input, output or error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Redirect {
    Input(Word),
    /// The text of a here-document.
    Text(Word),
    Output {
        stream: Stream,
        file: Word,
        append: bool,
    },
    /// `2>&1`.
    ErrorToOutput,
    /// `>&2`.
    OutputToError,
}

/// Streams that a redirect writes to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stream {
    Output,
    Error,
    Both,
}

/// A word before its expansion.
pub(crate) type Word = Vec<Part>;

/// A part of a word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) kind: PartKind,
    pub(crate) is_quoted: bool,
}

/// The kind of a part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PartKind {
    Text(String),
    /// A variable, with the text that replaces an empty value.
    Variable(String, Option<String>),
    /// The script of a command substitution.
    Script(String),
}
