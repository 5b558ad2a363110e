//! Definitions of tools and entity types, as text.

use crate::output::page::{FAINT, NAME, Page, first_sentence};
use crate::output::schema;
use toolwit::sandbox::EntityType;
use toolwit::tool::ToolDefinition;

/// Writes the signature of a tool and the first sentence of its description.
pub(crate) fn write_summary(page: &mut Page, definition: &ToolDefinition, indent: usize) {
    write_signature(page, definition, indent);
    page.spaces(indent + 4)
        .styled(FAINT, first_sentence(&definition.description))
        .end();
}

/// Writes an entity type with its methods.
pub(crate) fn write_entity_type(page: &mut Page, entity_type: &EntityType, indent: usize) {
    page.spaces(indent).styled(NAME, &entity_type.name).end();
    if let Some(description) = &entity_type.description {
        page.block(indent + 4, FAINT, description);
    }
    for method in &entity_type.methods {
        write_summary(page, method, indent + 4);
    }
}

/// Writes the full definition of a tool.
pub(crate) fn write_definition(page: &mut Page, definition: &ToolDefinition, effect: &str) {
    page.styled(NAME, definition.name()).end();
    page.styled(FAINT, &definition.id).end();
    page.styled(FAINT, format_args!("effect: {effect}")).end();
    page.gap().block(2, anstyle::Style::new(), &definition.description);
    page.title("Arguments");
    match definition.input_schema["properties"].as_object() {
        Some(properties) if !properties.is_empty() => schema::write_properties(page, &definition.input_schema, 2),
        _ => {
            page.spaces(2).styled(FAINT, "none").end();
        }
    }
    page.title("Result");
    match &definition.output_schema {
        Some(output) => {
            page.spaces(2).text(schema::describe(output)).end();
            schema::write_descriptions(page, output, 4);
            if let Some(object) = schema::object_within(output) {
                schema::write_properties(page, object, 4);
            }
        }
        None => {
            page.spaces(2).styled(FAINT, "not declared").end();
        }
    }
}

/// Writes a signature, such as ``search_customer(name: string, limit?: integer (0 to 9)) → entity `customer` ``. Shows an
/// entity by the name of its type, and omits a result that is always null.
fn write_signature(page: &mut Page, definition: &ToolDefinition, indent: usize) {
    page.spaces(indent).styled(NAME, definition.name()).text("(");
    let required_names = definition.input_schema["required"].as_array();
    if let Some(properties) = definition.input_schema["properties"].as_object() {
        for (index, (name, property)) in properties.iter().enumerate() {
            let is_required = required_names.is_some_and(|names| names.iter().any(|required| required == name));
            let separator = if index > 0 { ", " } else { "" };
            let mark = if is_required { "" } else { "?" };
            page.text(format_args!(
                "{separator}{name}{mark}: {}",
                schema::describe_property(property, is_required)
            ));
        }
    }
    page.text(")");
    if let Some(output) = definition
        .output_schema
        .as_deref()
        .filter(|output| output["type"] != "null")
    {
        page.text(" → ").text(schema::describe(output));
    }
    page.end();
}
