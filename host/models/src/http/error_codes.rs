//! The codes and phrases by which the errors of providers are classified.

/// Error codes of transient failures. They are needed for providers that send errors with HTTP status 200. They are compared
/// without case, underscores, hyphens and spaces.
pub(super) const TRANSIENT_CODES: [&str; 23] = [
    "apierror",
    "deadlineexceeded",
    "engineoverloaded",
    "engineoverloadederror",
    "internal",
    "internalerror",
    "internalservererror",
    "overloaded",
    "overloadederror",
    "providererror",
    "ratelimited",
    "ratelimiterror",
    "ratelimitexceeded",
    "resourceexhausted",
    "servererror",
    "serviceunavailable",
    "serviceunavailableerror",
    "temporarilyunavailable",
    "timeout",
    "timeouterror",
    "toomanyrequests",
    "unavailable",
    "upstreamerror",
];

/// Error codes of permanent failures. They are needed for providers that send them with status 429, which otherwise stands for a
/// rate limit. They are compared without case and underscores.
pub(super) const PERMANENT_CODES: [&str; 2] = ["billinghardlimitreached", "insufficientquota"];

/// Error codes for requests that do not fit into the context window of the model.
pub(super) const CONTEXT_CODES: [&str; 3] = [
    "context_length_exceeded",
    "exceed_context_size_error",
    "model_max_prompt_tokens_exceeded",
];

/// Lower-case phrases in the messages of errors for requests that do not fit into the context window. They are needed for
/// providers that send the same code for all invalid requests. The phrases are, in this order, from Anthropic; from vLLM, Mistral,
/// DeepSeek and OpenRouter; from Anthropic with thinking; from Gemini; and from llama.cpp.
pub(super) const CONTEXT_PHRASES: [&str; 5] = [
    "prompt is too long",
    "maximum context length",
    "exceed context limit",
    "exceeds the maximum number of tokens allowed",
    "exceeds the available context size",
];

/// Lower-case phrases in the messages of transient failures that have no code and no status, such as a text within a stream.
pub(super) const TRANSIENT_PHRASES: [&str; 8] = [
    "connection reset",
    "disconnected",
    "internal server error",
    "overloaded",
    "rate limit",
    "temporarily",
    "timed out",
    "try again",
];
