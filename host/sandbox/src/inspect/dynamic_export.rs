//! Checks the functions of an exported `toolwit:plugin/dynamic`, and creates the definitions of dynamic tools. The definitions
//! are created from the discovered tools: the descriptions of the dynamic tools that a component returned when it was queried.

use crate::values::tool_result::is_tool_result;
use crate::values::types::{Field, Function, Shape, WitType};
use toolwit_core::text::snake_case;
use toolwit_core::{ToolDefinition, ToolId};

/// The functions of `toolwit:plugin/dynamic`: `tools` lists the tools, and `call` calls one of them.
pub(crate) const FUNCTIONS: [&str; 2] = ["tools", "call"];

/// The cases of the type `tool-error`, in the order of the WIT.
const ERROR_CASES: [&str; 5] = ["invalid-arguments", "unavailable", "denied", "limit", "failed"];

/// Returns whether both functions have the names and types of `toolwit:plugin/dynamic`.
pub(crate) fn has_interface_types(tools: &Function, call: &Function) -> bool {
    let string = || WitType::String;
    let has_fields = |fields: &[Field], expected: &[(&str, WitType)]| {
        let is_equal = |(field, (name, ty)): (&Field, &(&str, WitType))| field.label.wit == *name && field.ty == *ty;
        fields.len() == expected.len() && fields.iter().zip(expected).all(is_equal)
    };
    let is_definition = |ty: &WitType| {
        let expected = [
            ("name", string()),
            ("description", string()),
            ("input-schema", string()),
            ("output-schema", WitType::Option(Box::new(string()))),
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
        && has_fields(&call.params, &[("name", string()), ("arguments", string())])
        && matches!(tools.outcome_types(), (Some(WitType::List(item)), Some(WitType::String)) if is_definition(item))
        && matches!(call.outcome_types(), (Some(ok), Some(error)) if is_tool_result(ok) && is_error(error))
}

/// Returns the definitions of the dynamic tools that a component listed, for a plugin of this name. Each definition comes with
/// the index of the function that calls the tool.
pub(crate) fn definitions<'a>(shape: &'a Shape, plugin: &'a str) -> impl Iterator<Item = (ToolDefinition, usize)> + 'a {
    let discovered = shape.dynamic.iter().flat_map(|dynamic| {
        let tools = dynamic.discovered_tools.iter().flatten();
        // The contract is the exported interface through which the component lists and calls its tools.
        tools.map(|tool| (tool, dynamic.contract.call_index()))
    });
    discovered.map(move |(tool, call_index)| {
        let function = &shape.functions[call_index];
        let id = ToolId::plugin(plugin, function.interface.as_deref(), &tool.name);
        let name = snake_case(&tool.name);
        // A manifest can have one text that describes all tools of the plugin. `Annotations::apply` adds this text to the docs
        // of the function that calls the dynamic tools. The text thus becomes a part of the description of each of these tools.
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
        (definition, call_index)
    })
}
