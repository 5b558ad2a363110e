//! The form of a question, with only checked and visible text.

use serde_json::{Map, Value, json};

use super::form_field::FormField;
use super::form_text::FormError;
use super::secret_words::{asks_for_secret, message_asks_for_secret};
use crate::Arguments;
use crate::limits::{ByteCount, FORM_ANSWER_BYTES_MAX, FORM_FIELDS_MAX, FORM_MESSAGE_BYTES_MAX, FORM_SCHEMA_BYTES_MAX};
use crate::text::{is_printable, json_type, parse_json};

/// The form of a question: a text and fields, without nesting, as in the elicitation of the Model Context Protocol.
///
/// All texts are checked: they have a limited length, and no invisible characters. A form that asks for a password or another
/// secret cannot be created.
///
/// ```
/// use serde_json::json;
/// use toolwit_core::Form;
///
/// let schema = json!({"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]});
/// let form = Form::parse("What is your\u{200b} name?", &schema.to_string()).unwrap();
/// assert_eq!(form.message(), "What is your name?");
/// assert!(form.check(&json!({"name": "Ada"})).is_ok());
/// assert!(form.check(&json!({"age": 36})).is_err());
///
/// let schema = json!({"type": "object", "properties": {"password": {"type": "string"}}});
/// assert!(Form::parse("Who are you?", &schema.to_string()).is_err());
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Form {
    message: String,
    fields: Vec<FormField>,
}

impl Form {
    /// Parses and checks a form. `schema` is the JSON Schema of the answer: an object with properties of simple types.
    ///
    /// # Errors
    /// The reason, as a text for the author of the form.
    pub fn parse(message: &str, schema: &str) -> Result<Self, String> {
        Self::parse_checked(message, schema).map_err(|error| error.to_string())
    }

    fn parse_checked(message: &str, schema: &str) -> Result<Self, FormError> {
        if message.len() > FORM_MESSAGE_BYTES_MAX || schema.len() > FORM_SCHEMA_BYTES_MAX {
            let message = format!(
                "a form has a message of at most {} and a schema of at most {}",
                ByteCount(FORM_MESSAGE_BYTES_MAX as u64),
                ByteCount(FORM_SCHEMA_BYTES_MAX as u64)
            );
            return Err(FormError::new(message));
        }
        let message: String = message.chars().filter(|c| is_printable(*c)).collect();
        let message = message.trim();
        if message.is_empty() {
            return Err(FormError::new("the message of the form is empty"));
        }
        let schema = parse_json(schema).map_err(|error| FormError::new(format!("the schema is not JSON: {error}")))?;
        let fields = parse_fields(&schema)?;
        let takes_text = fields.iter().any(|field| field.kind.is_free_text());
        if takes_text && message_asks_for_secret(message) {
            return Err(FormError::new(secret_refusal("the message")));
        }
        Ok(Self {
            message: message.to_owned(),
            fields,
        })
    }

    /// Returns the text of the question. It may have line breaks.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Returns the fields, in the order of the schema.
    #[must_use]
    pub fn fields(&self) -> &[FormField] {
        &self.fields
    }

    /// Returns the JSON Schema of the answer, with only the keywords that the form uses.
    #[must_use]
    pub fn schema(&self) -> Value {
        let properties: Map<_, _> = self
            .fields
            .iter()
            .map(|field| (field.name.clone(), field.schema()))
            .collect();
        let required = self.fields.iter().filter(|field| field.is_required);
        let required: Vec<_> = required.map(|field| field.name.as_str()).collect();
        let mut schema = json!({"type": "object", "properties": properties});
        if !required.is_empty() {
            schema["required"] = json!(required);
        }
        schema
    }

    /// Checks the values of an answer against the fields, and returns them in the order of the fields.
    ///
    /// # Errors
    /// The first error, as a text for the person.
    pub fn check(&self, answer: &Value) -> Result<Arguments, String> {
        let Value::Object(values) = answer else {
            return Err(format!("expected an object, not {}", json_type(answer)));
        };
        if answer.to_string().len() > FORM_ANSWER_BYTES_MAX {
            return Err(format!(
                "the answer has more than {}",
                ByteCount(FORM_ANSWER_BYTES_MAX as u64)
            ));
        }
        if let Some(name) = values
            .keys()
            .find(|name| !self.fields.iter().any(|field| field.name == **name))
        {
            return Err(format!("the form has no field `{}`", name.escape_debug()));
        }
        let mut checked = Arguments::new();
        for field in &self.fields {
            match values.get(&field.name) {
                Some(value) => {
                    field
                        .kind
                        .check(value)
                        .map_err(|reason| format!("`{}`: {reason}", field.name))?;
                    checked.insert(field.name.clone(), value.clone());
                }
                None if field.is_required => return Err(format!("`{}` is missing", field.name)),
                None => {}
            }
        }
        Ok(checked)
    }
}

/// Parses the properties of an object schema.
fn parse_fields(schema: &Value) -> Result<Vec<FormField>, FormError> {
    let Value::Object(keywords) = schema else {
        return Err(FormError::new("the schema must be an object"));
    };
    if keywords.get("type") != Some(&json!("object")) {
        return Err(FormError::new("the schema must have the type `object`"));
    }
    const IGNORED: [&str; 6] = [
        "$schema",
        "$id",
        "$comment",
        "title",
        "description",
        "additionalProperties",
    ];
    let mut unknown = keywords
        .keys()
        .filter(|key| !matches!(key.as_str(), "type" | "properties" | "required") && !IGNORED.contains(&key.as_str()));
    if let Some(key) = unknown.next() {
        return Err(FormError::new(format!(
            "a form cannot have the keyword `{}`",
            key.escape_debug()
        )));
    }
    let empty = Map::new();
    let properties = match keywords.get("properties") {
        None => &empty,
        Some(Value::Object(properties)) => properties,
        Some(_) => return Err(FormError::new("`properties` must be an object")),
    };
    if properties.len() > FORM_FIELDS_MAX {
        return Err(FormError::new(format!("a form has at most {FORM_FIELDS_MAX} fields")));
    }
    let required = required_names(keywords.get("required"), properties)?;
    let fields = properties.iter().map(|(name, property)| {
        let field = FormField::parse(name, property, required.contains(&name.as_str()))?;
        if field.kind.is_free_text() && field.texts().any(|text| asks_for_secret(text, &field.kind)) {
            return Err(FormError::new(secret_refusal(&format!("the field `{name}`"))));
        }
        Ok(field)
    });
    fields.collect()
}

fn required_names<'s>(required: Option<&'s Value>, properties: &Map<String, Value>) -> Result<Vec<&'s str>, FormError> {
    let names = match required {
        None => return Ok(Vec::new()),
        Some(Value::Array(names)) => names,
        Some(_) => return Err(FormError::new("`required` must be a list of names")),
    };
    let names = names.iter().map(|name| {
        let name = name.as_str().filter(|name| properties.contains_key(*name));
        name.ok_or_else(|| FormError::new("`required` names a field that the form does not have"))
    });
    names.collect()
}

fn secret_refusal(part: &str) -> String {
    format!("{part} asks for a secret, and a plugin must not ask for one; an operator grants it as a secret")
}
