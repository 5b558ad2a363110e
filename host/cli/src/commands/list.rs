//! `toolwit list`: lists plugins and MCP servers, with their tools.

use std::collections::HashMap;

use serde_json::json;
use tokio::task::JoinSet;

use crate::commands::ranked_tools::{RankFlag, RankedTools};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::hint::{NO_PACKAGES, discovery_error, with_fixing_hint};
use crate::input::limits::LimitFlags;
use crate::input::mcp::McpFlags;
use crate::input::plugins::PluginFlags;
use crate::input::secrets::SecretFlags;
use crate::output::package::{
    CodeStates, PackageDocument, lost_state_warning, methods, reasons_for_no_tools, wit_warning,
};
use crate::output::page::{BAD, FAINT, NAME, Page, TITLE, WARN, first_sentence};
use crate::output::printer::{Format, Printer};
use crate::output::progress::with_spinner;
use crate::output::server::ServerDocument;
use crate::shell::shell_word;
use toolwit::Error;
use toolwit::mcp::McpServers;
use toolwit::registry::{Package, PackageStatus, Registry};
use toolwit::store::{ToolOrder, ToolQuery};
use toolwit::tool::ToolDefinition;

/// The mark before a method of an entity.
const ARROW: &str = "→ ";

/// List plugins and MCP servers, with their tools
///
/// Methods of entities are listed with an arrow: they become tools when a call returns an entity. Broken plugins are
/// listed with the reason. Reads the metadata of the components: nothing is compiled and no guest code runs. MCP
/// servers are started or contacted only with --contact.
#[derive(Debug, clap::Args)]
pub(crate) struct List {
    /// Start or contact the MCP servers, and list their tools
    #[arg(long)]
    contact: bool,
    /// List the tools of plugins in this order, with their calls, the quality of their descriptions and the outcome of
    /// the last call
    #[arg(long, value_name = "ORDER", conflicts_with = "contact")]
    by: Option<RankFlag>,
    /// List the plugin tools of this category, in the order of `--by` [default: uses]
    #[arg(long, value_name = "CATEGORY", conflicts_with = "contact")]
    category: Option<String>,
    #[command(flatten)]
    plugins: PluginFlags,
    #[command(flatten)]
    mcp: McpFlags,
    #[command(flatten)]
    secrets: SecretFlags,
}

impl List {
    pub(crate) async fn run(self, printer: Printer) -> Result<Exit, Failure> {
        let config = self.mcp.config()?;
        let servers = McpServers::new(&config, &McpFlags::client_options(&self.secrets));
        let host = self.plugins.load_with_servers(&LimitFlags::default(), &servers).await?;
        let registry = host.registry();
        if let Some(query) = self.query() {
            return print_ranked(&registry, query, printer).await;
        }
        let packages = registry.packages();
        let mut server_documents = self.describe_servers(&servers, printer).await;
        server_documents.extend(
            config
                .invalid_servers()
                .map(|(name, error)| ServerDocument::invalid(name, error)),
        );
        match printer.format() {
            Format::Json => {
                let code = CodeStates::of_host(&host);
                let plugins: Vec<_> = packages
                    .iter()
                    .map(|package| PackageDocument::of(package, &code))
                    .collect();
                printer.document(&json!({ "plugins": plugins, "servers": server_documents }))?;
            }
            Format::Human => {
                let mut page = plugin_page(&registry);
                server_documents.iter().for_each(|server| server.write(&mut page));
                printer.print_page(&page)?;
                if packages.is_empty() && servers.is_empty() {
                    printer.hint(NO_PACKAGES);
                } else if !servers.is_empty() && !self.contact {
                    printer.hint("`--contact` lists the tools of the MCP servers");
                }
            }
        }
        Ok(Exit::Success)
    }

    /// Returns a query of the metadata database, if the user asked for an order or a category.
    fn query(&self) -> Option<ToolQuery> {
        let query = ToolQuery::new(self.by.map(ToolOrder::from).unwrap_or_default());
        match &self.category {
            Some(category) => Some(query.in_category(category)),
            None => self.by.map(|_| query),
        }
    }

    /// Describes the servers. Contacts them only with `--contact`, all at once.
    async fn describe_servers(&self, servers: &McpServers, printer: Printer) -> Vec<ServerDocument> {
        if !self.contact {
            return servers.iter().map(ServerDocument::not_contacted).collect();
        }
        let names: Vec<_> = servers.iter().map(|server| server.config().name.as_str()).collect();
        let text = format!("contacting {}", names.join(", "));
        let mut contacts = JoinSet::new();
        for (position, server) in servers.iter().cloned().enumerate() {
            contacts.spawn(async move { (position, ServerDocument::contact(&server).await) });
        }
        let mut documents = with_spinner(printer, &text, contacts.join_all()).await;
        documents.sort_by_key(|(position, _)| *position);
        documents.into_iter().map(|(_, document)| document).collect()
    }
}

