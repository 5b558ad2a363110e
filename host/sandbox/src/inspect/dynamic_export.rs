//! Checks the functions that a component exports for `toolwit:plugin/dynamic`, and defines the discovered tools of any
//! contract.

use crate::values::tool_result::is_tool_result;
use crate::values::types::{Field, Function, Shape, WitType};
use toolwit_core::text::snake_case;
use toolwit_core::{ToolDefinition, ToolId};

/// The functions of the interface: one lists the tools, one calls a tool.
pub(crate) const FUNCTIONS: [&str; 2] = ["tools", "call"];

/// The cases of `tool-error`, in the order of the WIT.
const ERROR_CASES: [&str; 5] = ["invalid-arguments", "unavailable", "denied", "limit", "failed"];

/// Returns whether both functions have the types of the interface.
pub(crate) fn has_interface_types(tools: &Function, call: &Function) -> bool {
    let text = || WitType::String;
    let has_fields = |fields: &[Field], expected: &[(&str, WitType)]| {
        let is_same = |(field, (name, ty)): (&Field, &(&str, WitType))| field.label.wit == *name && field.ty == *ty;
        fields.len() == expected.len() && fields.iter().zip(expected).all(is_same)
    };
    let is_definition = |ty: &WitType| {
        let expected = [
            ("name", text()),
            ("description", text()),
            ("input-schema", text()),
            ("output-schema", WitType::Option(Box::new(text()))),
        ];
        matches!(ty, WitType::Record(fields) if has_fields(fields, &expected))
    };
    let is_error = |ty: &WitType| {
        let WitType::Variant(cases) = ty else { return false };
        let names = cases.iter().map(|case| case.label.wit.as_str());
        cases.iter().all(|case| case.ty == Some(WitType::String)) && names.eq(ERROR_CASES)
    };
    tools.name == FUNCTIONS[0]
        && call.name == FUNCTIONS[1]
        && tools.params.is_empty()
        && has_fields(&call.params, &[("name", text()), ("arguments", text())])
        && matches!(tools.outcome(), (Some(WitType::List(item)), Some(WitType::String)) if is_definition(item))
        && matches!(call.outcome(), (Some(ok), Some(error)) if is_tool_result(ok) && is_error(error))
}

/// Returns the definitions of the discovered tools for a plugin of this name, each with the index of the function that calls
/// it.
pub(crate) fn definitions<'a>(shape: &'a Shape, plugin: &'a str) -> impl Iterator<Item = (ToolDefinition, usize)> + 'a {
    let discovered = shape.dynamic.iter().flat_map(|dynamic| {
        let tools = dynamic.discovered.iter().flatten();
        tools.map(|tool| (tool, dynamic.contract.call_index()))
    });
    discovered.map(move |(tool, call)| {
        let function = &shape.functions[call];
        let id = ToolId::plugin(plugin, function.interface.as_deref(), &tool.name);
        let name = snake_case(&tool.name);
        // The manifest's texts for all tools are stored in the docs of the function that calls a tool.
        let parts = [Some(&tool.description), function.docs.as_ref()];
        let parts: Vec<_> = parts.into_iter().flatten().filter(|part| !part.is_empty()).collect();
        let description = match parts.as_slice() {
            [] => format!("`{name}` of `{plugin}`."),
            parts => parts.iter().map(|part| part.as_str()).collect::<Vec<_>>().join("\n\n"),
        };
        let mut definition = ToolDefinition::new(id, &*name, description, tool.input_schema.clone())
            .with_fallback_name(format!("{}_{name}", snake_case(plugin)));
        definition.effect = tool.effect;
        if let Some(schema) = &tool.output_schema {
            definition = definition.with_output_schema(schema.clone());
        }
        (definition, call)
    })
}
