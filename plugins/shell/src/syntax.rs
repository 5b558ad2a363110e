//! The syntax tree of a script.

use std::cell::OnceCell;
use std::rc::Rc;

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
#[derive(Debug, Default)]
pub(crate) struct Pipeline {
    pub(crate) is_negated: bool,
    pub(crate) commands: Vec<Command>,
}

/// A command.
#[derive(Debug)]
pub(crate) enum Command {
    Simple(Simple),
    Compound(Compound, Vec<Redirect>),
    /// The definition of a function.
    Function(String, Rc<Command>),
}

/// A simple command.
#[derive(Debug, Default)]
pub(crate) struct Simple {
    pub(crate) assignments: Vec<(String, Word)>,
    pub(crate) words: Vec<Word>,
    pub(crate) redirects: Vec<Redirect>,
}

/// A command that contains scripts.
#[derive(Debug)]
pub(crate) enum Compound {
    /// `{ …; }`
    Group(Script),
    /// `( … )`
    Subshell(Script),
    /// `(( … ))`
    Arithmetic(Word),
    If {
        /// Conditions with their bodies.
        branches: Vec<(Script, Script)>,
        otherwise: Script,
    },
    For {
        name: String,
        /// Without words, the positional parameters.
        words: Option<Vec<Word>>,
        body: Script,
    },
    /// `while` and `until`.
    Loop {
        is_until: bool,
        condition: Script,
        body: Script,
    },
    Case {
        subject: Word,
        arms: Vec<(Vec<Word>, Script)>,
    },
}

/// A redirect of standard input, output or error.
#[derive(Debug)]
pub(crate) enum Redirect {
    Input(Word),
    /// A here-document.
    Document(Document),
    /// The text after `<<<`.
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

/// The text of a here-document, which follows the line of its operator.
pub(crate) type Document = Rc<OnceCell<Word>>;

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
#[derive(Clone, Debug)]
pub(crate) struct Part {
    pub(crate) kind: PartKind,
    pub(crate) is_quoted: bool,
}

impl Part {
    /// Creates a part with a text without expansions.
    pub(crate) fn text(text: String, is_quoted: bool) -> Self {
        let kind = PartKind::Text(text);
        Self { kind, is_quoted }
    }
}

/// The kind of a part.
#[derive(Clone, Debug)]
pub(crate) enum PartKind {
    Text(String),
    /// A variable, a positional parameter or a special one.
    Parameter(String, Option<Operation>),
    /// A command substitution.
    Script(Rc<Script>),
    /// The expression in `$(( … ))`.
    Arithmetic(Word),
}

/// The operation of a parameter expansion in braces.
#[derive(Clone, Debug)]
pub(crate) enum Operation {
    /// `${#name}`
    Length,
    /// `${name:-word}` and its relatives.
    Substitute {
        /// Whether an empty value counts as missing, which `:` requests.
        covers_empty: bool,
        kind: Substitute,
        word: Word,
    },
    /// `${name%pattern}` and its relatives.
    Trim {
        is_suffix: bool,
        is_longest: bool,
        pattern: Word,
    },
    /// `${name/pattern/text}` and `${name//pattern/text}`.
    Replace {
        is_everywhere: bool,
        pattern: Word,
        text: Word,
    },
    /// `${name:offset:length}`
    Slice { offset: Word, length: Option<Word> },
}

/// The reaction to a missing parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Substitute {
    /// `-`: the word is used.
    Default,
    /// `=`: the word is assigned and used.
    Assign,
    /// `?`: the script ends.
    Fail,
    /// `+`: the word is used if the parameter is *not* missing.
    Alternative,
}

/// Returns the text of a word, without its quotes. `None` for a word with expansions.
pub(crate) fn literal(word: &Word) -> Option<String> {
    word.iter()
        .map(|part| match &part.kind {
            PartKind::Text(text) => Some(text.as_str()),
            _ => None,
        })
        .collect()
}

/// Returns whether a text can be the name of a variable or function.
pub(crate) fn is_name(text: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.chars().all(is_part) && text.starts_with(|c: char| is_part(c) && !c.is_ascii_digit())
}
