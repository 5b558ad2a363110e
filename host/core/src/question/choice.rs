//! The options of a choice in a form.

use serde_json::{Map, Value, json};

use super::form_text::{FormError, one_line};
use crate::limits::{FORM_OPTIONS_MAX, FORM_TEXT_CHARS_MAX};

/// An option of a choice.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FieldOption {
    /// The value in the answer.
    pub value: String,
    /// The text to show instead of the value.
    pub title: Option<String>,
}

impl FieldOption {
    /// Returns the text to show: the title, or else the value.
    #[must_use]
    pub fn label(&self) -> &str {
        self.title.as_deref().unwrap_or(&self.value)
    }

    fn new(value: &str, title: Option<&str>) -> Result<Self, FormError> {
        Ok(Self {
            value: one_line(value, FORM_TEXT_CHARS_MAX, "an option")?,
            title: title
                .map(|title| one_line(title, FORM_TEXT_CHARS_MAX, "the title of an option"))
                .transpose()?,
        })
    }
}

/// Parses the options of a choice: `enum`, optionally with `enumNames`, or a list of `const` and `title` under `titled_key`.
/// Returns `None` if the schema is not a choice.
pub(super) fn parse_options(
    schema: &Map<String, Value>,
    titled_key: &str,
) -> Result<Option<Vec<FieldOption>>, FormError> {
    let options = match (schema.get("enum"), schema.get(titled_key)) {
        (None, None) => return Ok(None),
        (Some(_), Some(_)) => return Err(FormError::new(format!("`enum` and `{titled_key}` exclude each other"))),
        (Some(values), None) => plain_options(values, schema.get("enumNames"))?,
        (None, Some(options)) => titled_options(options, titled_key)?,
    };
    if options.is_empty() || options.len() > FORM_OPTIONS_MAX {
        return Err(FormError::new(format!("a choice has 1 to {FORM_OPTIONS_MAX} options")));
    }
    let mut values: Vec<_> = options.iter().map(|option| option.value.as_str()).collect();
    values.sort_unstable();
    values.dedup();
    if values.len() != options.len() {
        return Err(FormError::new("two options of a choice have the same value"));
    }
    Ok(Some(options))
}

fn plain_options(values: &Value, names: Option<&Value>) -> Result<Vec<FieldOption>, FormError> {
    let texts = |list: &Value, key: &str| -> Result<Vec<String>, FormError> {
        let items = list.as_array().into_iter().flatten();
        let texts: Option<Vec<_>> = items.map(|item| item.as_str().map(str::to_owned)).collect();
        let texts = texts.filter(|texts| !texts.is_empty());
        texts.ok_or_else(|| FormError::new(format!("`{key}` must be a list of texts")))
    };
    let values = texts(values, "enum")?;
    let titles = names.map(|names| texts(names, "enumNames")).transpose()?;
    if titles.as_ref().is_some_and(|titles| titles.len() != values.len()) {
        return Err(FormError::new(
            "`enumNames` must have one text for each value of `enum`",
        ));
    }
    let options = values.iter().enumerate().map(|(index, value)| {
        let title = titles.as_ref().and_then(|titles| titles.get(index));
        FieldOption::new(value, title.map(String::as_str))
    });
    options.collect()
}

fn titled_options(options: &Value, key: &str) -> Result<Vec<FieldOption>, FormError> {
    let invalid = || FormError::new(format!("`{key}` must be a list of objects with `const` and `title`"));
    let options = options.as_array().ok_or_else(invalid)?.iter().map(|option| {
        let value = option.get("const").and_then(Value::as_str).ok_or_else(invalid)?;
        FieldOption::new(value, option.get("title").and_then(Value::as_str))
    });
    options.collect()
}

/// Returns the keyword of a choice, with its options.
pub(super) fn options_schema(options: &[FieldOption], titled_key: &str) -> (String, Value) {
    if options.iter().all(|option| option.title.is_none()) {
        let values: Vec<_> = options.iter().map(|option| option.value.as_str()).collect();
        return ("enum".to_owned(), json!(values));
    }
    let options = options
        .iter()
        .map(|option| json!({"const": option.value, "title": option.label()}));
    (titled_key.to_owned(), options.collect())
}
