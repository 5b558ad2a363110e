//! What a package says about itself that its WIT cannot: texts for models and search, needs, bounds.
//!
//! A manifest is TOML beside the component (`weather.toml` beside `weather.wasm`) or inside it, as the custom section
//! [`MANIFEST_SECTION`]; the file beside it wins. An unknown key is refused with its line and column, so that a slip of the
//! pen is seen. Nothing in it widens what the component may do.

mod amounts;
mod parse;
mod schema;
#[cfg(test)]
mod tests;

pub use parse::MANIFEST_BYTES_MAX;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use toolwit_core::Rebinding;
use toolwit_core::limits::LimitRequest;
use toolwit_sandbox::{Annotations, EntityOptions, Requirement, ToolText};

pub use toolwit_sections::MANIFEST_SECTION;

/// What a package says about itself. Everything is optional.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct Manifest {
    /// The version of the package, as its author counts.
    pub version: Option<String>,
    /// What the package is for, in a sentence.
    pub description: Option<String>,
    /// The one shelf that it stands on: `weather`, `web-scraping`.
    pub category: Option<String>,
    /// Words that it is found by.
    pub tags: Vec<String>,
    /// Frameworks that it was made for; they count as tags.
    pub frameworks: Vec<String>,
    /// When to use its tools.
    pub use_case: Option<String>,
    /// What its tools cannot do.
    pub limitations: Option<String>,
    /// Requests that its tools answer.
    pub examples: Vec<String>,
    /// Values that it needs from the environment.
    pub environment: Vec<EnvironmentNeed>,
    /// What its author says about the effects of its tools.
    pub hints: Hints,
    /// Bounds that it asks for itself; they can only lower those that hold.
    pub limits: LimitSettings,
    /// Resources whose methods are declared from the start and answer once an instance is bound.
    pub chain: Vec<String>,
    /// Shows each interface as one tool, which opens into its functions when it is called.
    pub facade: bool,
    /// What is said about single tools.
    pub tools: Vec<ToolSettings>,
    /// What is said about resources, by name.
    pub entities: BTreeMap<String, EntitySettings>,
}

/// A value that a package needs from the environment, such as a key.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct EnvironmentNeed {
    /// The variable's name.
    pub name: String,
    /// What it is, and where to get one.
    #[serde(default)]
    pub description: String,
    /// Whether no tool of the package works without it.
    #[serde(default)]
    pub required: bool,
}

/// What an author says about the effects of tools. It is shown, and trusted for no decision.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct Hints {
    /// They change nothing.
    pub read_only: Option<bool>,
    /// They may destroy something.
    pub destructive: Option<bool>,
    /// The same call twice does what it does once.
    pub idempotent: Option<bool>,
}

/// Bounds, written as people write amounts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct LimitSettings {
    /// Fuel of a call.
    pub fuel: Option<u64>,
    /// Wall-clock time of a call: `5s`.
    #[serde(deserialize_with = "amounts::span")]
    pub wall: Option<String>,
    /// Memory of a call: `64MiB`.
    #[serde(deserialize_with = "amounts::bytes")]
    pub memory: Option<String>,
    /// The result of a call: `64KiB`.
    #[serde(deserialize_with = "amounts::bytes")]
    pub result: Option<String>,
}

/// What is said about one tool.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct ToolSettings {
    /// The export: `add`, `demo:calc/ops@0.1.0#add`, `customer.find`, or the tool's name.
    pub export: String,
    /// Takes the place of its docs.
    #[serde(default)]
    pub description: Option<String>,
    /// When to use it.
    #[serde(default)]
    pub use_case: Option<String>,
    /// What it cannot do.
    #[serde(default)]
    pub limitations: Option<String>,
    /// Requests that it answers.
    #[serde(default)]
    pub examples: Vec<String>,
    /// Words that it is found by.
    #[serde(default)]
    pub tags: Vec<String>,
    /// What its author says about its effects.
    #[serde(default)]
    pub hints: Hints,
}

/// How instances of a resource are told apart and kept.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct EntitySettings {
    /// The method that gives the id, in place of `id`.
    pub id: Option<String>,
    /// Which instance stays when the same entity is returned again.
    pub rebind: RebindSetting,
}

