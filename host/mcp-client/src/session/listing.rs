//! The tools that a server lists.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{ClientRequest, ListToolsRequest, PaginatedRequestParams, ProtocolVersion, ServerResult, Tool};
use serde_json::{Map, Value, json};
use tokio::time::Instant;

use super::connection::Connection;
use super::handle_schema::{returns_handle, takes_handle};
use super::request::{RequestError, RequestOptions};
use crate::config::ServerConfig;
use crate::failure::quoted;
use crate::transport::REQUIRES_TASK;
use crate::value::Redaction;
use toolwit_core::limits::{DESCRIPTION_CHARS_MAX, DYNAMIC_TOOLS_MAX, MCP_LIST_WALL_MAX, MCP_PAGES_MAX, MCP_TOOLS_MAX};
use toolwit_core::{ToolContext, ToolDefinition, ToolId, UntrustedSchemas};

/// The maximum length of a tool's name at the server, in bytes.
const REMOTE_NAME_BYTES_MAX: usize = 128;

/// The maximum number of invalid tools that a [`Listing`] reports.
const WITHHELD_MAX: usize = 100;

/// The time after which a list is read again if the server neither declares a time to live nor reports changes.
const DEFAULT_TTL: Duration = Duration::from_secs(300);

/// The shortest time to live of a list. A shorter declared time is raised to this time.
const TTL_MIN: Duration = Duration::from_secs(1);

/// The longest time to live of a list. A longer declared time is lowered to this time.
const TTL_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// The tools of a server, from one reading of its list.
pub(crate) struct Listing {
    pub(crate) tools: Vec<ListedTool>,
    /// The tools and the configured handles that cannot be used, with the reasons.
    pub(crate) withheld: Vec<WithheldItem>,
    /// When the list must be read again. `None` if the server declares no time to live, and reports changes instead.
    pub(super) fresh_until: Option<Instant>,
}

/// A tool that can be used.
#[derive(Clone)]
pub(crate) struct ListedTool {
    /// The name at the server.
    pub(crate) name: String,
    pub(crate) definition: ToolDefinition,
    /// Whether the tool can be called only as a task.
    pub(crate) requires_task: bool,
}

/// An invalid tool, all tools that were not read because of a limit, or a configured handle without entities.
#[derive(Clone, Debug)]
pub(crate) struct WithheldItem {
    /// The name of the tool, `all others`, or `handle NAME`.
    pub(crate) name: String,
    pub(crate) reason: String,
}

impl Listing {
    #[cfg(test)]
    pub(crate) fn from_tools(tools: Vec<ListedTool>) -> Self {
        Self {
            tools,
            withheld: Vec::new(),
            fresh_until: None,
        }
    }

    pub(super) fn is_fresh(&self) -> bool {
        self.fresh_until.is_none_or(|until| Instant::now() < until)
    }
}

/// Reads the list of tools, page by page. The time, the pages and the tools are limited.
///
/// # Errors
/// If a request fails, an answer is not a list of tools, or all requests together take longer than
/// [`MCP_LIST_WALL_MAX`].
pub(super) async fn list_tools(
    connection: &Connection,
    config: &Arc<ServerConfig>,
    context: &ToolContext,
) -> Result<Listing, RequestError> {
    let pages = tokio::time::timeout(MCP_LIST_WALL_MAX, read_pages(connection, context)).await;
    let Pages { tools, ttl, omissions } = pages.map_err(|_| RequestError::Timeout(MCP_LIST_WALL_MAX))??;
    let (config, handles) = (config.clone(), config.handles.clone());
    let redaction = connection.redaction().clone();
    let validation = tokio::task::spawn_blocking(move || validate_tools(tools, &config, &redaction)).await;
    let (tools, mut withheld) = validation.map_err(|_| RequestError::Unexpected)?;
    withheld.extend(omissions);
    withheld.extend(unusable_handles(&tools, &handles));
    let ttl = ttl.map(|ttl| ttl.clamp(TTL_MIN, TTL_MAX));
    let ttl = ttl.or((!connection.reports_changes()).then_some(DEFAULT_TTL));
    for item in &withheld {
        tracing::warn!(
            server = connection.server,
            tool = item.name,
            reason = item.reason,
            "a tool is withheld"
        );
    }
    Ok(Listing {
        tools,
        withheld,
        fresh_until: ttl.map(|ttl| Instant::now() + ttl),
    })
}

