//! The manifest: metadata of a package in addition to its WIT.
//!
//! A manifest is a TOML file next to the component (`weather.toml` for `weather.wasm`) or the custom section
//! [`MANIFEST_SECTION`] in the component; the file takes precedence. Unknown keys are errors. A manifest cannot extend
//! the capabilities of a component.

pub(crate) mod amounts;
mod limited_text;
mod parse;
mod schema;
#[cfg(test)]
mod tests;
pub(crate) mod ui_pages;

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use toolwit_core::limits::LimitOverrides;
use toolwit_core::{EffectClass, Rebinding};
use toolwit_sandbox::{Annotations, EntityOptions, Requirement, ToolText};

pub use toolwit_sections::MANIFEST_SECTION;

pub(crate) use limited_text::is_valid_version;

/// The metadata of a package. All fields are optional.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct Manifest {
    /// The version of the package.
    #[serde(deserialize_with = "limited_text::deserialize_version")]
    pub version: Option<String>,
    /// A one-sentence description of the package.
    pub description: Option<String>,
    /// The category, such as `weather` or `web-scraping`.
    pub category: Option<String>,
    /// Search keywords.
    pub tags: Vec<String>,
    /// Frameworks with which the package is meant to be used. A search treats them like tags.
    pub frameworks: Vec<String>,
    /// When to use its tools.
    pub use_case: Option<String>,
    /// Tasks that its tools cannot do.
    pub limitations: Option<String>,
    /// Example requests for its tools.
    pub examples: Vec<String>,
    /// The declared quality and popularity of the package. They have little weight in a search.
    pub ranking: RankingHints,
    /// Environment variables that the package needs.
    pub environment: Vec<EnvironmentNeed>,
    /// The effect class of its tools: `read`, `idempotent` or `write`. It can only be stricter than the class that the sandbox
    /// proves.
    pub effect: Option<EffectClass>,
    /// How long the state of its functions lives. An exported resource keeps its state in any case.
    pub state: StateSetting,
    /// The effects of its tools, as text for models.
    pub hints: Hints,
    /// Limits for its calls. They can only lower the operator's limits.
    pub limits: LimitSettings,
    /// Resources whose methods are declared to the model from the start. A call fails until an instance is bound.
    pub chain: Vec<String>,
    /// Shows each interface as a facade, which reveals its functions when it is called.
    pub facade: bool,
    /// Settings of single tools.
    pub tools: Vec<ToolSettings>,
    /// Settings of resources, by name.
    pub entities: BTreeMap<String, EntitySettings>,
}

/// An environment variable that a package needs, such as an API key.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct EnvironmentNeed {
    /// The variable's name.
    #[serde(deserialize_with = "limited_text::deserialize_name")]
    pub name: String,
    /// A description of the value, and how to obtain it.
    #[serde(default, deserialize_with = "limited_text::deserialize_description")]
    pub description: String,
    /// Whether the tools of the package fail without it.
    #[serde(default)]
    pub required: bool,
}

/// The quality and the popularity of a package, as its author or an index declares them. In a search, counted calls weigh more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct RankingHints {
    /// The quality in percent.
    #[schemars(range(max = 100))]
    #[serde(deserialize_with = "amounts::deserialize_quality")]
    pub quality: Option<u8>,
    /// The popularity, such as the number of downloads.
    pub popularity: Option<u64>,
}

/// The effects of tools, as their author describes them. Models read them, but the host does not use them; see `effect`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct Hints {
    /// The tools do not change anything.
    pub read_only: Option<bool>,
    /// The tools may delete or overwrite data.
    pub destructive: Option<bool>,
    /// Repeating a call has no further effect.
    pub idempotent: Option<bool>,
}

