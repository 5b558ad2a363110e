//! Sends one request with one tool to a provider and prints the response as one line of JSON.
//!
//! ```text
//! cargo run -p toolwit-models --example model_once -- --provider anthropic --base-url http://127.0.0.1:8000 --stream
//! ```
//!
//! | key | holds |
//! |---|---|
//! | `text` | the text, without a refusal that the provider separates from it |
//! | `reasoning` | the readable reasoning |
//! | `tool_calls` | `id`, `name` and `arguments` of each call; the arguments are JSON text |
//! | `stop_reason` | the provider's own word: `finish_reason`, `stop_reason` or `finishReason`; of the responses API the reason of an incomplete response, else its status |
//! | `usage` | token counts as the provider's own client reports them: the input of Anthropic is without cached tokens, the output of Gemini without thoughts |
//! | `error` | the error, or `null`; the other keys then have what arrived before it |
//!
//! `--required-call json` requires a call, in JSON that the server constrains, for models without tool calling.
//!
//! The key comes from the provider's variable, such as `OPENAI_API_KEY`; a server on this machine needs none.

use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use toolwit_agent::model::{
    ChatDelta, ChatModel, ChatOptions, ChatRequest, ChatResponse, DeclaredTool, ModelError, TokenUsage, ToolChoice,
};
use toolwit_core::{Message, ToolDefinition, ToolId, ToolName};
use toolwit_models::{Anthropic, Gemini, OpenAi, OpenAiResponses, ResponseMode, Secret, ToolCallFormat};

const USAGE: &str = "usage: model_once --provider openai|responses|anthropic|gemini --base-url URL [--model NAME] [--stream] \
     [--required-call json|text]";

struct Options {
    provider: String,
    base_url: String,
    model: String,
    mode: ResponseMode,
    /// The format of the call that is required.
    required_call: Option<ToolCallFormat>,
}

/// The response as far as it has arrived.
#[derive(Default)]
struct Partial {
    text: String,
    reasoning: String,
    calls: Vec<(String, String)>,
}

#[tokio::main(flavor = "current_thread")]
#[expect(clippy::print_stdout, clippy::print_stderr, reason = "a command prints its result")]
async fn main() -> ExitCode {
    let Some(options) = options(std::env::args().skip(1)) else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    let report = match model(&options) {
        Ok(model) => run(&*model, &options).await,
        Err(error) => report(&Partial::default(), &error),
    };
    println!("{report}");
    ExitCode::SUCCESS
}

fn options(mut arguments: impl Iterator<Item = String>) -> Option<Options> {
    let mut options = Options {
        provider: String::new(),
        base_url: String::new(),
        model: "test-model".to_owned(),
        mode: ResponseMode::Complete,
        required_call: None,
    };
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--provider" => options.provider = arguments.next()?,
            "--base-url" => options.base_url = arguments.next()?,
            "--model" => options.model = arguments.next()?,
            "--required-call" => options.required_call = Some(format(&arguments.next()?)?),
            "--stream" => options.mode = ResponseMode::Streaming,
            _ => return None,
        }
    }
    let is_complete = !options.provider.is_empty() && !options.base_url.is_empty();
    is_complete.then_some(options)
}

fn format(name: &str) -> Option<ToolCallFormat> {
    match name {
        "json" => Some(ToolCallFormat::Json),
        "text" => Some(ToolCallFormat::Text),
        _ => None,
    }
}

/// Creates the client. The environment is read here, as an embedding program would do it.
fn model(options: &Options) -> Result<Arc<dyn ChatModel>, ModelError> {
    macro_rules! client {
        ($client:ty, $variable:literal) => {{
            let builder = <$client>::builder(options.model.as_str())
                .base_url(options.base_url.as_str())
                .response_mode(options.mode);
            #[expect(clippy::disallowed_methods, reason = "an example is a program of its own")]
            let builder = match std::env::var($variable) {
                Ok(key) => builder.key(Secret::new(key)),
                Err(_) => builder,
            };
            Ok(options
                .required_call
                .unwrap_or_default()
                .apply(Arc::new(builder.build()?)))
        }};
    }
    match options.provider.as_str() {
        "openai" => client!(OpenAi, "OPENAI_API_KEY"),
        "responses" => client!(OpenAiResponses, "OPENAI_API_KEY"),
        "anthropic" => client!(Anthropic, "ANTHROPIC_API_KEY"),
        "gemini" => client!(Gemini, "GEMINI_API_KEY"),
        other => Err(ModelError::Configuration {
            message: format!("the provider `{other}` is unknown"),
            suggestion: USAGE.to_owned(),
        }),
    }
}

