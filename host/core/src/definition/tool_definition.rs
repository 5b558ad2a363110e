//! The definition of a tool, which a model reads before it calls the tool.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::ser::SerializeStruct;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use crate::native::schema_of;
use crate::text::sha256;
use crate::{EffectClass, ToolId};

/// The identity, names, description and schemas of a tool.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ToolDefinition {
    /// The canonical identity.
    pub id: ToolId,
    /// Candidate names, the preferred name first. A [`ToolSet`](crate::ToolSet) assigns the first name that is valid and free.
    pub names: Vec<String>,
    /// The description, from which the model decides whether to call the tool.
    pub description: String,
    /// The category of the tool, in a facade that reveals its tools by category.
    pub category: Option<String>,
    /// JSON Schema of the arguments. Its type must be `object`.
    pub input_schema: Arc<Value>,
    /// JSON Schema of the result, if it is known.
    pub output_schema: Option<Arc<Value>>,
    /// The effect class that the author declares. For untrusted code, it is only a claim; see
    /// [`Tool::access`](crate::Tool::access).
    pub effect: Option<EffectClass>,
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
            effect: None,
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

    /// Declares the effect class of the tool. Without it, the tool is in the class [`EffectClass::Write`].
    #[must_use]
    pub fn with_effect(mut self, class: EffectClass) -> Self {
        self.effect = Some(class);
        self
    }

    /// Returns a digest of the id, the description, the schemas and the declared effect. A remembered approval is not valid for
    /// a definition with another digest.
    #[must_use]
    pub fn digest(&self) -> String {
        let content = serde_json::json!([
            self.id,
            self.description,
            *self.input_schema,
            self.output_schema.as_deref(),
            self.effect,
        ]);
        sha256(&content.to_string())
    }

    /// Returns the preferred name, or the id if there is no name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.names.first().map_or(self.id.as_str(), String::as_str)
    }
}

/// Serialises as `{"id", "name", "description", "input_schema", "output_schema", "declared_effect"?}`, with the preferred
/// name and without the category.
impl Serialize for ToolDefinition {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("ToolDefinition", 6)?;
        fields.serialize_field("id", &self.id)?;
        fields.serialize_field("name", self.name())?;
        fields.serialize_field("description", &self.description)?;
        fields.serialize_field("input_schema", &*self.input_schema)?;
        fields.serialize_field("output_schema", &self.output_schema.as_deref())?;
        match self.effect {
            Some(effect) => fields.serialize_field("declared_effect", &effect)?,
            None => fields.skip_field("declared_effect")?,
        }
        fields.end()
    }
}

/// Deserialises the form that `Serialize` writes. The definition then has one name and no category.
impl<'de> Deserialize<'de> for ToolDefinition {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct SerializedDefinition {
            id: ToolId,
            name: String,
            description: String,
            input_schema: Value,
            output_schema: Option<Value>,
            #[serde(default)]
            declared_effect: Option<EffectClass>,
        }

        let fields = SerializedDefinition::deserialize(deserializer)?;
        let mut definition = Self::new(fields.id, fields.name, fields.description, fields.input_schema);
        definition.output_schema = fields.output_schema.map(Arc::new);
        definition.effect = fields.declared_effect;
        Ok(definition)
    }
}
