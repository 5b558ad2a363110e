//! The part of the system prompt that describes the tools and how to call them.

use std::fmt::Write;

use super::call_text::{CALL_END, CALL_START};
use super::messages::PromptFormat;
use toolwit_agent::model::{ChatRequest, ToolChoice};

/// Describes the tools of a request and the format of its response.
pub(super) fn instructions(request: &ChatRequest<'_>, format: PromptFormat) -> String {
    let mut text = String::from("You can call these tools:\n");
    for tool in request.tools {
        let definition = &tool.definition;
        let description = definition.description.trim();
        let schema = &definition.input_schema;
        let _ = writeln!(text, "\n- {}: {description}\n  arguments: {schema}", tool.name);
    }
    text.push('\n');
    text.push_str(&match format {
        PromptFormat::Json => json_format(request),
        PromptFormat::Text => text_format(request.options.tool_choice),
    });
    text
}

fn json_format(request: &ChatRequest<'_>) -> String {
    let call = r#"{"tool_calls": [{"name": TOOL, "arguments": {...}}]}"#;
    let answer = match &request.options.answer_schema {
        Some(schema) => format!("{{\"answer\": VALUE}}, where VALUE fits this JSON Schema: {schema}"),
        None => r#"{"answer": TEXT}"#.to_owned(),
    };
    let calls = format!("To call tools, write {call}. The next message has their results.");
    let answers = format!("To answer the user, write {answer}.");
    let forms = match request.options.tool_choice {
        ToolChoice::Auto => format!("{calls} {answers}"),
        ToolChoice::Required => calls,
        ToolChoice::None => answers,
    };
    format!("Respond with one JSON object and nothing else. {forms}")
}

fn text_format(choice: ToolChoice) -> String {
    let form = format!(
        "To call a tool, end your response with a line of this form for each call, and write nothing after it:\n\
         {CALL_START}{{\"name\": TOOL, \"arguments\": {{...}}}}{CALL_END}\n\
         The next message has the results."
    );
    match choice {
        ToolChoice::Auto => format!("{form} To answer the user, write text without a call."),
        ToolChoice::Required => format!("{form} Call a tool now."),
        ToolChoice::None => "Do not call a tool now; answer the user.".to_owned(),
    }
}
