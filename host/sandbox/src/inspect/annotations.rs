//! The annotations that a package adds to its component: texts for models, options of entities, requested limits and required
//! values.

use std::collections::BTreeMap;

use crate::values::types::{Function, FunctionKind, Shape, WitType};
use toolwit_core::limits::{DESCRIPTION_CHARS_MAX, LimitOverrides};
use toolwit_core::text::printable;
use toolwit_core::text::snake_case;
use toolwit_core::{EffectClass, Error, ErrorKind, Phase, Rebinding};

/// The annotations that a package adds to its component. Annotations cannot grant capabilities.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Annotations {
    /// Text for all tools, appended to the text of each tool. Its `description` is not used.
    pub all: ToolText,
    /// Text for single tools, by export (`add`, `demo:calc/ops@0.1.0#add`, `customer.find`) or tool name.
    pub tools: BTreeMap<String, ToolText>,
    /// Options of the exported resources, by name.
    pub entities: BTreeMap<String, EntityOptions>,
    /// The names of the resources whose methods are initial tools and act on the most recently returned instance.
    pub chain: Vec<String>,
    /// The limits that the package requests. They can only lower the limits of a call.
    pub limits: LimitOverrides,
    /// The values that all tools require.
    pub requirements: Vec<Requirement>,
    /// Whether the functions share state: the calls of a conversation then share an instance, also if the component exports no
    /// resources.
    pub keeps_state: bool,
}

/// A value that a plugin requires, such as an API key or a URL. The host looks up the value at each call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Requirement {
    /// The name of the environment variable, the secret or the setting.
    pub name: String,
    /// The meaning of the value, and how to obtain it.
    pub description: String,
}

/// Text of a package about a tool, for the model. The text is appended to the tool's docs; a `description` replaces the docs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ToolText {
    /// The text that replaces the docs.
    pub description: Option<String>,
    /// The situation in which to use the tool.
    pub use_case: Option<String>,
    /// The limitations of the tool.
    pub limitations: Option<String>,
    /// Example requests.
    pub examples: Vec<String>,
    /// The tool's effects as its author describes them, such as `changes nothing`. The model reads this text; the host does not use
    /// it for decisions.
    pub effects: Option<String>,
    /// The effect class that the author claims. The claim can only raise the class that the sandbox proves.
    pub effect: Option<EffectClass>,
}

/// The label of the effects in a description. If a description already contains this label, [`ToolText::describe`] does not add
/// effects again. So the effects in a tool's own text take precedence over those in the text for all tools.
const EFFECTS_LABEL: &str = "Effects declared by the author";

/// The options of a resource: how its instances are identified and replaced.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct EntityOptions {
    /// The method that returns the id, instead of `id`.
    pub id: Option<String>,
    /// The instance that is used after a call has returned the same entity again.
    pub rebinding: Rebinding,
}

impl Annotations {
    /// Applies the texts and options to the shape of a component.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`] for an export, a resource or an id method that the component does not have. An id method
    /// has no parameters and returns a string.
    pub(crate) fn apply(&self, shape: &mut Shape) -> Result<(), Error> {
        shape.keeps_state = self.keeps_state;
        for (export, text) in &self.tools {
            let mut is_exported = false;
            for index in 0..shape.functions.len() {
                if refers_to(shape, export, &shape.functions[index]) {
                    is_exported = true;
                    let function = &mut shape.functions[index];
                    function.effect = text.effect.or(function.effect);
                    text.describe(function);
                }
            }
            if !is_exported {
                return Err(not_exported(shape, "tools", export));
            }
        }
        for function in &mut shape.functions {
            let text = ToolText {
                description: None,
                ..self.all.clone()
            };
            function.effect = function.effect.or(text.effect);
            text.describe(function);
        }
        for (name, options) in &self.entities {
            options.apply(shape, name)?;
        }
        for name in &self.chain {
            let Some(index) = resource_index(shape, name) else {
                return Err(not_exported(shape, "chain", name));
            };
            shape.resources[index].is_chained = true;
        }
        Ok(())
    }
}

