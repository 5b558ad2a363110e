//! Requests of the OpenAI responses API.

use serde_json::{Map, Value, json};

use super::history::input_items;
use super::namespaces::Namespaces;
use super::reader::ItemReader;
use crate::client::{ApiProfile, Dialect, is_openai_reasoning_model};
use crate::http::{KeyHeader, ResponseMode};
use crate::schema::{SchemaSubset, strict_schema, without_added_nulls};
use toolwit_agent::model::{ChatRequest, DeclaredTool, ToolChoice, ToolDelivery};
use toolwit_core::ToolCall;

/// The smallest value of `max_output_tokens` that the API accepts.
const MAX_TOKENS_MIN: u32 = 16;

/// The OpenAI responses API.
#[derive(Clone, Debug, Default)]
pub struct Responses(());

impl Dialect for Responses {
    const PROFILE: ApiProfile = ApiProfile {
        name: "responses",
        base_url: "https://api.openai.com/v1",
        base_url_variables: &["OPENAI_BASE_URL"],
        key_variables: &["OPENAI_API_KEY"],
        key_header: KeyHeader::Bearer,
        headers: &[],
    };

    const DEFERS_TOOLS: bool = true;

    type Reader = ItemReader;

    fn with_defaults_for(self, _host: &str, _model: &str) -> Self {
        self
    }

    fn path(_model: &str, _mode: ResponseMode) -> (String, Option<(&'static str, &'static str)>) {
        ("responses".to_owned(), None)
    }

    fn body(&self, model: &str, request: ChatRequest<'_>, block_issuer: &str, mode: ResponseMode) -> Value {
        let options = request.options;
        let namespaces = Namespaces::of(&request);
        let mut body = Map::new();
        let mut set = |key: &str, value: Value| body.insert(key.to_owned(), value);
        set("model", json!(model));
        if !request.tools.is_empty() {
            set("tools", tools(&request, &namespaces));
            match options.tool_choice {
                ToolChoice::Auto => None,
                ToolChoice::None => set("tool_choice", json!("none")),
                ToolChoice::Required => set("tool_choice", json!("required")),
            };
        }
        set("input", json!(input_items(request.messages, block_issuer, &namespaces)));
        if let Some(tokens) = options.max_tokens {
            set("max_output_tokens", json!(tokens.max(MAX_TOKENS_MIN)));
        }
        if let Some(temperature) = options.temperature {
            set("temperature", json!(temperature));
        }
        if let Some(effort) = options.reasoning_effort {
            set("reasoning", json!({"effort": effort.as_str()}));
        }
        if let Some(schema) = options.answer_schema.as_ref().and_then(strict_schema) {
            let format = json!({"type": "json_schema", "name": "answer", "strict": true, "schema": schema});
            set("text", json!({"format": format}));
        }
        // The provider stores nothing. Therefore, each request contains the history, with the reasoning in encrypted form.
        set("store", json!(false));
        // Other models refuse a request for encrypted reasoning.
        if is_openai_reasoning_model(model) {
            set("include", json!(["reasoning.encrypted_content"]));
        }
        set("stream", json!(mode == ResponseMode::Streaming));
        Value::Object(body)
    }

    fn reader(&self) -> ItemReader {
        ItemReader::default()
    }

    fn restore_arguments(&self, call: &mut ToolCall, tool: &DeclaredTool) {
        if let Some(arguments) = without_added_nulls(&tool.definition.input_schema, &call.arguments) {
            call.arguments = arguments;
        }
    }

    fn restore_answer(&self, answer: &str, schema: &Value) -> Option<String> {
        without_added_nulls(schema, answer)
    }
}

/// Returns the declarations of the tools. With [`ToolDelivery::Native`], all tools are deferred and the provider's search tool is
/// added: the model finds the tools of a namespace by the description of the namespace.
fn tools(request: &ChatRequest<'_>, namespaces: &Namespaces<'_>) -> Value {
    if request.delivery != ToolDelivery::Native {
        return request.tools.iter().map(function_tool).collect();
    }
    let deferred_tools = namespaces.group(request.tools, |declared| {
        let mut tool = function_tool(declared);
        tool["defer_loading"] = json!(true);
        // Only the model may call the tool. The API can also let a program call tools: the model writes the program, and the
        // provider executes it. The host could not see how such a program uses the results.
        tool["allowed_callers"] = json!(["direct"]);
        tool
    });
    std::iter::once(json!({"type": "tool_search"}))
        .chain(deferred_tools)
        .collect()
}

/// Returns a tool in the format of the API. The field `strict` is always set, because the API would otherwise convert the schema
/// itself.
fn function_tool(tool: &DeclaredTool) -> Value {
    let schema = &tool.definition.input_schema;
    let strict = strict_schema(schema);
    json!({
        "type": "function",
        "name": tool.name.as_str(),
        "description": tool.definition.description,
        "strict": strict.is_some(),
        "parameters": strict.unwrap_or_else(|| SchemaSubset::General.convert(schema)),
    })
}
