//! Tools that list and read the prompts of a server.

use std::sync::Arc;

use rmcp::model::{
    ClientRequest, GetPromptRequest, GetPromptRequestParams, ListPromptsRequest, PaginatedRequestParams, ServerResult,
};
use serde_json::{Map, Value, json};

use super::content::{ResultContent, one_line};
use super::errors::failed_call_result;
use super::mcp_tool::{send_request, with_connection};
use super::page::{add_continuation, page_parameters, page_schema};
use crate::session::{RequestError, SessionPool};
use toolwit_core::limits::MCP_LISTED_MAX;
use toolwit_core::{Arguments, Error, NativeTool, Tool, ToolContext, ToolDefinition, ToolError, ToolId, ToolResult};

/// The maximum length of a description in the list for the model, in characters.
const LISTED_DESCRIPTION_CHARS_MAX: usize = 200;

/// Returns the tools that list and read the prompts of a server. The model receives a prompt as the result of a call,
/// because the text of an untrusted server must not become an instruction.
///
/// # Errors
/// If a schema in this function is invalid. The schemas are constant and valid, so this does not occur.
pub(crate) fn prompt_tools(pool: &Arc<SessionPool>) -> Result<Vec<Arc<dyn Tool>>, Error> {
    let server = &pool.config.name;
    let id = |function: &str| ToolId::from_text(&format!("mcp:{server}/prompts#{function}"));
    let list = ToolDefinition::new(
        id("list"),
        format!("{server}_list_prompts"),
        format!("Lists the prompts of `{server}`: prepared texts for recurring tasks, with their arguments."),
        page_schema(),
    );
    let get = ToolDefinition::new(
        id("get"),
        format!("{server}_get_prompt"),
        format!("Returns a prompt of `{server}`, with the given arguments filled in."),
        json!({
            "type": "object",
            "properties": {
                "name": {"type": "string", "description": "The name of the prompt, from the list."},
                "arguments": {"type": "object", "description": "The arguments of the prompt.", "additionalProperties": {"type": "string"}},
            },
            "required": ["name"],
            "additionalProperties": false,
        }),
    );
    let (list_pool, list_name) = (pool.clone(), Arc::<str>::from(list.name()));
    let list = NativeTool::from_definition(list, move |arguments, context| {
        let (pool, tool) = (list_pool.clone(), list_name.clone());
        async move { list_prompts(&pool, &tool, page_parameters(&arguments), &context).await }
    })?;
    let (get_pool, get_name) = (pool.clone(), Arc::<str>::from(get.name()));
    let get = NativeTool::from_definition(get, move |arguments, context| {
        let (pool, tool) = (get_pool.clone(), get_name.clone());
        async move { get_prompt(&pool, &tool, arguments, &context).await }
    })?;
    Ok(vec![Arc::new(list), Arc::new(get)])
}

async fn list_prompts(
    pool: &Arc<SessionPool>,
    tool: &str,
    page: PaginatedRequestParams,
    context: &ToolContext,
) -> Result<ToolResult, ToolError> {
    let pending_answer = with_connection(pool, tool, context, move |connection, options| {
        let request = ListPromptsRequest::with_param(page.clone());
        send_request(connection, ClientRequest::ListPromptsRequest(request), options)
    });
    let (answer, connection, _) = pending_answer.await?;
    let list = match answer {
        Ok(ServerResult::ListPromptsResult(list)) => list,
        Ok(_) => return failed_call_result(RequestError::Unexpected, tool),
        Err(error) => return failed_call_result(error, tool),
    };
    let redaction = connection.redaction();
    let has_omissions = list.prompts.len() > MCP_LISTED_MAX;
    let items = list.prompts.into_iter().take(MCP_LISTED_MAX).map(|prompt| {
        let arguments = prompt.arguments.unwrap_or_default().into_iter().map(|argument| {
            let description = one_line(
                &argument.description.unwrap_or_default(),
                LISTED_DESCRIPTION_CHARS_MAX,
                redaction,
            );
            json!({"name": argument.name, "description": description, "required": argument.required.unwrap_or(false)})
        });
        let description = one_line(
            &prompt.description.unwrap_or_default(),
            LISTED_DESCRIPTION_CHARS_MAX,
            redaction,
        );
        json!({"name": prompt.name, "description": description, "arguments": arguments.collect::<Vec<_>>()})
    });
    let mut value = json!({"prompts": items.collect::<Vec<_>>()});
    add_continuation(&mut value, list.next_cursor, has_omissions);
    ResultContent::new(redaction).into_result(Some(value), false)
}

async fn get_prompt(
    pool: &Arc<SessionPool>,
    tool: &str,
    arguments: Arguments,
    context: &ToolContext,
) -> Result<ToolResult, ToolError> {
    let name = arguments.get("name").and_then(Value::as_str).unwrap_or_default();
    let values: Map<String, Value> = arguments
        .get("arguments")
        .and_then(Value::as_object)
        .cloned()
        .unwrap_or_default();
    let parameters = GetPromptRequestParams::new(name).with_arguments(values);
    let pending_answer = with_connection(pool, tool, context, move |connection, options| {
        let request = GetPromptRequest::new(parameters.clone());
        send_request(connection, ClientRequest::GetPromptRequest(request), options)
    });
    let (answer, connection, _) = pending_answer.await?;
    match answer {
        Ok(ServerResult::GetPromptResult(prompt)) => {
            let mut content = ResultContent::new(connection.redaction());
            prompt
                .messages
                .into_iter()
                .for_each(|message| content.add(message.content));
            content.into_result(None, false)
        }
        Ok(_) => failed_call_result(RequestError::Unexpected, tool),
        Err(error) => failed_call_result(error, tool),
    }
}