impl ToolText {
    /// Replaces the docs of a function with the description for the model: the `description` of this text or else the docs, then
    /// the use case, limitations, examples and effects.
    fn describe(&self, function: &mut Function) {
        let mut paragraphs: Vec<String> = self
            .description
            .clone()
            .or_else(|| function.docs.take())
            .into_iter()
            .collect();
        let with_label = |label: &str, text: &String| format!("{label}: {text}");
        paragraphs.extend(self.use_case.as_ref().map(|text| with_label("Use when", text)));
        paragraphs.extend(self.limitations.as_ref().map(|text| with_label("Limitations", text)));
        if !self.examples.is_empty() {
            paragraphs.push(format!("Examples: {}", self.examples.join("; ")));
        }
        let has_effects = paragraphs.iter().any(|paragraph| paragraph.contains(EFFECTS_LABEL));
        paragraphs.extend(
            self.effects
                .as_ref()
                .filter(|_| !has_effects)
                .map(|text| with_label(EFFECTS_LABEL, text)),
        );
        let description = printable(paragraphs.join("\n\n").trim());
        function.docs = (!description.is_empty()).then(|| description.chars().take(DESCRIPTION_CHARS_MAX).collect());
    }
}

impl EntityOptions {
    /// Applies the options to the resource of this name.
    fn apply(&self, shape: &mut Shape, name: &str) -> Result<(), Error> {
        let Some(index) = resource_index(shape, name) else {
            return Err(not_exported(shape, "entities", name));
        };
        shape.resources[index].rebinding = self.rebinding;
        let Some(id) = &self.id else { return Ok(()) };
        let method = shape.resources[index].methods.iter().copied().find(|method| {
            let function = &shape.functions[*method];
            (function.name == *id || snake_case(&function.name) == *id)
                && function.params.is_empty()
                && matches!(function.result, Some(WitType::String))
        });
        let Some(method) = method else {
            return Err(configuration_error(format!(
                "the manifest names `{id}` as the id of `{name}`, but `{name}` has no method `{id}()` that returns a string"
            )));
        };
        shape.resources[index].id_method = Some(method);
        Ok(())
    }
}

fn resource_index(shape: &Shape, name: &str) -> Option<usize> {
    let mut resources = shape.resources.iter();
    resources.position(|resource| resource.name == name || resource.json_name() == name)
}

/// Returns whether a name in a manifest refers to a function: the name of the export or of the tool.
fn refers_to(shape: &Shape, name: &str, function: &Function) -> bool {
    let tool_name = match function.kind {
        FunctionKind::Constructor(index) | FunctionKind::Static(index) | FunctionKind::Method(index) => {
            format!(
                "{}_{}",
                shape.resources[index.0].json_name(),
                snake_case(&function.name)
            )
        }
        FunctionKind::Free | FunctionKind::Command | FunctionKind::Dynamic | FunctionKind::Interceptor => {
            snake_case(&function.name)
        }
    };
    // The tag is the prefix in brackets: `[method]customer.find` without it is `customer.find`.
    let untagged_export = function.export.rsplit(']').next().unwrap_or(&function.export);
    let is_qualified_name = |interface: &str| {
        name.strip_prefix(interface)
            .and_then(|suffix| suffix.strip_prefix('#'))
            .is_some_and(|export| export == function.export || export == untagged_export)
    };
    name == function.export
        || name == untagged_export
        || name == tool_name
        || function.interface.as_deref().is_some_and(is_qualified_name)
}

/// Returns the error for a name in the manifest that the component does not export. `section` is the part of the manifest that
/// contains the name.
fn not_exported(shape: &Shape, section: &str, name: &str) -> Error {
    let exports: Vec<_> = match section {
        "tools" => shape
            .functions
            .iter()
            .map(|function| format!("`{}`", function.export))
            .take(8)
            .collect(),
        _ => shape
            .resources
            .iter()
            .map(|resource| format!("`{}`", resource.name))
            .take(8)
            .collect(),
    };
    let error = configuration_error(format!(
        "the manifest describes `{name}` under `{section}`, which the component does not export"
    ));
    if exports.is_empty() {
        error
    } else {
        error.with_suggestion(format!("it exports {}", exports.join(", ")))
    }
}

fn configuration_error(message: String) -> Error {
    Error::new(ErrorKind::Configuration, Phase::Registry, message)
}
