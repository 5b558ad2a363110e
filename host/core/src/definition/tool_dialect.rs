//! Definitions of tools in the formats of model providers.

use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};
use serde_json::Value;

use crate::{ToolDefinition, ToolName};

/// A provider's format for the definitions of tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ToolDialect {
    /// OpenAI chat completions, which most other servers accept: `{"type": "function", "function": {…, "parameters"}}`.
    OpenAiChat,
    /// OpenAI responses: `{"type": "function", …, "parameters"}`.
    OpenAiResponses,
    /// Anthropic messages: `{…, "input_schema"}`.
    Anthropic,
    /// A function declaration of Gemini: `{…, "parametersJsonSchema"}`.
    Gemini,
}

/// A definition in a provider's format, for serialisation.
#[derive(Clone, Copy, Debug)]
pub struct DialectDefinition<'a> {
    dialect: ToolDialect,
    name: &'a ToolName,
    definition: &'a ToolDefinition,
}

impl ToolDialect {
    /// Returns a definition for serialisation in this format. `name` is the name of the tool in a conversation.
    #[must_use]
    pub fn describe<'a>(self, name: &'a ToolName, definition: &'a ToolDefinition) -> DialectDefinition<'a> {
        DialectDefinition {
            dialect: self,
            name,
            definition,
        }
    }

    /// Returns a definition as JSON in this format. `name` is the name of the tool in a conversation.
    #[must_use]
    pub fn definition(self, name: &ToolName, definition: &ToolDefinition) -> Value {
        serde_json::to_value(self.describe(name, definition)).unwrap_or_default()
    }
}

/// The JSON object with the name, description and input schema of a tool, which every format contains.
struct FunctionObject<'a> {
    /// The value of the property `type`; `None` if the format has no such property.
    kind: Option<&'static str>,
    schema_key: &'static str,
    definition: &'a DialectDefinition<'a>,
}

impl Serialize for FunctionObject<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let field_count = if self.kind.is_some() { 4 } else { 3 };
        let mut fields = serializer.serialize_struct("Function", field_count)?;
        if let Some(kind) = self.kind {
            fields.serialize_field("type", kind)?;
        }
        let DialectDefinition { name, definition, .. } = self.definition;
        fields.serialize_field("name", name)?;
        fields.serialize_field("description", &definition.description)?;
        fields.serialize_field(self.schema_key, &*definition.input_schema)?;
        fields.end()
    }
}

impl Serialize for DialectDefinition<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let function = |kind, schema_key| FunctionObject {
            kind,
            schema_key,
            definition: self,
        };
        match self.dialect {
            ToolDialect::OpenAiChat => {
                let mut tool = serializer.serialize_struct("Tool", 2)?;
                tool.serialize_field("type", "function")?;
                tool.serialize_field("function", &function(None, "parameters"))?;
                tool.end()
            }
            ToolDialect::OpenAiResponses => function(Some("function"), "parameters").serialize(serializer),
            ToolDialect::Anthropic => function(None, "input_schema").serialize(serializer),
            ToolDialect::Gemini => function(None, "parametersJsonSchema").serialize(serializer),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;
    use crate::{NativeTool, ToolResult, ToolSet};

    // accept: 92
    #[test]
    fn each_dialect_has_the_format_of_its_provider() {
        let schema = json!({"type": "object", "properties": {"b": {}, "a": {}}});
        let tool = |name: &str| {
            let tool = NativeTool::new(name, "Adds.", schema.clone(), |_, _| async { Ok(ToolResult::text("")) });
            Arc::new(tool.unwrap()) as Arc<dyn crate::Tool>
        };
        let set: ToolSet = [tool("z"), tool("add")].into_iter().collect();
        let definition_of_add = |dialect| set.definitions(dialect)[1].clone();
        let function = json!({"name": "add", "description": "Adds.", "parameters": schema});
        assert_eq!(
            definition_of_add(ToolDialect::OpenAiChat),
            json!({"type": "function", "function": function})
        );
        assert_eq!(
            definition_of_add(ToolDialect::OpenAiResponses),
            json!({"type": "function", "name": "add", "description": "Adds.", "parameters": schema})
        );
        assert_eq!(
            definition_of_add(ToolDialect::Gemini),
            json!({"name": "add", "description": "Adds.", "parametersJsonSchema": schema})
        );
        assert_eq!(
            definition_of_add(ToolDialect::Anthropic).to_string(),
            json!({"name": "add", "description": "Adds.", "input_schema": schema}).to_string(),
            "properties keep their declared order"
        );
    }
}