async fn run(model: &dyn ChatModel, request: &Options) -> Value {
    let Some(name) = ToolName::parse("get_weather") else {
        return Value::Null;
    };
    let schema = json!({
        "type": "object",
        "properties": {"city": {"type": "string", "description": "The name of the city."}},
        "required": ["city"],
    });
    let definition = ToolDefinition::new(
        ToolId::native("get_weather"),
        "get_weather",
        "Returns the weather.",
        schema,
    );
    let tools = [DeclaredTool {
        name,
        definition: Arc::new(definition),
    }];
    let messages = [Message::user("What is the weather in Paris?")];
    let (mut options, cancel) = (ChatOptions::default(), CancellationToken::new());
    if request.required_call.is_some() {
        options.tool_choice = ToolChoice::Required;
    }
    let provider = &request.provider;
    let partial = Mutex::new(Partial::default());
    let listener = |delta: ChatDelta<'_>| partial.lock().unwrap_or_else(PoisonError::into_inner).add(delta);
    let request = ChatRequest::new(&messages, &tools, &options, &cancel).with_listener(&listener);
    match model.chat(request).await {
        Ok(response) => complete_report(&response, provider),
        Err(error) => report(&partial.lock().unwrap_or_else(PoisonError::into_inner), &error),
    }
}

impl Partial {
    fn add(&mut self, delta: ChatDelta<'_>) {
        match delta {
            ChatDelta::Text(text) => self.text.push_str(text),
            ChatDelta::Reasoning(text) => self.reasoning.push_str(text),
            ChatDelta::Call { index, name, arguments } => {
                if self.calls.len() <= index {
                    self.calls.resize_with(index + 1, Default::default);
                }
                name.clone_into(&mut self.calls[index].0);
                self.calls[index].1.push_str(arguments);
            }
            _ => {}
        }
    }
}

fn complete_report(response: &ChatResponse, provider: &str) -> Value {
    let calls = response.tool_calls.iter();
    let calls = calls.map(|call| json!({"id": call.id, "name": call.name, "arguments": call.arguments}));
    json!({
        "text": response.content,
        "reasoning": response.reasoning,
        "tool_calls": calls.collect::<Vec<_>>(),
        "stop_reason": response.stop_reason,
        "usage": usage(&response.usage, provider),
        "error": null,
    })
}

fn report(partial: &Partial, error: &ModelError) -> Value {
    let calls = partial.calls.iter();
    let calls = calls.map(|(name, arguments)| json!({"id": "", "name": name, "arguments": arguments}));
    json!({
        "text": partial.text,
        "reasoning": partial.reasoning,
        "tool_calls": calls.collect::<Vec<_>>(),
        "stop_reason": null,
        "usage": null,
        "error": error.to_string(),
    })
}

/// Returns the counts as the provider's own client reports them.
fn usage(usage: &TokenUsage, provider: &str) -> Value {
    let (mut input, mut output) = (usage.input_tokens, usage.output_tokens);
    match provider {
        "anthropic" => input = input.saturating_sub(usage.cached_tokens.saturating_add(usage.cache_write_tokens)),
        "gemini" => output = output.saturating_sub(usage.reasoning_tokens),
        _ => {}
    }
    let counts = [
        ("input_tokens", input),
        ("output_tokens", output),
        ("cached_tokens", usage.cached_tokens),
        ("cache_write_tokens", usage.cache_write_tokens),
        ("reasoning_tokens", usage.reasoning_tokens),
    ];
    let counts = counts.into_iter().map(|(name, count)| (name.to_owned(), json!(count)));
    Value::Object(Map::from_iter(counts))
}
