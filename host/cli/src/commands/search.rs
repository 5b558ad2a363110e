//! `toolwit search`: finds tools by keywords.

use std::collections::BTreeMap;

use serde_json::json;
use tokio::task::JoinSet;

use crate::exit::Exit;
use crate::failure::Failure;
use crate::hint::NO_PACKAGES;
use crate::input::mcp::McpFlags;
use crate::input::plugins::PluginFlags;
use crate::input::secrets::SecretFlags;
use crate::output::page::{FAINT, NAME, Page, first_sentence};
use crate::output::printer::{Format, Printer};
use crate::output::progress::with_spinner;
use toolwit::agent::ToolSource;
use toolwit::mcp::McpServers;
use toolwit::registry::{Catalog, CatalogUnion, Cutoff, Document, Hit, Query, Registry};
use toolwit::tool::{ToolContext, ToolDefinition};

/// Find tools by name or purpose
///
/// Searches names, descriptions, parameters and manifests for the words, in any inflection. A method of an entity is
/// found through the tools that lead to it: `search_customer → customer_get_average_spend`. An exact tool name always
/// matches. With word vectors (see `toolwit vectors`), tools with a similar meaning match too. Nothing is compiled and
/// no guest code runs. MCP servers are started or contacted only with --contact.
#[derive(Debug, clap::Args)]
pub(crate) struct Search {
    /// Keywords, such as the purpose of the tool
    #[arg(required = true)]
    query: Vec<String>,
    /// Maximum number of tools to show
    #[arg(long, value_name = "N", default_value_t = 10)]
    hits: usize,
    /// Start or contact the MCP servers, and search their tools too
    #[arg(long)]
    contact: bool,
    #[command(flatten)]
    plugins: PluginFlags,
    #[command(flatten)]
    mcp: McpFlags,
    #[command(flatten)]
    secrets: SecretFlags,
}

/// The tools of the contacted servers, by their ids.
type ServerTools = BTreeMap<String, ToolDefinition>;

impl Search {
    pub(crate) async fn run(self, printer: Printer) -> Result<Exit, Failure> {
        let host = self.plugins.load_for_search().await?;
        let query = Query::new(self.query.join(" "))
            .with_hits_max(self.hits)
            .with_cutoff(Cutoff::None);
        let registry = host.registry();
        let servers = match self.mcp.servers(&self.secrets) {
            // The plugins are searched whatever the files of the servers contain.
            Err(error) if !self.contact => {
                tracing::warn!("{}", error.message);
                McpServers::default()
            }
            servers => servers?,
        };
        let server_tools = self.server_tools(&servers, printer).await;
        let catalog = catalog_of(&registry, &server_tools);
        let hits = CatalogUnion::new([registry.catalog(), &catalog]).search(&query, |_| true);
        match printer.format() {
            Format::Json => {
                let document = |hit: &Hit| {
                    let server = server_tools
                        .get(&hit.id)
                        .and_then(|tool| tool.id.as_str().strip_prefix("mcp:")?.split('#').next());
                    let plugin = registry.plugin_of(&hit.id).map(|plugin| plugin.name());
                    let leads_to = hit.leads_to.as_ref().map(|method| &method.id);
                    json!({"tool": hit.id, "plugin": plugin, "server": server, "score": hit.score, "leads_to": leads_to})
                };
                printer.document(&json!({"hits": hits.iter().map(document).collect::<Vec<_>>()}))?;
            }
            Format::Human => {
                printer.print_page(&hits_page(&registry, &server_tools, &hits))?;
                if registry.packages().is_empty() && servers.is_empty() {
                    printer.hint(NO_PACKAGES);
                } else if !servers.is_empty() && !self.contact {
                    printer.hint("`--contact` searches the tools of the MCP servers too");
                } else if hits.is_empty() {
                    printer.hint("no tool matches; `toolwit list` lists all tools");
                }
            }
        }
        Ok(Exit::Success)
    }
}

impl Search {
    /// Returns the tools of the servers. Contacts them only with `--contact`. Logs a warning for a server that cannot be used.
    async fn server_tools(&self, servers: &McpServers, printer: Printer) -> ServerTools {
        if !self.contact || servers.is_empty() {
            return ServerTools::new();
        }
        let mut contacts = JoinSet::new();
        for server in servers.iter() {
            let server = server.clone();
            contacts.spawn(async move { server.tools(&ToolContext::new()).await });
        }
        let mut server_tools = ServerTools::new();
        for tools in with_spinner(printer, "contacting the MCP servers", contacts.join_all()).await {
            match tools {
                Ok(tools) => {
                    let definitions = tools.iter().map(|tool| tool.definition().clone());
                    server_tools.extend(definitions.map(|definition| (definition.id.to_string(), definition)));
                }
                Err(error) => tracing::warn!("{}", error.message),
            }
        }
        server_tools
    }
}

/// Returns a catalog of the tools of servers, with the embedding model of the registry.
fn catalog_of(registry: &Registry, server_tools: &ServerTools) -> Catalog {
    let model = registry.catalog().embedding_model().cloned();
    let mut catalog = model.into_iter().fold(Catalog::new(), Catalog::with_embedding_model);
    for (id, definition) in server_tools {
        catalog.put(id, vec![Document::of_definition(definition)]);
    }
    catalog
}

fn hits_page(registry: &Registry, server_tools: &ServerTools, hits: &[Hit]) -> Page {
    let label = |hit: &Hit| match &hit.leads_to {
        Some(method) => format!("{} → {}", hit.name, method.name),
        None => hit.name.clone(),
    };
    let width = hits.iter().map(|hit| label(hit).chars().count()).max().unwrap_or(0);
    let mut page = Page::new();
    for hit in hits {
        let method = hit.leads_to.as_ref().and_then(|method| registry.method(&method.id));
        let definition = method.or_else(|| registry.definition(&hit.id));
        let definition = definition.or_else(|| server_tools.get(&hit.id));
        let summary = definition.map(|tool| first_sentence(&tool.description));
        page.styled(NAME, format_args!("{:width$}", label(hit)))
            .text("  ")
            .text(summary.unwrap_or_default())
            .text("  ")
            .styled(FAINT, &hit.id)
            .end();
    }
    page
}
