//! Tools that ask the model of the client and for its directories, and that ask several questions at once. A plugin can ask for one form
//! after another: see the guest `showcase`.

use std::sync::Arc;

use serde_json::{Value, json};
use toolwit::tool::{ToolError, ToolResult};
use toolwit::{Arguments, Error, ErrorKind, NativeTool, Phase, Tool, ToolContext};
use toolwit_mcp_server::{ClientRequest, McpClient};

use crate::forms;

type Questions = Vec<(&'static str, ClientRequest)>;

/// Returns the questions for some arguments.
type Ask = fn(&Arguments) -> Questions;

fn client(context: &ToolContext) -> Result<McpClient, ToolError> {
    McpClient::of(context).ok_or_else(|| {
        let message = "the tool needs an MCP client";
        ToolError::Model(Error::new(ErrorKind::ToolUnavailable, Phase::Execute, message))
    })
}

fn sample(prompt: &str, tokens_max: u32) -> ClientRequest {
    let prompt = prompt.to_owned();
    ClientRequest::Sample { prompt, tokens_max }
}

/// A tool that asks once, and returns the answers.
fn asking(name: &str, questions: Ask) -> Result<NativeTool, Error> {
    let text = json!({"type": "string"});
    let schema = match name {
        "test_sampling" => json!({"type": "object", "properties": {"prompt": text}, "required": ["prompt"]}),
        _ => json!({"type": "object", "properties": {}}),
    };
    NativeTool::new(name, "Asks the client.", schema, move |arguments, context| async move {
        let answers = client(&context)?.ask(questions(&arguments)).await?;
        Ok(ToolResult::text(format!("state-ok: {}", json!(answers))))
    })
}

fn text<'a>(arguments: &'a Arguments, name: &str) -> &'a str {
    arguments.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn capable() -> Result<NativeTool, Error> {
    let schema = json!({"type": "object", "properties": {}});
    let name = "test_input_required_result_capabilities";
    NativeTool::new(
        name,
        "Asks what the client can answer.",
        schema,
        |_, context| async move {
            let client = client(&context)?;
            let questions = [
                ("form", forms::field("Your name?", "name", "string")),
                ("sample", sample("Say hello", 50)),
            ];
            let answered = questions
                .into_iter()
                .filter(|(_, question)| client.can_answer(question));
            let answers = client.ask(answered).await?;
            Ok(ToolResult::text(json!(answers).to_string()))
        },
    )
}

/// Returns all tools.
pub(crate) fn tools() -> Result<Vec<Arc<dyn Tool>>, Error> {
    let asked: [(&str, Ask); 4] = [
        ("test_sampling", |arguments| {
            vec![("sample", sample(text(arguments, "prompt"), 100))]
        }),
        ("test_missing_capability", |_| vec![("sample", sample("Say hello", 50))]),
        ("test_input_required_result_sampling", |_| {
            vec![("capital_question", sample("What is the capital of France?", 100))]
        }),
        ("test_input_required_result_list_roots", |_| {
            vec![("client_roots", ClientRequest::Roots)]
        }),
    ];
    let several = asking("test_input_required_result_multiple_inputs", |_| {
        vec![
            ("user_name", forms::field("What is your name?", "name", "string")),
            ("greeting", sample("Generate a greeting", 50)),
            ("client_roots", ClientRequest::Roots),
        ]
    });
    let single = asked.into_iter().map(|(name, questions)| asking(name, questions));
    let tools = single.chain([several, capable()]);
    tools.map(|tool| Ok(Arc::new(tool?) as Arc<dyn Tool>)).collect()
}