/// Limits of a call, with units. Each key is the name of a limit in [`toolwit_core::limits`] without `_max`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct LimitSettings {
    /// The fuel, about one unit per instruction.
    pub fuel: Option<u64>,
    /// The wall-clock time, such as `5s`.
    #[serde(deserialize_with = "amounts::deserialize_duration")]
    pub wall: Option<String>,
    /// The memory, such as `64MiB`.
    #[serde(alias = "memory", deserialize_with = "amounts::deserialize_bytes")]
    pub memory_bytes: Option<String>,
    /// The size of the result, such as `64KiB`.
    #[serde(alias = "result", deserialize_with = "amounts::deserialize_bytes")]
    pub result_bytes: Option<String>,
    /// The size of standard output, standard error and log.
    #[serde(deserialize_with = "amounts::deserialize_bytes")]
    pub log_bytes: Option<String>,
    /// The size of all artifacts.
    #[serde(deserialize_with = "amounts::deserialize_bytes")]
    pub artifact_bytes: Option<String>,
    /// The number of calls into the host.
    pub host_calls: Option<u64>,
    /// The bytes that one call into the host copies.
    #[serde(deserialize_with = "amounts::deserialize_bytes")]
    pub host_call_bytes: Option<String>,
    /// The number of live host resources and component handles.
    pub resources: Option<usize>,
    /// The host memory that live host resources hold.
    #[serde(deserialize_with = "amounts::deserialize_bytes")]
    pub host_memory_bytes: Option<String>,
    /// The number of HTTP requests.
    pub http_requests: Option<u32>,
    /// The size of all HTTP requests and responses.
    #[serde(deserialize_with = "amounts::deserialize_bytes")]
    pub http_bytes: Option<String>,
    /// The depth of nested calls, the outermost included.
    pub nested_depth: Option<u32>,
    /// The number of nested calls.
    pub nested_calls: Option<u32>,
}

/// Settings of a tool.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct ToolSettings {
    /// The export: `add`, `demo:calc/ops@0.1.0#add`, `customer.find`, or the tool's name.
    pub export: String,
    /// Replaces the description from the WIT.
    #[serde(default)]
    pub description: Option<String>,
    /// When to use it.
    #[serde(default)]
    pub use_case: Option<String>,
    /// Tasks that it cannot do.
    #[serde(default)]
    pub limitations: Option<String>,
    /// Example requests.
    #[serde(default)]
    pub examples: Vec<String>,
    /// Search keywords.
    #[serde(default)]
    pub tags: Vec<String>,
    /// Its effect class: `read`, `idempotent` or `write`. It can only be stricter than the class that the sandbox proves.
    #[serde(default)]
    pub effect: Option<EffectClass>,
    /// Its effects, as text for models.
    #[serde(default)]
    pub hints: Hints,
    /// The name of an HTML file that shows its results, in clients of the extension MCP Apps. `toolwit pack` embeds the file,
    /// which is next to the manifest.
    #[serde(default, deserialize_with = "limited_text::deserialize_file_name")]
    pub ui: Option<String>,
}

/// How instances of a resource are identified and rebound.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct EntitySettings {
    /// The method that returns an instance's id. The default is `id`.
    pub id: Option<String>,
    /// Which instance is used when a call returns an entity that is already bound.
    pub rebind: RebindSetting,
}

/// Which instance is used when a call returns an entity that is already bound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum RebindSetting {
    /// The earlier one, so that its state is kept.
    #[default]
    Keep,
    /// The later one.
    Latest,
}

/// How long the state of a package's functions lives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum StateSetting {
    /// As long as the call. Each call has a fresh instance.
    #[default]
    Call,
    /// As long as the conversation. Its calls share an instance, and run one after the other. Because a call may change the state, the
    /// effect class of the functions is at least `write`.
    Conversation,
}

/// How complete a manifest is. It is computed, not declared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Tier {
    /// It has none of the fields of [`Tier::Rich`].
    #[default]
    Minimal,
    /// It has at least one of these: a use case, limitations, examples, settings of tools, environment variables,
    /// or frameworks.
    Rich,
}

impl Manifest {
    /// Computes the tier.
    #[must_use]
    pub fn tier(&self) -> Tier {
        let is_rich = self.use_case.is_some()
            || self.limitations.is_some()
            || !self.examples.is_empty()
            || !self.environment.is_empty()
            || !self.frameworks.is_empty()
            || !self.tools.is_empty();
        if is_rich { Tier::Rich } else { Tier::Minimal }
    }

