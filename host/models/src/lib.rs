//! Clients of language-model providers for the Toolwit agent loop.
//!
//! Each client is a [`ModelClient`] for one API. Most providers and local servers offer the chat-completions API.
//! Its client is [`OpenAi`]. A [`ModelSpec`] names a model (`openai:gpt-5`), and [`connect`] creates its client.
//!
//! | module | contents |
//! |---|---|
//! | `http` | POST requests, limited in time and size; keys, failures and retries |
//! | `decode` | conversion of a response body to JSON: the body is a stream of server-sent events or one JSON document |
//! | `assembly` | the assembly of a response from its pieces |
//! | `schema` | conversion of tool schemas to the subsets that providers accept |
//! | `client` | the client that all APIs share |
//! | `chat`, `responses`, `anthropic`, `gemini` | the request and response formats, one API each |
//! | `tool_prompt` | tool calling through the prompt, for models or servers without native tool calls |
//! | `provider`, `model_spec` | providers, and the names of their models |
//! | `environment`, `ollama` | environment variables; the base URL of Ollama |

mod anthropic;
mod assembly;
mod chat;
mod client;
mod decode;
mod environment;
mod gemini;
mod http;
mod model_spec;
mod ollama;
mod provider;
mod responses;
mod schema;
mod tool_prompt;

pub use anthropic::{Anthropic, Messages};
pub use chat::{AnswerFormat, ChatCompletions, MaxTokensField, OpenAi, OpenAiBuilder, OpenAiHistory};
pub use client::{ClientBuilder, ModelClient};
pub use gemini::{Gemini, GenerateContent};
pub use http::{KeyHeader, ModelProxy, PlainHttp, ResponseMode, RetryPolicy, Secret};
pub use model_spec::{ModelSpec, connect};
pub use responses::{OpenAiResponses, Responses};
pub use tool_prompt::{PromptedTools, ToolCallFormat};

#[cfg(test)]
mod alternation_tests;
#[cfg(test)]
mod deferral_tests;
#[cfg(test)]
mod option_tests;
#[cfg(test)]
mod tests;
