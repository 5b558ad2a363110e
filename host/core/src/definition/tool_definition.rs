//! What is told about a tool before it is called.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::ser::SerializeStruct;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use crate::ToolId;
use crate::native::schema_of;

/// Describes a tool: who it is, what it is for, what goes in and what comes out.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ToolDefinition {
    /// The canonical identity.
    pub id: ToolId,
    /// Names that a conversation may give it, the best one first. A [`ToolSet`](crate::ToolSet) picks one.
    pub names: Vec<String>,
    /// What the model reads to decide on a call.
    pub description: String,
    /// The group of tools that it opens with, in a facade that sorts its tools.
    pub category: Option<String>,
    /// JSON Schema of the arguments, always of an object.
    pub input_schema: Arc<Value>,
    /// JSON Schema of the result, where it is known.
    pub output_schema: Option<Arc<Value>>,
}

impl ToolDefinition {
    /// Describes a tool whose result has no known shape.
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

    /// Describes a tool that takes its arguments as a Rust type; the input schema is derived from `In`.
    #[must_use]
    pub fn typed<In: JsonSchema>(id: ToolId, name: impl Into<String>, description: impl Into<String>) -> Self {
        Self::new(id, name, description, schema_of::<In>())
    }

    /// Adds a longer name for when the ones before it are taken.
    #[must_use]
    pub fn or_named(mut self, name: impl Into<String>) -> Self {
        self.names.push(name.into());
        self
    }

    /// Sets the group of tools that it opens with, in a facade that sorts its tools.
    #[must_use]
    pub fn with_category(mut self, category: impl Into<String>) -> Self {
        self.category = Some(category.into());
        self
    }

    /// Adds the shape of the result.
    #[must_use]
    pub fn with_output_schema(mut self, schema: Value) -> Self {
        self.output_schema = Some(Arc::new(schema));
        self
    }

    /// Returns the name that it would like best.
    #[must_use]
    pub fn name(&self) -> &str {
        self.names.first().map_or(self.id.as_str(), String::as_str)
    }
}

/// Written as `{"id", "name", "description", "input_schema", "output_schema"}`, under the name that it would like best.
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

/// Read as it is written; the other names that it would take are lost.
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
