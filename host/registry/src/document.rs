//! A tool of a package as a search sees it.

use serde_json::Value;

use super::catalog::{Document, HealthBoost, RankingSignals};
use super::health::decayed;
use super::manifest::{Manifest, Tier};
use crate::store::{HealthState, ToolHealth};
use toolwit_core::ToolDefinition;

/// A description of at least this many characters says something.
const DESCRIPTION_CHARS_GOOD: usize = 40;

/// Makes a document of a tool.
pub(super) fn document(tool: &ToolDefinition, manifest: Option<&Manifest>) -> Document {
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

/// Says how well a tool is described: from its text, its parameters, and what its manifest adds.
pub(super) fn quality_percent(tool: &ToolDefinition, tier: Tier) -> u8 {
    let is_told = tool.description.chars().nth(DESCRIPTION_CHARS_GOOD).is_some();
    let properties = tool.input_schema["properties"].as_object();
    let described =
        |properties: &serde_json::Map<String, Value>| properties.values().all(|one| one["description"].is_string());
    let parameters_told = properties.is_none_or(described);
    [(is_told, 40), (parameters_told, 30), (tier == Tier::Rich, 30)]
        .into_iter()
        .filter_map(|(holds, percent)| holds.then_some(percent))
        .sum()
}

/// Puts together what speaks for a tool.
pub(super) fn standing(quality: f32, health: &ToolHealth, now_ms: u64) -> RankingSignals {
    let boost = match decayed(health, now_ms) {
        HealthState::Healthy => HealthBoost::Healthy,
        HealthState::Unknown => HealthBoost::Unknown,
        HealthState::Broken => HealthBoost::Broken,
    };
    RankingSignals::new(boost, quality, health.uses)
}

/// Writes names and descriptions of the parameters, down to the fields of records.
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
