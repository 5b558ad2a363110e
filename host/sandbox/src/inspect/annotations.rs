//! What a package says about its component beside the component itself: texts for models, entity options, lower bounds.

use std::collections::BTreeMap;

use crate::values::types::{Function, FunctionKind, Shape, WitType};
use toolwit_core::Rebinding;
use toolwit_core::limits::LimitRequest;
use toolwit_core::text::printable;
use toolwit_core::text::snake_case;
use toolwit_core::{Error, ErrorKind, Phase};

/// The longest description of a tool with all that a manifest adds to it, in characters.
pub(crate) const DESCRIPTION_CHARS_MAX: usize = 8_192;

/// What a package says about its component. It never widens what the component may do.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Annotations {
    /// What is said about every tool, after what is said about the tool itself.
    pub all: ToolText,
    /// What is said about single tools, by export (`add`, `demo:calc/ops@0.1.0#add`, `customer.find`) or tool name.
    pub tools: BTreeMap<String, ToolText>,
    /// What is said about resources, by name.
    pub entities: BTreeMap<String, EntityOptions>,
    /// Resources whose methods are declared from the start and act on the instance that was returned last, by name.
    pub chain: Vec<String>,
    /// The bounds that the package asks for itself; they can only lower those that hold.
    pub limits: LimitRequest,
    /// The values without which none of its tools works.
    pub requirements: Vec<Requirement>,
}

/// A value that a plugin needs: a key, an address. It is looked up anew at each call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Requirement {
    /// The name of the environment variable, the secret or the setting.
    pub name: String,
    /// What it is, and where to get one.
    pub description: String,
}

/// What a model is told about a tool beside its own docs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ToolText {
    /// Takes the place of the docs.
    pub description: Option<String>,
    /// When to use it.
    pub use_case: Option<String>,
    /// What it cannot do.
    pub limitations: Option<String>,
    /// Requests that it answers.
    pub examples: Vec<String>,
    /// What its author says about its effects: `changes nothing`. It is shown, and trusted for no decision.
    pub effects: Option<String>,
}

/// What effects are told under. What is said about a tool wins over what is said about all.
const EFFECTS: &str = "Effects, as its author says";

/// How the instances of a resource are told apart and kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct EntityOptions {
    /// The method that gives the id, in place of `id`.
    pub id: Option<String>,
    /// Which instance stays when the same entity is returned again.
    pub rebinding: Rebinding,
}

impl Annotations {
    /// Writes the texts and options into a component's shape.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`] that names an export, a resource or a method which the component lacks.
    pub(crate) fn apply(&self, shape: &mut Shape) -> Result<(), Error> {
        for (export, text) in &self.tools {
            let mut found = false;
            for at in 0..shape.functions.len() {
                if is_named(shape, &shape.functions[at], export) {
                    found = true;
                    text.describe(&mut shape.functions[at]);
                }
            }
            if !found {
                return Err(lacks(shape, "tools", export));
            }
        }
        for function in &mut shape.functions {
            let text = ToolText {
                description: None,
                ..self.all.clone()
            };
            text.describe(function);
        }
        for (name, options) in &self.entities {
            options.apply(shape, name)?;
        }
        for name in &self.chain {
            let Some(at) = resource_named(shape, name) else {
                return Err(lacks(shape, "chain", name));
            };
            shape.resources[at].chained = true;
        }
        Ok(())
    }
}

impl ToolText {
    /// Makes the description that a model reads: what it is, when to use it, what it cannot do, examples.
    fn describe(&self, function: &mut Function) {
        let mut parts: Vec<String> = self
            .description
            .clone()
            .or_else(|| function.docs.take())
            .into_iter()
            .collect();
        let labelled = |label: &str, text: &String| format!("{label}: {text}");
        parts.extend(self.use_case.as_ref().map(|text| labelled("Use when", text)));
        parts.extend(self.limitations.as_ref().map(|text| labelled("Limitations", text)));
        if !self.examples.is_empty() {
            parts.push(format!("Examples: {}", self.examples.join("; ")));
        }
        let are_told = parts.iter().any(|part| part.contains(EFFECTS));
        parts.extend(
            self.effects
                .as_ref()
                .filter(|_| !are_told)
                .map(|text| labelled(EFFECTS, text)),
        );
        let whole = printable(parts.join("\n\n").trim());
        function.docs = (!whole.is_empty()).then(|| whole.chars().take(DESCRIPTION_CHARS_MAX).collect());
    }
}

impl EntityOptions {
    fn apply(&self, shape: &mut Shape, name: &str) -> Result<(), Error> {
        let Some(at) = resource_named(shape, name) else {
            return Err(lacks(shape, "entities", name));
        };
        shape.resources[at].rebinding = self.rebinding;
        let Some(id) = &self.id else { return Ok(()) };
        let method = shape.resources[at].methods.iter().copied().find(|method| {
            let function = &shape.functions[*method];
            (function.name == *id || snake_case(&function.name) == *id)
                && function.params.is_empty()
                && matches!(function.result, Some(WitType::String))
        });
        let Some(method) = method else {
            return Err(wrong(format!(
                "the manifest names `{id}` as the id of `{name}`, which has no such method without parameters that returns a string"
            )));
        };
        shape.resources[at].id = Some(method);
        Ok(())
    }
}

fn resource_named(shape: &Shape, name: &str) -> Option<usize> {
    let mut resources = shape.resources.iter();
    resources.position(|resource| resource.name == name || resource.json_name() == name)
}

/// Whether a manifest's name means this function.
fn is_named(shape: &Shape, function: &Function, wanted: &str) -> bool {
    let tool_name = match function.kind {
        FunctionKind::Constructor(index) | FunctionKind::Static(index) | FunctionKind::Method(index) => {
            format!(
                "{}_{}",
                shape.resources[index.0].json_name(),
                snake_case(&function.name)
            )
        }
        FunctionKind::Free | FunctionKind::Command | FunctionKind::Dynamic => snake_case(&function.name),
    };
    let plain = function.export.rsplit(']').next().unwrap_or(&function.export);
    let of_interface = |interface: &str| {
        wanted
            .strip_prefix(interface)
            .and_then(|rest| rest.strip_prefix('#'))
            .is_some_and(|export| export == function.export || export == plain)
    };
    wanted == function.export
        || wanted == plain
        || wanted == tool_name
        || function.interface.as_deref().is_some_and(of_interface)
}

fn lacks(shape: &Shape, section: &str, wanted: &str) -> Error {
    let known: Vec<_> = match section {
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
    let error = wrong(format!(
        "the manifest describes `{wanted}` under `{section}`, which the component does not export"
    ));
    match known.is_empty() {
        true => error,
        false => error.with_suggestion(format!("it exports {}", known.join(", "))),
    }
}

fn wrong(message: String) -> Error {
    Error::new(ErrorKind::Configuration, Phase::Registry, message)
}
