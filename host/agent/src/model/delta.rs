//! Pieces of a response while it is produced.

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
        /// The name of the tool as far as it is known.
        name: &'a str,
        /// The piece of the arguments; may be empty.
        arguments: &'a str,
    },
}
