//! Tools that list and read the resources of a server.

use std::sync::Arc;

use futures::FutureExt;
use rmcp::model::{
    ClientRequest, ListResourceTemplatesRequest, ListResourcesRequest, PaginatedRequestParams, ReadResourceRequest,
    ReadResourceRequestParams, ServerResult,
};
use serde_json::{Value, json};

use super::content::{ResultContent, line};
use super::errors::failed_outcome;
use super::mcp_tool::{send, with_connection};
use super::page::{add_continuation, page_of, page_schema};
use crate::session::{Connection, Exchange, RequestError, SessionPool};
use toolwit_core::limits::MCP_LISTED_MAX;
use toolwit_core::{Error, NativeTool, Tool, ToolContext, ToolDefinition, ToolError, ToolId, ToolResult};

/// The maximum length of a description in a list, in characters.
const LISTED_DESCRIPTION_CHARS_MAX: usize = 200;

/// Returns the tools that list and read the resources of a server.
///
/// # Errors
/// Never, as long as the schemas here are valid.
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
        async move { list_resources(&pool, &tool, page_of(&arguments), &context).await }
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
    let pending_answer = with_connection(pool, tool, context, move |connection, exchange| {
        list_pages(connection, exchange, page.clone()).boxed()
    });
    let (answer, connection, _) = pending_answer.await?;
    let (resources, templates) = match answer {
        Ok((ServerResult::ListResourcesResult(list), templates)) => (list, templates),
        Ok(_) => return failed_outcome(RequestError::Unexpected, tool),
        Err(error) => return failed_outcome(error, tool),
    };
    let redaction = connection.redaction();
    let mut is_cut = resources.resources.len() > MCP_LISTED_MAX;
    let short_description = |description: Option<String>| {
        line(
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
    is_cut |= has_more_templates || templates.len() > MCP_LISTED_MAX;
    let templates = templates.into_iter().take(MCP_LISTED_MAX).map(|template| {
        json!({"uri_template": template.uri_template, "name": template.name, "description": short_description(template.description)})
    });
    let mut value = json!({"resources": items, "templates": templates.collect::<Vec<_>>()});
    add_continuation(&mut value, resources.next_cursor, is_cut);
    ResultContent::new(redaction).into_result(Some(value), false)
}

/// Requests a page of the resources. With the first page, it also requests the first page of the resource templates.
/// The templates are `None` for a later page, and if the request for them fails.
async fn list_pages(
    connection: &Connection,
    exchange: &Exchange<'_>,
    page: PaginatedRequestParams,
) -> Result<(ServerResult, Option<ServerResult>), RequestError> {
    let is_first = page.cursor.is_none();
    let request = ClientRequest::ListResourcesRequest(ListResourcesRequest::with_param(page));
    let resources = connection.request(request, exchange).await?;
    if !is_first {
        return Ok((resources, None));
    }
    let page = PaginatedRequestParams::default();
    let request = ClientRequest::ListResourceTemplatesRequest(ListResourceTemplatesRequest::with_param(page));
    // Some servers do not support templates.
    let templates = connection.request(request, exchange).await.ok();
    Ok((resources, templates))
}

async fn read_resource(
    pool: &Arc<SessionPool>,
    tool: &str,
    uri: &str,
    context: &ToolContext,
) -> Result<ToolResult, ToolError> {
    let parameters = ReadResourceRequestParams::new(uri);
    let pending_answer = with_connection(pool, tool, context, move |connection, exchange| {
        let request = ClientRequest::ReadResourceRequest(ReadResourceRequest::new(parameters.clone()));
        send(connection, request, exchange)
    });
    let (answer, connection, _) = pending_answer.await?;
    match answer {
        Ok(ServerResult::ReadResourceResult(read)) => {
            let mut content = ResultContent::new(connection.redaction());
            read.contents
                .into_iter()
                .for_each(|resource| content.add_resource(resource));
            content.into_result(None, false)
        }
        Ok(_) => failed_outcome(RequestError::Unexpected, tool),
        Err(error) => failed_outcome(error, tool),
    }
}
