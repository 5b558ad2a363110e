//! `toolwit show`: shows the definition of a tool.

use std::sync::Arc;

use serde::Serialize;

use crate::exit::Exit;
use crate::failure::Failure;
use crate::hint;
use crate::input::limits::LimitFlags;
use crate::input::mcp::McpFlags;
use crate::input::plugins::{GrantAndSecretFlags, PluginFlags};
use crate::output::definition;
use crate::output::page::Page;
use crate::output::printer::{Format, Printer};
use crate::output::progress::with_spinner;
use crate::output::schema;
use toolwit::Error;
use toolwit::Toolwit;
use toolwit::agent::SourceTools;
use toolwit::find::EntityMethod;
use toolwit::mcp::{McpServer, McpServers};
use toolwit::registry::DynamicDiscovery;
use toolwit::registry::Registry;
use toolwit::sandbox::{EntityType, Plugin, Scope};
use toolwit::tool::{Arguments, CallAccess, Effect, ToolDefinition, ToolId};
use toolwit::{ToolContext, ToolSet};

/// Show a tool's full definition: description, input and output schema
///
/// For a method of an entity, such as `customer_get_average_spend`, the arguments include the id of the entity. An MCP
/// server is started or contacted only if the id of one of its tools is given: `mcp:SERVER#TOOL`.
#[derive(Debug, clap::Args)]
pub(crate) struct Show {
    /// Name or id of the tool, as shown by `toolwit list`
    tool: String,
    #[command(flatten)]
    plugins: PluginFlags,
    #[command(flatten)]
    mcp: McpFlags,
    #[command(flatten)]
    grants_and_secrets: GrantAndSecretFlags,
}

/// A tool, with the types of the entities that its result can contain. The JSON output of the command.
#[derive(Serialize)]
struct ToolDocument<'a> {
    /// The name of the plugin, or `mcp:SERVER` for a tool of an MCP server.
    plugin: &'a str,
    #[serde(flatten)]
    definition: &'a ToolDefinition,
    effect: EffectDocument<'a>,
    entities: Vec<&'a EntityType>,
}

/// The effect class of a tool under the current grants.
#[derive(Serialize)]
struct EffectDocument<'a> {
    #[serde(flatten)]
    effect: Effect,
    /// Whether the class is proved, and not only declared or assumed.
    is_proved: bool,
    /// The granted rule that allows the tool to change something outside of the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    writing_rule: Option<&'a str>,
}

impl<'a> EffectDocument<'a> {
    /// Creates the document from the access of a call, which contains the effect class and the granted rules.
    fn of(call_access: &'a CallAccess) -> Self {
        Self {
            effect: call_access.effect,
            is_proved: call_access.effect.is_proved(),
            writing_rule: call_access.writing_rule.as_deref(),
        }
    }
}

impl Show {
    pub(crate) async fn run(self, printer: Printer) -> Result<Exit, Failure> {
        let servers = self.mcp.servers(&self.grants_and_secrets.secrets)?;
        if let Some(server) = server_of(&servers, &self.tool) {
            return show_remote_tool(server, &self.tool, printer).await;
        }
        let host = self
            .plugins
            .builder_with_servers(&LimitFlags::default(), &self.grants_and_secrets, &servers)?
            .dynamic_discovery(DynamicDiscovery::Never)
            .build()
            .await?;
        let registry = host.registry();
        let (plugin, definition) = find_definition(&host, &registry, &self.tool)?;
        // The effect of a tool includes the effects of the tools that its plugin may call.
        let tools = ToolSet::from_iter(host.tools(&Scope::new()));
        let context = ToolContext::new().with_tools(Arc::new(tools));
        let call_access = plugin.access(definition, &context).await;
        let document = ToolDocument {
            plugin: plugin.name(),
            definition,
            effect: EffectDocument::of(&call_access),
            entities: entity_types_of(plugin, definition),
        };
        match printer.format() {
            Format::Json => printer.document(&document)?,
            Format::Human => printer.print_page(&tool_page(&document))?,
        }
        Ok(Exit::Success)
    }
}

/// Returns the MCP server that the id of a tool names. Returns `None` for other ids and names, and for a server that is
/// not configured.
fn server_of<'a>(servers: &'a McpServers, name_or_id: &str) -> Option<&'a McpServer> {
    let owner = ToolId::from_text(name_or_id).owner().to_owned();
    servers.get(owner.strip_prefix("mcp:")?)
}

/// Contacts a server and shows one of its tools.
async fn show_remote_tool(server: &McpServer, id: &str, printer: Printer) -> Result<Exit, Failure> {
    let text = format!("contacting {}", server.config().name);
    let context = ToolContext::new();
    let tools = with_spinner(printer, &text, SourceTools::load(server, &context)).await?;
    let tool = tools.required_tool_by_name_or_id(id)?;
    let call_access = tool.access(&Arguments::new(), &context).await;
    let document = ToolDocument {
        plugin: tool.definition().id.owner(),
        definition: tool.definition(),
        effect: EffectDocument::of(&call_access),
        entities: Vec::new(),
    };
    match printer.format() {
        Format::Json => printer.document(&document)?,
        Format::Human => printer.print_page(&tool_page(&document))?,
    }
    Ok(Exit::Success)
}

fn find_definition<'a>(
    host: &Toolwit,
    registry: &'a Registry,
    name_or_id: &str,
) -> Result<(&'a Plugin, &'a ToolDefinition), Error> {
    let id = match host.find_or_explain(&host.tools(&Scope::new()), name_or_id) {
        Ok(tool) => tool.definition().id.clone(),
        Err(error) => match EntityMethod::find(registry, name_or_id) {
            Some(method) => return Ok((method.plugin, method.definition)),
            None => return Err(hint::convert_find_error(error, registry)),
        },
    };
    definition_by_id(registry, &id).ok_or_else(|| {
        let message = format!("the tool `{id}` does not belong to a plugin");
        Error::new(toolwit::ErrorKind::Internal, toolwit::Phase::Search, message)
    })
}

fn definition_by_id<'a>(registry: &'a Registry, id: &ToolId) -> Option<(&'a Plugin, &'a ToolDefinition)> {
    registry.plugins().find_map(|plugin| {
        let tools = &plugin.inspection().tools;
        tools.iter().find(|tool| tool.id == *id).map(|tool| (&**plugin, tool))
    })
}

/// Returns the types of the entities that a tool's result can contain.
fn entity_types_of<'a>(plugin: &'a Plugin, definition: &ToolDefinition) -> Vec<&'a EntityType> {
    let mut names = Vec::new();
    if let Some(output) = &definition.output_schema {
        schema::collect_entity_types(output, &mut names);
    }
    let entity_types = plugin.inspection().entities.iter();
    entity_types
        .filter(|entity_type| names.contains(&entity_type.name.as_str()))
        .collect()
}

/// Describes the effect class, and the granted rule that allows the tool to change something.
fn effect_text(effect: &EffectDocument<'_>) -> String {
    match effect.writing_rule {
        Some(rule) => format!("{}; the tool may use `{rule}`", effect.effect),
        None => effect.effect.to_string(),
    }
}

fn tool_page(document: &ToolDocument<'_>) -> Page {
    let mut page = Page::new();
    definition::write_definition(&mut page, document.definition, &effect_text(&document.effect));
    if !document.entities.is_empty() {
        page.title("Entities in the result (their methods become tools)");
        for entity_type in &document.entities {
            definition::write_entity_type(&mut page, entity_type, 2);
        }
    }
    page
}
