//! Options for the responses of a model.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::call_arguments::read_text;
use super::limits::deserialize_in_range;
use toolwit::agent::AnswerSchema;
use toolwit::limits::SCHEMA_BYTES_MAX;
use toolwit::model::{ChatOptions, ReasoningEffort};
use toolwit::models::ToolCallFormat;
use toolwit::{Error, ErrorKind, Phase};

/// Options for the responses of a model.
#[derive(Clone, Debug, Default, clap::Args, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[command(next_help_heading = "Model")]
pub(crate) struct ModelOptionFlags {
    /// How much the model reasons before it answers
    #[arg(long, value_name = "LEVEL")]
    effort: Option<EffortFlag>,
    /// Maximum number of tokens of a response, including its reasoning [default: 8192, or 32768 with reasoning]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    #[serde(deserialize_with = "deserialize_in_range::<_, _, 1, { u64::MAX }>")]
    max_tokens: Option<u32>,
    /// Sampling temperature, from 0 to 2 [default: that of the provider]
    #[arg(long, value_name = "T")]
    temperature: Option<f64>,
    /// Format of tool calls: native to the API, or JSON or text for models without native calls
    #[arg(long, value_name = "FORMAT")]
    tool_calls: Option<ToolCallFlag>,
}

/// A format of tool calls.
#[derive(Clone, Copy, Debug, clap::ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ToolCallFlag {
    Native,
    Json,
    Text,
}

/// A level of reasoning.
#[derive(Clone, Copy, Debug, clap::ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum EffortFlag {
    None,
    Minimal,
    Low,
    Medium,
    High,
}

impl From<EffortFlag> for ReasoningEffort {
    fn from(flag: EffortFlag) -> Self {
        match flag {
            EffortFlag::None => Self::None,
            EffortFlag::Minimal => Self::Minimal,
            EffortFlag::Low => Self::Low,
            EffortFlag::Medium => Self::Medium,
            EffortFlag::High => Self::High,
        }
    }
}

impl ModelOptionFlags {
    /// Selects the format of tool calls.
    pub(crate) fn with_tool_calls(mut self, flag: Option<ToolCallFlag>) -> Self {
        self.tool_calls = flag;
        self
    }

    /// Returns the name of the format of tool calls, if it is set.
    pub(crate) fn tool_calls_name(&self) -> Option<String> {
        let value = self.tool_calls?.to_possible_value()?;
        Some(value.get_name().to_owned())
    }

    /// Returns the format in which the model calls tools, if it is set.
    pub(crate) fn tool_calls(&self) -> Option<ToolCallFormat> {
        self.tool_calls.map(|flag| match flag {
            ToolCallFlag::Native => ToolCallFormat::Native,
            ToolCallFlag::Json => ToolCallFormat::Json,
            ToolCallFlag::Text => ToolCallFormat::Text,
        })
    }

    /// Returns the options of a request to the model.
    ///
    /// # Errors
    /// If the temperature is not between 0 and 2.
    pub(crate) fn options(&self) -> Result<ChatOptions, Error> {
        if self
            .temperature
            .is_some_and(|temperature| !(0.0..=2.0).contains(&temperature))
        {
            let message = "`--temperature` must be between 0 and 2";
            return Err(Error::new(ErrorKind::Configuration, Phase::Model, message));
        }
        Ok(ChatOptions {
            max_tokens: self.max_tokens,
            temperature: self.temperature,
            reasoning_effort: self.effort.map(ReasoningEffort::from),
            ..ChatOptions::default()
        })
    }
}

/// Reads the JSON Schema of an answer from a file, or from standard input (`-`).
pub(crate) async fn read_answer_schema(file: String, cancel: &CancellationToken) -> Result<AnswerSchema, Error> {
    let text = read_text(file.clone(), SCHEMA_BYTES_MAX as u64, cancel).await?;
    let schema: Value = serde_json::from_str(&text).map_err(|error| {
        let message = format!("the answer schema `{file}` is not JSON: {error}");
        Error::new(ErrorKind::Configuration, Phase::Registry, message).with_source(error)
    })?;
    AnswerSchema::new(schema)
}
