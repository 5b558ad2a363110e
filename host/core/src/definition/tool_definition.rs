//! The definition of a tool, which a model reads before it calls the tool.

use std::collections::BTreeMap;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::ser::SerializeStruct;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use crate::ToolId;
use crate::native::schema_of;
use crate::text::sha256;

/// The identity, names, description and schemas of a tool.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ToolDefinition {
    /// The canonical identity.
    pub id: ToolId,
    /// Candidate names, the preferred one first. A [`ToolSet`](crate::ToolSet) picks one.
    pub names: Vec<String>,
    /// The description, from which the model decides whether to call the tool.
    pub description: String,
    /// The category of the tool, in a facade that reveals its tools by category.
    pub category: Option<String>,
    /// JSON Schema of the arguments; its type is always `object`.
    pub input_schema: Arc<Value>,
    /// JSON Schema of the result, if it is known.
    pub output_schema: Option<Arc<Value>>,
}

impl ToolDefinition {
    /// Creates a definition without category and output schema.
    #[must_use]
    pub fn new(id: ToolId, name: impl Into<String>, description: impl Into<String>, input_schema: Value) -> Self {
        Self {
            id,
            names: vec![name.into()],
            description: description.into(),
            category: None,
            input_schema: Arc::new(input_schema),
            output_schema: None,
        }
    }

    /// Creates a definition whose input schema is derived from the Rust type `In`.
    #[must_use]
    pub fn typed<In: JsonSchema>(id: ToolId, name: impl Into<String>, description: impl Into<String>) -> Self {
        Self::new(id, name, description, schema_of::<In>())
    }

    /// Adds a name for conversations in which the names before it are taken.
    #[must_use]
    pub fn with_fallback_name(mut self, name: impl Into<String>) -> Self {
        self.names.push(name.into());
        self
    }

    /// Sets the category.
    #[must_use]
    pub fn with_category(mut self, category: impl Into<String>) -> Self {
        self.category = Some(category.into());
        self
    }

    /// Sets the JSON Schema of the result.
    #[must_use]
    pub fn with_output_schema(mut self, schema: Value) -> Self {
        self.output_schema = Some(Arc::new(schema));
        self
    }

    /// Returns the SHA-256 of the id, description and schemas, in hex. The order of keys in a schema does not matter.
    ///
    /// Whoever approved a tool has approved the definition with this digest. A server can change the definition of a tool at any time.
    #[must_use]
    pub fn digest(&self) -> String {
        let mut text = String::new();
        for part in [self.id.as_str(), &self.description] {
            text.push_str(&format!("{}:{part}", part.len()));
        }
        write_sorted(&self.input_schema, &mut text);
        if let Some(output) = &self.output_schema {
            write_sorted(output, &mut text);
        }
        sha256(&text)
    }

    /// Returns the preferred name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.names.first().map_or(self.id.as_str(), String::as_str)
    }
}

/// Appends a value as JSON whose keys are in alphabetical order.
fn write_sorted(value: &Value, text: &mut String) {
    match value {
        Value::Array(items) => {
            text.push('[');
            for item in items {
                write_sorted(item, text);
                text.push(',');
            }
            text.push(']');
        }
        Value::Object(fields) => {
            let sorted: BTreeMap<_, _> = fields.iter().collect();
            text.push('{');
            for (name, field) in sorted {
                text.push_str(&Value::from(name.as_str()).to_string());
                text.push(':');
                write_sorted(field, text);
                text.push(',');
            }
            text.push('}');
        }
        other => text.push_str(&other.to_string()),
    }
}

/// Serialises as `{"id", "name", "description", "input_schema", "output_schema"}`, with the preferred name.
impl Serialize for ToolDefinition {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("ToolDefinition", 5)?;
        fields.serialize_field("id", &self.id)?;
        fields.serialize_field("name", self.name())?;
        fields.serialize_field("description", &self.description)?;
        fields.serialize_field("input_schema", &*self.input_schema)?;
        fields.serialize_field("output_schema", &self.output_schema.as_deref())?;
        fields.end()
    }
}

/// Deserialises the same form; it has only one name.
impl<'de> Deserialize<'de> for ToolDefinition {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Written {
            id: ToolId,
            name: String,
            description: String,
            input_schema: Value,
            output_schema: Option<Value>,
        }

        let written = Written::deserialize(deserializer)?;
        let mut definition = Self::new(written.id, written.name, written.description, written.input_schema);
        definition.output_schema = written.output_schema.map(Arc::new);
        Ok(definition)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn digest_follows_the_meaning_of_a_definition() {
        let definition = |description: &str, schema| ToolDefinition::new(ToolId::native("a"), "a", description, schema);
        let first = definition("Adds.", json!({"type": "object", "required": ["a"]}));
        let same = definition("Adds.", json!({"required": ["a"], "type": "object"})).with_fallback_name("b");
        assert_eq!(first.digest(), same.digest());
        let others = [
            definition("Adds!", json!({"type": "object", "required": ["a"]})),
            definition("Adds.", json!({"type": "object", "required": ["b"]})),
            first.clone().with_output_schema(json!({})),
        ];
        for other in others {
            assert_ne!(first.digest(), other.digest());
        }
    }
}
