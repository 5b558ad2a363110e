//! The name of the field that limits the tokens of a response.

/// The request field that limits the tokens of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MaxTokensField {
    /// `max_tokens`, which servers other than OpenAI's accept.
    MaxTokens,
    /// `max_completion_tokens`, which OpenAI's newer models require.
    MaxCompletionTokens,
}
