//! The tools of plugins in the order of a query, with their calls and health.

use serde::Serialize;

use crate::output::page::{BAD, FAINT, GOOD, NAME, Page, counted};
use toolwit::registry::Registry;
use toolwit::store::{HealthState, StoredTool, ToolOrder, ToolQuery};
use toolwit::{Error, ErrorKind, Phase};

/// The value of `toolwit list --by`: the order of the tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum RankFlag {
    /// Tools with the most calls first
    Uses,
    /// Tools with the best descriptions first
    Quality,
    /// Failed tools first: their component does not load, or their last call failed
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

/// Tools in the order of a query.
#[derive(Serialize)]
pub(crate) struct RankedTools {
    tools: Vec<StoredTool>,
}

impl RankedTools {
    /// Reads the tools from the metadata database.
    pub(crate) async fn read(registry: &Registry, query: ToolQuery) -> Result<Self, Error> {
        let registry = registry.clone();
        let result = tokio::task::spawn_blocking(move || registry.ranked_tools(&query)).await;
        let tools = result.map_err(|error| {
            let message = "reading the metadata database failed unexpectedly";
            Error::new(ErrorKind::Internal, Phase::Registry, message).with_source(error)
        })?;
        let tools = tools.map_err(|error| {
            let message = format!("the metadata database cannot be read: {error}");
            Error::new(ErrorKind::Io, Phase::Registry, message).with_source(error)
        })?;
        Ok(Self { tools })
    }

    /// Returns a page with a line for each tool, and the error of a tool that failed.
    pub(crate) fn page(&self) -> Page {
        let mut page = Page::new();
        let width = self.tools.iter().map(|tool| tool.name.len()).max().unwrap_or_default();
        for tool in &self.tools {
            let padding = width.saturating_sub(tool.name.len()) + 2;
            page.styled(NAME, &tool.name).spaces(padding);
            let uses = usize::try_from(tool.health.uses).unwrap_or(usize::MAX);
            page.text(format_args!("{:>6}  ", counted(uses, "call")));
            page.text(format_args!("quality {:>3} %  ", tool.quality_percent));
            let (style, label) = match (tool.health.loading, tool.health.execution) {
                (HealthState::Broken, _) | (_, HealthState::Broken) => (BAD, "failed"),
                (_, HealthState::Healthy) => (GOOD, "works"),
                _ => (FAINT, "not called"),
            };
            page.styled(style, format_args!("{label:<10}")).text("  ");
            page.styled(FAINT, tool.category.as_deref().unwrap_or_default()).end();
            if let Some(error) = &tool.health.error {
                page.spaces(2).text(error).end();
            }
        }
        page
    }
}