/// Returns the configured handles that cannot become entities, with the reasons.
fn unusable_handles(tools: &[ListedTool], handles: &[String]) -> Vec<WithheldItem> {
    let unusable = handles.iter().filter_map(|handle| {
        let reason = if !tools.iter().any(|tool| returns_handle(&tool.definition, handle)) {
            "no tool returns it: no output schema declares it as a string"
        } else if !tools.iter().any(|tool| takes_handle(&tool.definition, handle)) {
            "no tool takes it: no input schema requires it as a string"
        } else {
            return None;
        };
        Some(WithheldItem {
            name: format!("handle {}", quoted(handle)),
            reason: reason.to_owned(),
        })
    });
    unusable.collect()
}

/// The tools of all pages of a list.
#[derive(Default)]
struct Pages {
    tools: Vec<Tool>,
    /// The first time to live that a page declares.
    ttl: Option<Duration>,
    /// The reasons why further tools of the list were not read.
    omissions: Vec<WithheldItem>,
}

async fn read_pages(connection: &Connection, context: &ToolContext) -> Result<Pages, RequestError> {
    let mut pages = Pages::default();
    if !connection.has_tools() {
        return Ok(pages);
    }
    let options = RequestOptions {
        context,
        meta: Map::new(),
        idle_max: MCP_LIST_WALL_MAX,
        wall_max: MCP_LIST_WALL_MAX,
    };
    let (mut cursor, mut earlier_cursors) = (None, HashSet::new());
    for _ in 0..MCP_PAGES_MAX {
        let parameters = PaginatedRequestParams::default().with_cursor(cursor.take());
        let request = ClientRequest::ListToolsRequest(ListToolsRequest::with_param(parameters));
        let ServerResult::ListToolsResult(page) = connection.request(request, &options).await? else {
            return Err(RequestError::Unexpected);
        };
        if pages.ttl.is_none() {
            pages.ttl = page.ttl_ms.map(Duration::from_millis);
        }
        let remaining = MCP_TOOLS_MAX - pages.tools.len();
        let excess = page.tools.len().saturating_sub(remaining);
        pages.tools.extend(page.tools.into_iter().take(remaining));
        if excess > 0 {
            pages.add_omission(format!("the server lists more than {MCP_TOOLS_MAX} tools"));
            return Ok(pages);
        }
        // Since revision 2026-07-28, an empty text is a cursor. Servers of earlier revisions end their lists with it.
        let is_end = |next: &String| next.is_empty() && connection.revision() < ProtocolVersion::V_2026_07_28.as_str();
        match page.next_cursor.filter(|next| !is_end(next)) {
            None => return Ok(pages),
            Some(next) if earlier_cursors.insert(next.clone()) => cursor = Some(next),
            Some(_) => {
                pages.add_omission("the pages of the list repeat".to_owned());
                return Ok(pages);
            }
        }
    }
    pages.add_omission(format!("the list has more than {MCP_PAGES_MAX} pages"));
    Ok(pages)
}

impl Pages {
    /// Adds the reason why the tools after those in `tools` were not read.
    fn add_omission(&mut self, reason: String) {
        let name = "all others".to_owned();
        self.omissions.push(WithheldItem { name, reason });
    }
}

