//! Converting a tool of a package to a search document.

use serde_json::Value;

use crate::catalog::{Document, HealthBoost, RankingSignals};
use crate::health::current_state;
use crate::manifest::{Manifest, Tier};
use crate::store::{HealthState, ToolHealth};
use toolwit_core::ToolDefinition;

/// A description of more than this many characters counts as good.
const DESCRIPTION_CHARS_GOOD: usize = 40;

/// Creates the search document of a tool.
pub(crate) fn tool_document(tool: &ToolDefinition, manifest: Option<&Manifest>) -> Document {
    let mut document = Document::new(tool.id.as_str(), tool.name(), tool.description.as_str());
    document.parameters = parameters(&tool.input_schema);
    if let Some(manifest) = manifest {
        let own = manifest.tool(tool.id.as_str(), tool.name());
        let lists = [
            Some(&manifest.tags),
            Some(&manifest.frameworks),
            own.map(|own| &own.tags),
        ];
        document.tags = lists
            .into_iter()
            .flatten()
            .flatten()
            .cloned()
            .collect::<Vec<_>>()
            .join(" ");
        document.category = manifest.category.clone().unwrap_or_default();
        let texts = [
            manifest.description.as_ref(),
            manifest.use_case.as_ref(),
            own.and_then(|own| own.use_case.as_ref()),
        ];
        document.use_case = texts.into_iter().flatten().cloned().collect::<Vec<_>>().join(" ");
        let examples = manifest
            .examples
            .iter()
            .chain(own.into_iter().flat_map(|own| &own.examples));
        document.examples = examples.cloned().collect::<Vec<_>>().join(" ");
    }
    document
}

/// Rates the description of a tool in percent: 40 for a good text, 30 for described parameters, 30 for a rich manifest.
pub(crate) fn quality_percent(tool: &ToolDefinition, tier: Tier) -> u8 {
    let is_described = tool.description.chars().nth(DESCRIPTION_CHARS_GOOD).is_some();
    let properties = tool.input_schema["properties"].as_object();
    let all_described =
        |properties: &serde_json::Map<String, Value>| properties.values().all(|one| one["description"].is_string());
    let are_parameters_described = properties.is_none_or(all_described);
    [
        (is_described, 40),
        (are_parameters_described, 30),
        (tier == Tier::Rich, 30),
    ]
    .into_iter()
    .filter_map(|(holds, percent)| holds.then_some(percent))
    .sum()
}

/// Returns the ranking signals of a tool.
pub(crate) fn ranking_signals(quality: f32, health: &ToolHealth, now_ms: u64) -> RankingSignals {
    let boost = match current_state(health, now_ms) {
        HealthState::Healthy => HealthBoost::Healthy,
        HealthState::Unknown => HealthBoost::Unknown,
        HealthState::Broken => HealthBoost::Broken,
    };
    RankingSignals::new(boost, quality, health.uses)
}

/// Collects the names and descriptions of the parameters, nested fields included.
fn parameters(schema: &Value) -> String {
    const DEPTH_MAX: usize = 3;
    fn walk(schema: &Value, depth: usize, text: &mut String) {
        for (name, field) in schema["properties"].as_object().into_iter().flatten() {
            text.push_str(name);
            text.push(' ');
            text.push_str(field["description"].as_str().unwrap_or_default());
            text.push('\n');
            if depth < DEPTH_MAX {
                walk(field, depth + 1, text);
            }
        }
    }
    let mut text = String::new();
    walk(schema, 0, &mut text);
    text
}
