//! The tools of plugins in an order, with their use and health.

use serde::Serialize;

use crate::output::page::{BAD, FAINT, GOOD, NAME, Page};
use toolwit::registry::Registry;
use toolwit::store::{HealthState, StoreError, StoredTool, ToolOrder, ToolQuery};

/// An order of tools on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum RankFlag {
    /// Those with the most calls first
    Uses,
    /// Those with the best descriptions first
    Quality,
    /// Those whose last call failed first
    Health,
}

impl From<RankFlag> for ToolOrder {
    fn from(flag: RankFlag) -> Self {
        match flag {
            RankFlag::Uses => Self::Uses,
            RankFlag::Quality => Self::Quality,
            RankFlag::Health => Self::Health,
        }
    }
}

/// The tools in an order.
#[derive(Serialize)]
pub(crate) struct RankedTools {
    tools: Vec<StoredTool>,
}

impl RankedTools {
    /// Reads the tools from the store.
    pub(crate) async fn read(registry: &Registry, query: ToolQuery) -> Result<Self, StoreError> {
        let registry = registry.clone();
        let read = tokio::task::spawn_blocking(move || registry.ranked_tools(&query));
        let tools = read.await.unwrap_or_else(|_| Ok(Vec::new()))?;
        Ok(Self { tools })
    }

    /// Writes a line for each tool.
    pub(crate) fn page(&self) -> Page {
        let mut page = Page::new();
        let width = self.tools.iter().map(|tool| tool.name.len()).max().unwrap_or_default();
        for tool in &self.tools {
            let padding = width.saturating_sub(tool.name.len()) + 2;
            page.styled(NAME, &tool.name).indent(padding);
            page.text(format_args!("{:>6}  ", calls(tool.health.uses)));
            page.text(format_args!("quality {:>3} %  ", tool.quality_percent));
            let (style, state) = match (tool.health.import, tool.health.execution) {
                (HealthState::Broken, _) | (_, HealthState::Broken) => (BAD, "failed"),
                (_, HealthState::Healthy) => (GOOD, "works"),
                _ => (FAINT, "not called"),
            };
            page.styled(style, format_args!("{state:<10}")).text("  ");
            page.styled(FAINT, tool.category.as_deref().unwrap_or_default()).end();
            if let Some(error) = &tool.health.error {
                page.indent(2).text(error).end();
            }
        }
        page
    }
}

fn calls(count: u64) -> String {
    match count {
        1 => "1 call".to_owned(),
        count => format!("{count} calls"),
    }
}