/// Checks the names and schemas of the tools that the configured filter accepts. Blocks the thread while it compiles
/// schemas.
fn validate_tools(
    listed: Vec<Tool>,
    config: &ServerConfig,
    redaction: &Redaction,
) -> (Vec<ListedTool>, Vec<WithheldItem>) {
    let (mut tools, mut withheld) = (Vec::new(), Vec::new());
    let mut names = HashSet::new();
    // The limits of one `UntrustedSchemas` suit the dynamic tools of a component, of which there are at most
    // `DYNAMIC_TOOLS_MAX`. A server can have more tools, so each group of this size has its own limits.
    for group in listed.chunks(DYNAMIC_TOOLS_MAX) {
        let mut schemas = UntrustedSchemas::default();
        for tool in group {
            if !config.tools.accepts(&tool.name) {
                continue;
            }
            let validated = match check_name(&tool.name) {
                Ok(()) if !names.insert(tool.name.clone()) => Err("another tool has the same name".to_owned()),
                Ok(()) if redaction.applies_to(&tool.name) => Err("its name contains a secret".to_owned()),
                Ok(()) => validate_tool(tool, config, redaction, &mut schemas),
                Err(why) => Err(why),
            };
            match validated {
                Ok(tool) => tools.push(tool),
                Err(reason) if withheld.len() < WITHHELD_MAX => withheld.push(WithheldItem {
                    name: redaction.quoted(&tool.name),
                    reason,
                }),
                Err(_) => {}
            }
        }
    }
    (tools, withheld)
}

/// Checks the name of a tool, which becomes a part of its id.
fn check_name(name: &str) -> Result<(), String> {
    if name.trim().is_empty() || name.len() > REMOTE_NAME_BYTES_MAX {
        return Err(format!(
            "its name is empty, or longer than {REMOTE_NAME_BYTES_MAX} bytes"
        ));
    }
    let is_allowed = |c: char| c.is_ascii_graphic() && !matches!(c, '#' | '(' | ')' | '>' | '`') || c.is_alphanumeric();
    if name.chars().all(is_allowed) {
        Ok(())
    } else {
        Err("its name has characters that are not allowed".to_owned())
    }
}

/// Checks the schemas of a tool, and creates its definition. The error is the reason why the tool cannot be used.
fn validate_tool(
    tool: &Tool,
    config: &ServerConfig,
    redaction: &Redaction,
    schemas: &mut UntrustedSchemas,
) -> Result<ListedTool, String> {
    let mut read_schema = |schema: &Map<String, Value>| {
        let mut schema = Value::Object(schema.clone());
        redaction.redact_value(&mut schema);
        schemas.read(&schema.to_string())
    };
    let mut input = read_schema(&tool.input_schema).map_err(|why| format!("its input schema {why}"))?;
    let accepts_objects = match input.get("type") {
        None => true,
        Some(Value::Array(types)) => types.iter().any(|name| name == "object"),
        Some(name) => name == "object",
    };
    if !accepts_objects || !input.is_object() {
        return Err("its input schema must have `\"type\": \"object\"`".to_owned());
    }
    input["type"] = json!("object");
    // Results are not checked against the output schema, so an invalid output schema is left out.
    let output = tool
        .output_schema
        .as_deref()
        .and_then(|output| read_schema(output).ok());
    let description = tool
        .description
        .as_deref()
        .or(tool.title.as_deref())
        .unwrap_or_default();
    // `transport::message` cuts a description that is too long. The cut can be inside a secret.
    let description = redaction.without_partial_secret_at_end(description);
    let description = redaction.beginning(description.trim(), DESCRIPTION_CHARS_MAX);
    let id = ToolId::from_text(&format!("mcp:{}#{}", config.name, tool.name));
    let mut definition = ToolDefinition::new(id, tool.name.as_ref(), description, input)
        .with_fallback_name(format!("{}_{}", config.name, tool.name));
    definition.output_schema = output.map(Arc::new);
    Ok(ListedTool {
        name: tool.name.to_string(),
        definition,
        requires_task: tool
            .meta
            .as_ref()
            .is_some_and(|meta| meta.0.contains_key(REQUIRES_TASK)),
    })
}

#[cfg(test)]
mod tests;