/// Which instance stays when the same entity is returned again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum RebindSetting {
    /// The live one, so that a cart keeps its items.
    #[default]
    Keep,
    /// The newest one.
    Latest,
}

/// How much a package says about itself. It is computed, never declared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Tier {
    /// What its WIT says.
    #[default]
    Minimal,
    /// Use case, limitations, examples, per-tool text, environment needs or frameworks too.
    Rich,
}

impl Manifest {
    /// Computes the tier.
    #[must_use]
    pub fn tier(&self) -> Tier {
        let says_more = self.use_case.is_some()
            || self.limitations.is_some()
            || !self.examples.is_empty()
            || !self.environment.is_empty()
            || !self.frameworks.is_empty()
            || !self.tools.is_empty();
        if says_more { Tier::Rich } else { Tier::Minimal }
    }

    /// Returns what it says about the component.
    #[must_use]
    pub fn annotations(&self) -> Annotations {
        let text = |description: &Option<String>,
                    use_case: &Option<String>,
                    limitations: &Option<String>,
                    examples: &[String],
                    hints: Hints| {
            let mut text = ToolText::default();
            text.description.clone_from(description);
            text.use_case.clone_from(use_case);
            text.limitations.clone_from(limitations);
            text.examples = examples.to_vec();
            text.effects = hints.told();
            text
        };
        let mut annotations = Annotations::default();
        annotations.all = text(&None, &self.use_case, &self.limitations, &self.examples, self.hints);
        annotations.limits = self.limits.request();
        annotations.chain.clone_from(&self.chain);
        for need in self.environment.iter().filter(|need| need.required) {
            let mut needed = Requirement::default();
            needed.name.clone_from(&need.name);
            needed.description.clone_from(&need.description);
            annotations.requirements.push(needed);
        }
        for tool in &self.tools {
            let (examples, hints) = (&tool.examples, tool.hints);
            let told = text(&tool.description, &tool.use_case, &tool.limitations, examples, hints);
            annotations.tools.insert(tool.export.clone(), told);
        }
        for (name, entity) in &self.entities {
            let mut options = EntityOptions::default();
            options.id.clone_from(&entity.id);
            options.rebinding = match entity.rebind {
                RebindSetting::Keep => Rebinding::Keep,
                RebindSetting::Latest => Rebinding::Latest,
            };
            annotations.entities.insert(name.clone(), options);
        }
        annotations
    }

    /// Finds what it says about a tool, by its id and name.
    #[must_use]
    pub fn tool(&self, id: &str, name: &str) -> Option<&ToolSettings> {
        let function = id.split_once('#').map_or(id, |(_, function)| function);
        let plain = function.rsplit(']').next().unwrap_or(function);
        let whole = id.split_once('/').map_or(id, |(_, whole)| whole);
        let is_meant = |tool: &&ToolSettings| [function, plain, whole, name].contains(&tool.export.as_str());
        self.tools.iter().find(is_meant)
    }
}

impl Hints {
    /// Says it in words; nothing where nothing is said.
    fn told(self) -> Option<String> {
        let words = [
            (self.read_only, "it changes nothing", "it changes something"),
            (self.destructive, "it may destroy something", "it destroys nothing"),
            (
                self.idempotent,
                "calling it twice does what one call does",
                "each call counts",
            ),
        ];
        let told: Vec<_> = words
            .into_iter()
            .filter_map(|(hint, yes, no)| Some(if hint? { yes } else { no }))
            .collect();
        (!told.is_empty()).then(|| told.join("; "))
    }
}

impl LimitSettings {
    /// Returns the bounds. Amounts were checked when they were read.
    fn request(&self) -> LimitRequest {
        let mut request = LimitRequest::none();
        request.fuel_max = self.fuel;
        request.wall_max = self.wall.as_deref().and_then(amounts::parse_span);
        request.memory_bytes_max = self.memory.as_deref().and_then(amounts::parse_bytes);
        request.result_bytes_max = self.result.as_deref().and_then(amounts::parse_bytes);
        request
    }
}
