//! `toolwit search`: finds tools by keywords.

use serde_json::json;

use crate::exit::Exit;
use crate::failure::Failure;
use crate::hint::NO_PACKAGES;
use crate::input::plugins::PluginFlags;
use crate::output::page::{FAINT, NAME, Page, first_sentence};
use crate::output::printer::{Format, Printer};
use toolwit::registry::{Cutoff, Hit, Query, Registry};

/// Find tools by name or purpose
///
/// Searches names, descriptions, parameters and manifests for the words, in any inflection. A method of an entity is
/// found through the tools that lead to it: `search_customer → customer_get_average_spend`. An exact tool name always
/// matches. With word vectors (see `toolwit vectors`), tools with a similar meaning match too. Nothing is compiled and
/// no guest code runs.
#[derive(Debug, clap::Args)]
pub(crate) struct Search {
    /// Keywords, such as the purpose of the tool
    #[arg(required = true)]
    query: Vec<String>,
    /// Maximum number of tools to show
    #[arg(long, value_name = "N", default_value_t = 10)]
    hits: usize,
    #[command(flatten)]
    plugins: PluginFlags,
}

impl Search {
    pub(crate) async fn run(self, printer: Printer) -> Result<Exit, Failure> {
        let host = self.plugins.load_for_search().await?;
        let query = Query::new(self.query.join(" "))
            .with_hits_max(self.hits)
            .with_cutoff(Cutoff::None);
        let registry = host.registry();
        let hits = registry.search(&query, |_| true);
        match printer.format() {
            Format::Json => {
                let document = |hit: &Hit| {
                    let plugin = registry.plugin_of(&hit.id).map(|plugin| plugin.name());
                    let leads_to = hit.leads_to.as_ref().map(|method| &method.id);
                    json!({"tool": hit.id, "plugin": plugin, "score": hit.score, "leads_to": leads_to})
                };
                printer.document(&json!({"hits": hits.iter().map(document).collect::<Vec<_>>()}))?;
            }
            Format::Human => {
                printer.print_page(&hits_page(&registry, &hits))?;
                if registry.packages().is_empty() {
                    printer.hint(NO_PACKAGES);
                } else if hits.is_empty() {
                    printer.hint("no tool matches; `toolwit list` lists all tools");
                }
            }
        }
        Ok(Exit::Success)
    }
}

fn hits_page(registry: &Registry, hits: &[Hit]) -> Page {
    let label = |hit: &Hit| match &hit.leads_to {
        Some(method) => format!("{} → {}", hit.name, method.name),
        None => hit.name.clone(),
    };
    let width = hits.iter().map(|hit| label(hit).chars().count()).max().unwrap_or(0);
    let mut page = Page::new();
    for hit in hits {
        let method = hit.leads_to.as_ref().and_then(|method| registry.method(&method.id));
        let definition = method.or_else(|| registry.definition(&hit.id));
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
