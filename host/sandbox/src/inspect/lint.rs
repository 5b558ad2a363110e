//! Lints for authors: they find docs, names and WIT that make the tools of a working component hard to understand for models.

use std::collections::{BTreeMap, HashSet};

use serde::Serialize;
use wit_parser::{InterfaceId, Resolve, WorldItem};

use super::annotations::Annotations;
use super::inspection::{Inspection, PackageContext, wit_of};
use crate::values::types::{Function, Shape};
use toolwit_core::Error;

/// Parameter names that do not describe the expected value.
const VAGUE_NAMES: [&str; 12] = [
    "arg", "args", "data", "foo", "in", "info", "input", "obj", "param", "params", "val", "value",
];

/// The ways to keep state between the calls of a conversation.
pub const KEEP_STATE: &str =
    "export a resource whose methods use the state, or set `state = \"conversation\"` in the manifest";

/// A rule of [`lint`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum LintRule {
    /// The WIT file next to the component is unreadable, invalid, or does not describe every function.
    Wit,
    /// A function or a resource has no doc comment.
    MissingDocs,
    /// The name of a parameter does not describe its value, and the docs do not mention the name in backticks.
    UnclearParameter,
    /// Several tools have the same name, so that a model sees their longer fallback names.
    DuplicateName,
    /// The WIT has an interface that contains functions, but that no world imports or exports.
    UnusedWit,
    /// A function seems to keep something for later calls, but each call has a fresh instance.
    LostState,
}

/// A finding of [`lint`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Lint {
    /// The rule.
    pub rule: LintRule,
    /// The name of the function, resource, interface, tool or file that the finding is about.
    pub subject: String,
    /// The problem, in one sentence.
    pub message: String,
    /// The fix that the author can make.
    pub suggestion: String,
}

impl Lint {
    fn new(rule: LintRule, subject: impl Into<String>, message: String, suggestion: &str) -> Self {
        Self {
            rule,
            subject: subject.into(),
            message,
            suggestion: suggestion.to_owned(),
        }
    }
}

/// Checks the docs, names and WIT of a component. Blocks like [`Inspection::from_bytes`]; executes nothing.
///
/// # Errors
/// Those of [`Inspection::from_bytes_with`].
pub fn lint(bytes: &[u8], context: PackageContext<'_>, annotations: &Annotations) -> Result<Vec<Lint>, Error> {
    let inspection = Inspection::from_bytes_with(bytes, context, annotations)?;
    let mut findings = Vec::new();
    if let Some(problem) = &inspection.wit_problem {
        let file = format!("{}.wit", context.name);
        let suggestion = "replace it with the WIT from which the component was built, or delete it";
        findings.push(Lint::new(LintRule::Wit, file, problem.clone(), suggestion));
    }
    lint_shape(&inspection.shape, &mut findings);
    lint_tool_names(&inspection, &mut findings);
    if let Some(function) = inspection.lost_state() {
        let message = "it returns nothing, and what it keeps in the component is lost when its call ends".to_owned();
        findings.push(Lint::new(LintRule::LostState, function, message, KEEP_STATE));
    }
    if let Some(wit) = wit_of(bytes, context) {
        lint_unused_interfaces(&wit, &mut findings);
    }
    findings.sort_by(|a, b| (a.rule, &a.subject).cmp(&(b.rule, &b.subject)));
    Ok(findings)
}

fn lint_shape(shape: &Shape, findings: &mut Vec<Lint>) {
    let functions = shape.functions.iter();
    for function in functions.filter(|function| !function.kind.is_for_host()) {
        let Some(docs) = &function.docs else {
            let message = "it has no doc comment, so that a model only sees its name and types".to_owned();
            let suggestion = "write doc comments in the WIT, and embed it in the component";
            findings.push(Lint::new(LintRule::MissingDocs, subject(function), message, suggestion));
            continue;
        };
        for parameter in &function.params {
            let name = &parameter.label.wit;
            let is_vague = name.chars().count() == 1 || VAGUE_NAMES.contains(&name.as_str());
            if is_vague && !docs.contains(&format!("`{name}`")) {
                let message = format!("the parameter `{name}` is not explained");
                let suggestion = "rename it, or mention it in the doc comment, in backticks";
                findings.push(Lint::new(
                    LintRule::UnclearParameter,
                    subject(function),
                    message,
                    suggestion,
                ));
            }
        }
    }
    for resource in shape.resources.iter().filter(|resource| resource.docs.is_none()) {
        let message = "the resource has no doc comment".to_owned();
        let suggestion = "write a `///` comment above it in the WIT";
        findings.push(Lint::new(LintRule::MissingDocs, &resource.name, message, suggestion));
    }
}

/// Returns the name of a function with its interface, as the component exports it.
fn subject(function: &Function) -> String {
    match &function.interface {
        Some(interface) => format!("{interface}#{}", function.export),
        None => function.export.clone(),
    }
}

fn lint_tool_names(inspection: &Inspection, findings: &mut Vec<Lint>) {
    let mut ids_by_name: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for tool in &inspection.tools {
        ids_by_name
            .entry(tool.name())
            .or_default()
            .push(format!("`{}`", tool.id));
    }
    for (name, ids) in ids_by_name.into_iter().filter(|(_, ids)| ids.len() > 1) {
        let message = format!("{} tools have this name: {}", ids.len(), ids.join(", "));
        let suggestion = "rename all but one of the functions";
        findings.push(Lint::new(LintRule::DuplicateName, name, message, suggestion));
    }
}

/// Finds the interfaces that contain functions, but that no world imports or exports. Checks only packages with a world that has
/// exports. Every other package is a dependency, and a component need not use all interfaces of a dependency.
fn lint_unused_interfaces(wit: &Resolve, findings: &mut Vec<Lint>) {
    let is_interface =
        |item: &WorldItem, expected: InterfaceId| matches!(item, WorldItem::Interface { id, .. } if *id == expected);
    let is_used = |id: InterfaceId| {
        let mut worlds = wit.worlds.iter();
        worlds.any(|(_, world)| {
            world
                .imports
                .values()
                .chain(world.exports.values())
                .any(|item| is_interface(item, id))
        })
    };
    let own_worlds = wit.worlds.iter().filter(|(_, world)| !world.exports.is_empty());
    let own_packages: HashSet<_> = own_worlds.filter_map(|(_, world)| world.package).collect();
    for (id, interface) in wit.interfaces.iter() {
        let is_own = interface.package.is_some_and(|package| own_packages.contains(&package));
        if is_own && !interface.functions.is_empty() && !is_used(id) {
            let name = wit.id_of(id).unwrap_or_default();
            let message = "no world imports or exports the interface".to_owned();
            findings.push(Lint::new(
                LintRule::UnusedWit,
                name,
                message,
                "export it from the world, or delete it",
            ));
        }
    }
}
