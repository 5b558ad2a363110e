//! Tools that list and read the resources of a server.

use std::sync::Arc;

use futures::FutureExt;
use rmcp::model::{
    ClientRequest, ListResourceTemplatesRequest, ListResourcesRequest, PaginatedRequestParams, ReadResourceRequest,
    ReadResourceRequestParams, ServerResult,
};
use serde_json::{Value, json};

use super::content::{ResultContent, one_line};
use super::errors::failed_call_result;
use super::mcp_tool::{send_request, with_connection};
use super::page::{add_continuation, page_parameters, page_schema};
use crate::session::{Connection, RequestError, RequestOptions, SessionPool};
use toolwit_core::limits::MCP_LISTED_MAX;
use toolwit_core::{Error, NativeTool, Tool, ToolContext, ToolDefinition, ToolError, ToolId, ToolResult};

/// The maximum length of a description in the list for the model, in characters.
const LISTED_DESCRIPTION_CHARS_MAX: usize = 200;

/// Returns the tools that list and read the resources of a server.
///
/// # Errors
/// If a schema in this function is invalid. The schemas are constant and valid, so this does not occur.
pub(crate) fn resource_tools(pool: &Arc<SessionPool>) -> Result<Vec<Arc<dyn Tool>>, Error> {
    let server = &pool.config.name;
    let id = |function: &str| ToolId::from_text(&format!("mcp:{server}/resources#{function}"));
    let list = ToolDefinition::new(
        id("list"),
        format!("{server}_list_resources"),
        format!("Lists the resources of `{server}`: files, records and other things to read, each with its URI."),
        page_schema(),
    );
    let read = ToolDefinition::new(
        id("read"),
        format!("{server}_read_resource"),
        format!("Reads a resource of `{server}` by its URI."),
        json!({
            "type": "object",
            "properties": {"uri": {"type": "string", "description": "The URI of the resource, from the list."}},
            "required": ["uri"],
            "additionalProperties": false,
        }),
    );
    let (list_pool, list_name) = (pool.clone(), Arc::<str>::from(list.name()));
    let list = NativeTool::from_definition(list, move |arguments, context| {
        let (pool, tool) = (list_pool.clone(), list_name.clone());
        async move { list_resources(&pool, &tool, page_parameters(&arguments), &context).await }
    })?;
    let (read_pool, read_name) = (pool.clone(), Arc::<str>::from(read.name()));
    let read = NativeTool::from_definition(read, move |arguments, context| {
        let (pool, tool) = (read_pool.clone(), read_name.clone());
        async move {
            let uri = arguments.get("uri").and_then(Value::as_str).unwrap_or_default();
            read_resource(&pool, &tool, uri, &context).await
        }
    })?;
    Ok(vec![Arc::new(list), Arc::new(read)])
}

async fn list_resources(
    pool: &Arc<SessionPool>,
    tool: &str,
    page: PaginatedRequestParams,
    context: &ToolContext,
) -> Result<ToolResult, ToolError> {
    let pending_answer = with_connection(pool, tool, context, move |connection, options| {
        request_lists(connection, options, page.clone()).boxed()
    });
    let (answer, connection, _) = pending_answer.await?;
    let (resources, templates) = match answer {
        Ok((ServerResult::ListResourcesResult(list), templates)) => (list, templates),
        Ok(_) => return failed_call_result(RequestError::Unexpected, tool),
        Err(error) => return failed_call_result(error, tool),
    };
    let redaction = connection.redaction();
    let mut has_omissions = resources.resources.len() > MCP_LISTED_MAX;
    let short_description = |description: Option<String>| {
        one_line(
            &description.unwrap_or_default(),
            LISTED_DESCRIPTION_CHARS_MAX,
            redaction,
        )
    };
    let items = resources.resources.into_iter().take(MCP_LISTED_MAX).map(|resource| {
        json!({"uri": resource.uri, "name": resource.name, "description": short_description(resource.description), "mime_type": resource.mime_type})
    });
    let items: Vec<_> = items.collect();
    let (templates, has_more_templates) = match templates {
        Some(ServerResult::ListResourceTemplatesResult(list)) => (list.resource_templates, list.next_cursor.is_some()),
        _ => (Vec::new(), false),
    };
    has_omissions |= has_more_templates || templates.len() > MCP_LISTED_MAX;
    let templates = templates.into_iter().take(MCP_LISTED_MAX).map(|template| {
        json!({"uri_template": template.uri_template, "name": template.name, "description": short_description(template.description)})
    });
    let mut value = json!({"resources": items, "templates": templates.collect::<Vec<_>>()});
    add_continuation(&mut value, resources.next_cursor, has_omissions);
    ResultContent::new(redaction).into_result(Some(value), false)
}

/// Requests a page of the list of resources. With the first page, also requests the first page of the list of resource
/// templates. The templates are `None` with a later page, and if the request for them fails.
async fn request_lists(
    connection: &Connection,
    options: &RequestOptions<'_>,
    page: PaginatedRequestParams,
) -> Result<(ServerResult, Option<ServerResult>), RequestError> {
    let is_first = page.cursor.is_none();
    let request = ClientRequest::ListResourcesRequest(ListResourcesRequest::with_param(page));
    let resources = connection.request(request, options).await?;
    if !is_first {
        return Ok((resources, None));
    }
    let page = PaginatedRequestParams::default();
    let request = ClientRequest::ListResourceTemplatesRequest(ListResourceTemplatesRequest::with_param(page));
    // Some servers do not support templates.
    let templates = connection.request(request, options).await.ok();
    Ok((resources, templates))
}

async fn read_resource(
    pool: &Arc<SessionPool>,
    tool: &str,
    uri: &str,
    context: &ToolContext,
) -> Result<ToolResult, ToolError> {
    let parameters = ReadResourceRequestParams::new(uri);
    let pending_answer = with_connection(pool, tool, context, move |connection, options| {
        let request = ClientRequest::ReadResourceRequest(ReadResourceRequest::new(parameters.clone()));
        send_request(connection, request, options)
    });
    let (answer, connection, _) = pending_answer.await?;
    match answer {
        Ok(ServerResult::ReadResourceResult(resource)) => {
            let mut content = ResultContent::new(connection.redaction());
            resource
                .contents
                .into_iter()
                .for_each(|contents| content.add_resource(contents));
            content.into_result(None, false)
        }
        Ok(_) => failed_call_result(RequestError::Unexpected, tool),
        Err(error) => failed_call_result(error, tool),
    }
}