async fn print_ranked(registry: &Registry, query: ToolQuery, printer: Printer) -> Result<Exit, Failure> {
    let ranked = RankedTools::read(registry, query).await?;
    match printer.format() {
        Format::Json => printer.document(&ranked)?,
        Format::Human => printer.print_page(&ranked.page())?,
    }
    Ok(Exit::Success)
}

fn plugin_page(registry: &Registry) -> Page {
    let packages = registry.packages();
    let definitions = || registry.plugins().flat_map(|plugin| &plugin.inspection().tools);
    let mut tool_counts: HashMap<&str, usize> = HashMap::new();
    for definition in definitions() {
        *tool_counts.entry(definition.name()).or_default() += 1;
    }
    let method_names = registry.plugins().flat_map(|plugin| methods(plugin.inspection()));
    let method_widths = method_names.map(|method| method.name().len() + ARROW.chars().count());
    let widths = definitions().map(|definition| definition.name().len());
    let width = widths.chain(method_widths).max().unwrap_or(0);
    let mut page = Page::new();
    for package in packages {
        page.gap()
            .styled(TITLE, shell_word(&package.name))
            .text("  ")
            .styled(FAINT, package.path.display());
        if let Some(version) = package.manifest.as_ref().and_then(|manifest| manifest.version.as_ref()) {
            page.text("  ").styled(FAINT, version);
        }
        page.end();
        match &package.status {
            PackageStatus::Ready(plugin) => {
                if let Some(problem) = &plugin.inspection().wit_problem {
                    page.spaces(2).styled(WARN, "warning:").text(" ");
                    page.text(wit_warning(&package.name, problem)).end();
                }
                if let Some(warning) = lost_state_warning(plugin.inspection()) {
                    page.spaces(2).styled(WARN, "warning:").text(" ").text(warning).end();
                }
                for definition in &plugin.inspection().tools {
                    let is_ambiguous = tool_counts.get(definition.name()).is_some_and(|count| *count > 1);
                    write_tool(&mut page, definition, width, is_ambiguous);
                }
                for method in methods(plugin.inspection()) {
                    page.spaces(2)
                        .styled(FAINT, ARROW)
                        .styled(NAME, method.name())
                        .spaces(width.saturating_sub(method.name().len() + ARROW.chars().count()) + 2)
                        .text(first_sentence(&method.description))
                        .end();
                }
                if let Some(error) = discovery_error(package) {
                    page.spaces(2)
                        .styled(WARN, "undiscovered:")
                        .text(" ")
                        .text(&error.message)
                        .end();
                    write_hint(&mut page, &error);
                } else if plugin.inspection().is_interceptor() {
                    let role = "an interceptor, which wraps the calls of other tools";
                    page.spaces(2).styled(FAINT, role).end();
                } else if plugin.inspection().tools.is_empty() {
                    for reason in reasons_for_no_tools(plugin.inspection()) {
                        page.spaces(2).styled(WARN, "no tools:").text(" ").text(reason).end();
                    }
                }
            }
            PackageStatus::Broken(_) => write_broken(&mut page, package),
        }
    }
    page
}

/// Writes a tool. If its name is ambiguous, its id is shown too.
fn write_tool(page: &mut Page, definition: &ToolDefinition, width: usize, is_ambiguous: bool) {
    let name = definition.name();
    page.spaces(2)
        .styled(NAME, name)
        .spaces(width.saturating_sub(name.len()) + 2)
        .text(first_sentence(&definition.description))
        .end();
    if is_ambiguous {
        page.spaces(width + 4).styled(FAINT, &definition.id).end();
    }
}

fn write_broken(page: &mut Page, package: &Package) {
    let Some(reason) = package.broken_reason() else { return };
    page.spaces(2)
        .styled(BAD, "broken:")
        .text(" ")
        .text(&reason.message)
        .end();
    write_hint(page, &with_fixing_hint(reason));
}

fn write_hint(page: &mut Page, error: &Error) {
    if let Some(suggestion) = &error.suggestion {
        page.spaces(2).styled(FAINT, format_args!("hint: {suggestion}")).end();
    }
}
