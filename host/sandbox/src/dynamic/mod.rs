//! `toolwit:plugin/dynamic`: tools that a component tells when it runs, with schemas that nobody knew before.
//!
//! It is asked once ([`Plugin::discover_tools`](super::Plugin::discover_tools)), under the bounds of a call and tighter ones. What it
//! tells is checked as a stranger's word and becomes part of the inspection, so that listing runs nothing.

mod call;
mod schema;
mod take;
mod told;

use serde::{Deserialize, Serialize};

pub(crate) use call::{DynamicCall, answered};
pub(crate) use told::{ToldTool, definitions};

use crate::link::host_api::{PACKAGE, is_compatible, is_tool_result};
use crate::values::types::{Field, Function, WitType};

/// The functions of the interface.
pub(crate) const FUNCTIONS: [&str; 2] = ["tools", "call"];

/// Where a component tells its tools, and what it told.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct DynamicExport {
    /// Which function of the shape lists them.
    pub(crate) tools: usize,
    /// Which one calls them.
    pub(crate) call: usize,
    /// What was told; nothing before it was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) told: Option<Vec<ToldTool>>,
}

impl DynamicExport {
    pub(crate) fn at(tools: usize, call: usize) -> Self {
        Self {
            tools,
            call,
            told: None,
        }
    }
}

/// Whether an export is the interface, in a version that this host knows.
pub(crate) fn is_interface(export: &str) -> bool {
    let rest = export
        .strip_prefix(PACKAGE)
        .and_then(|rest| rest.strip_prefix("dynamic@"));
    rest.and_then(|version| semver::Version::parse(version).ok())
        .is_some_and(|version| is_compatible(&version))
}

/// Whether both functions are of the types that the interface says.
pub(crate) fn fits(tools: &Function, call: &Function) -> bool {
    let text = || WitType::String;
    let are = |fields: &[Field], wanted: &[(&str, WitType)]| {
        let same = |(field, (name, ty)): (&Field, &(&str, WitType))| field.label.wit == *name && field.ty == *ty;
        fields.len() == wanted.len() && fields.iter().zip(wanted).all(same)
    };
    let is_definition = |ty: &WitType| {
        let wanted = [
            ("name", text()),
            ("description", text()),
            ("input-schema", text()),
            ("output-schema", WitType::Option(Box::new(text()))),
        ];
        matches!(ty, WitType::Record(fields) if are(fields, &wanted))
    };
    let is_error = |ty: &WitType| {
        let WitType::Variant(cases) = ty else { return false };
        let names = cases.iter().map(|case| case.label.wit.as_str());
        cases.iter().all(|case| case.ty == Some(WitType::String)) && names.eq(call::ERRORS)
    };
    tools.name == FUNCTIONS[0]
        && call.name == FUNCTIONS[1]
        && tools.params.is_empty()
        && are(&call.params, &[("name", text()), ("arguments", text())])
        && matches!(tools.outcome(), (Some(WitType::List(item)), Some(WitType::String)) if is_definition(item))
        && matches!(call.outcome(), (Some(ok), Some(error)) if is_tool_result(ok) && is_error(error))
}

#[cfg(test)]
mod tests;
