//! Pieces of a response that a model streams.

/// A piece of a response, in the order in which the model produces it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ChatDelta<'a> {
    /// A piece of the text.
    Text(&'a str),
    /// A piece of the readable reasoning.
    Reasoning(&'a str),
    /// A piece of a tool call.
    Call {
        /// The position of the call in the response, from 0.
        index: usize,
        /// The name of the tool; empty or incomplete until the model has produced the full name.
        name: &'a str,
        /// A piece of the arguments; may be empty.
        arguments: &'a str,
    },
}
