//! Converting a tool of a package to a search document.

use serde_json::Value;

use crate::catalog::{Document, HealthSignal, RankingSignals};
use crate::health::current_state;
use crate::manifest::{Manifest, Tier};
use crate::store::{HealthState, ToolHealth};
use toolwit_core::ToolDefinition;

/// A description with more characters than this counts as long.
const LONG_DESCRIPTION_CHARS: usize = 40;

/// Creates the search document of a tool.
pub(crate) fn tool_document(tool: &ToolDefinition, manifest: Option<&Manifest>) -> Document {
    let mut document = Document::of_definition(tool);
    if let Some(manifest) = manifest {
        let settings = manifest.tool(tool.id.as_str(), tool.name());
        let tag_lists = [
            Some(&manifest.tags),
            Some(&manifest.frameworks),
            settings.map(|settings| &settings.tags),
        ];
        document.tags = tag_lists
            .into_iter()
            .flatten()
            .flatten()
            .cloned()
            .collect::<Vec<_>>()
            .join(" ");
        document.category = manifest.category.clone().unwrap_or_default();
        document.use_case = usage_text(manifest, tool.id.as_str(), tool.name());
        let examples = manifest
            .examples
            .iter()
            .chain(settings.into_iter().flat_map(|settings| &settings.examples));
        document.examples = examples.cloned().collect::<Vec<_>>().join(" ");
    }
    document
}

/// Returns the texts of a manifest about the use of a tool: the description and the use case of the package, and the
/// tool's own use case.
pub(super) fn usage_text(manifest: &Manifest, id: &str, name: &str) -> String {
    let settings = manifest.tool(id, name);
    let texts = [
        manifest.description.as_deref(),
        manifest.use_case.as_deref(),
        settings.and_then(|settings| settings.use_case.as_deref()),
    ];
    texts.into_iter().flatten().collect::<Vec<_>>().join(" ")
}

/// Rates the description of a tool in percent: 40 for a long description, 30 if all parameters are described, 20 for a rich
/// manifest, and up to 10 for the quality that the author declares.
pub(crate) fn quality_percent(tool: &ToolDefinition, tier: Tier, declared_quality: Option<u8>) -> u8 {
    let is_description_long = tool.description.chars().nth(LONG_DESCRIPTION_CHARS).is_some();
    let properties = tool.input_schema["properties"].as_object();
    let are_all_described = |properties: &serde_json::Map<String, Value>| {
        properties.values().all(|schema| schema["description"].is_string())
    };
    let are_parameters_described = properties.is_none_or(are_all_described);
    [
        (is_description_long, 40),
        (are_parameters_described, 30),
        (tier == Tier::Rich, 20),
    ]
    .into_iter()
    .filter_map(|(is_met, percent)| is_met.then_some(percent))
    .sum::<u8>()
        + declared_quality.unwrap_or(0).min(100) / 10
}

/// Combines the declared ranking signals of a tool with its recorded health and uses.
pub(crate) fn ranking_signals(declared: RankingSignals, health: &ToolHealth, now_ms: u64) -> RankingSignals {
    let health_signal = match current_state(health, now_ms) {
        HealthState::Healthy => HealthSignal::Healthy,
        HealthState::Unknown => HealthSignal::Unknown,
        HealthState::Broken => HealthSignal::Broken,
    };
    RankingSignals {
        health: health_signal,
        uses: health.uses,
        ..declared
    }
}