    /// Converts the manifest to the annotations with which the component is inspected.
    #[must_use]
    pub fn annotations(&self) -> Annotations {
        let to_text = |description: &Option<String>,
                       use_case: &Option<String>,
                       limitations: &Option<String>,
                       examples: &[String],
                       hints: Hints| {
            let mut text = ToolText::default();
            text.description.clone_from(description);
            text.use_case.clone_from(use_case);
            text.limitations.clone_from(limitations);
            text.examples = examples.to_vec();
            text.effects = hints.description();
            text
        };
        let mut annotations = Annotations::default();
        annotations.all = to_text(&None, &self.use_case, &self.limitations, &self.examples, self.hints);
        annotations.all.effect = self.effect;
        annotations.limits = self.limits.overrides();
        annotations.keeps_state = self.state == StateSetting::Conversation;
        annotations.chain.clone_from(&self.chain);
        for need in self.environment.iter().filter(|need| need.required) {
            let mut requirement = Requirement::default();
            requirement.name.clone_from(&need.name);
            requirement.description.clone_from(&need.description);
            annotations.requirements.push(requirement);
        }
        for tool in &self.tools {
            let (examples, hints) = (&tool.examples, tool.hints);
            let mut tool_text = to_text(&tool.description, &tool.use_case, &tool.limitations, examples, hints);
            tool_text.effect = tool.effect;
            annotations.tools.insert(tool.export.clone(), tool_text);
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

    /// Returns the file names of the UI pages of its tools, each once and in alphabetical order.
    pub fn ui_pages(&self) -> impl Iterator<Item = &str> {
        let names: BTreeSet<_> = self.tools.iter().filter_map(|tool| tool.ui.as_deref()).collect();
        names.into_iter()
    }

    /// Returns the settings of the tool with this id and name. `None` if the manifest has no settings for the tool.
    #[must_use]
    pub fn tool(&self, id: &str, name: &str) -> Option<&ToolSettings> {
        let function = id.split_once('#').map_or(id, |(_, function)| function);
        let function_name = function.rsplit(']').next().unwrap_or(function);
        let export = id.split_once('/').map_or(id, |(_, export)| export);
        // `ToolSettings::export` can have any of these forms.
        let is_match = |tool: &&ToolSettings| [function, function_name, export, name].contains(&tool.export.as_str());
        self.tools.iter().find(is_match)
    }
}

impl Hints {
    /// Returns the hints as text. `None` without hints.
    fn description(self) -> Option<String> {
        let phrases = [
            (self.read_only, "it changes nothing", "it changes something"),
            (self.destructive, "it may destroy something", "it destroys nothing"),
            (
                self.idempotent,
                "calling it twice does what one call does",
                "each call counts",
            ),
        ];
        let texts: Vec<_> = phrases
            .into_iter()
            .filter_map(|(hint, if_true, if_false)| Some(if hint? { if_true } else { if_false }))
            .collect();
        (!texts.is_empty()).then(|| texts.join("; "))
    }
}

impl LimitSettings {
    /// Returns the limits as numbers. Deserialization has checked that they are valid.
    #[must_use]
    pub fn overrides(&self) -> LimitOverrides {
        let bytes = |text: &Option<String>| text.as_deref().and_then(amounts::parse_bytes);
        LimitOverrides {
            fuel_max: self.fuel,
            wall_max: self.wall.as_deref().and_then(amounts::parse_duration),
            memory_bytes_max: bytes(&self.memory_bytes),
            result_bytes_max: bytes(&self.result_bytes),
            log_bytes_max: bytes(&self.log_bytes).and_then(|bytes| usize::try_from(bytes).ok()),
            artifact_bytes_max: bytes(&self.artifact_bytes),
            host_calls_max: self.host_calls,
            host_call_bytes_max: bytes(&self.host_call_bytes),
            resources_max: self.resources,
            host_memory_bytes_max: bytes(&self.host_memory_bytes),
            http_requests_max: self.http_requests,
            http_bytes_max: bytes(&self.http_bytes),
            nested_depth_max: self.nested_depth,
            nested_calls_max: self.nested_calls,
        }
    }
}
