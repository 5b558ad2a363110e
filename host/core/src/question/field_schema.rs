//! The JSON Schema of a field: parsing and writing.

use serde_json::{Map, Number, Value, json};

use super::choice::{FieldOption, options_schema, parse_options};
use super::form_field::{FieldFormat, FieldKind, FormField};
use super::form_text::{FormError, one_line};
use crate::limits::{FORM_TEXT_CHARS_MAX, NAME_BYTES_MAX};

/// The maximum length of the description of a field, in characters.
const DESCRIPTION_CHARS_MAX: usize = 4 * FORM_TEXT_CHARS_MAX;

/// The keywords of every field.
const COMMON_KEYWORDS: [&str; 6] = ["type", "title", "description", "default", "examples", "$comment"];

impl FormField {
    /// Parses a property of the schema of a form.
    pub(super) fn parse(name: &str, property: &Value, is_required: bool) -> Result<Self, FormError> {
        let is_name_char = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
        if name.is_empty() || name.len() > NAME_BYTES_MAX || !name.chars().all(is_name_char) {
            return Err(FormError::new(format!(
                "`{}` is not the name of a field: use up to {NAME_BYTES_MAX} letters, digits, `_`, `-` and `.`",
                name.chars().take(NAME_BYTES_MAX).collect::<String>().escape_debug()
            )));
        }
        let in_field = |error: FormError| FormError::new(format!("the field `{name}`: {error}"));
        let keywords = property
            .as_object()
            .ok_or_else(|| in_field(FormError::new("its schema must be an object")))?;
        let kind = parse_kind(keywords).map_err(in_field)?;
        let text = |key: &str, chars_max| match keywords.get(key) {
            None => Ok(None),
            Some(Value::String(text)) => one_line(text, chars_max, &format!("`{key}`")).map(Some),
            Some(_) => Err(FormError::new(format!("`{key}` must be a text"))),
        };
        let default = keywords.get("default").cloned();
        if let Some(Err(reason)) = default.as_ref().map(|default| kind.check(default)) {
            return Err(in_field(FormError::new(format!("its default is not valid: {reason}"))));
        }
        Ok(Self {
            name: name.to_owned(),
            title: text("title", FORM_TEXT_CHARS_MAX).map_err(in_field)?,
            description: text("description", DESCRIPTION_CHARS_MAX).map_err(in_field)?,
            kind,
            is_required,
            default,
        })
    }

    /// Returns the JSON Schema of the field.
    pub(super) fn schema(&self) -> Value {
        let mut schema = kind_schema(&self.kind);
        if let Some(title) = &self.title {
            schema.insert("title".to_owned(), json!(title));
        }
        if let Some(description) = &self.description {
            schema.insert("description".to_owned(), json!(description));
        }
        if let Some(default) = &self.default {
            schema.insert("default".to_owned(), default.clone());
        }
        Value::Object(schema)
    }
}

fn parse_kind(keywords: &Map<String, Value>) -> Result<FieldKind, FormError> {
    let allow = |allowed: &[&str]| {
        let mut keys = keywords.keys().map(String::as_str);
        match keys.find(|key| !COMMON_KEYWORDS.contains(key) && !allowed.contains(key)) {
            Some(key) => Err(FormError::new(format!(
                "a field of this type cannot have the keyword `{}`",
                key.escape_debug()
            ))),
            None => Ok(()),
        }
    };
    match keywords.get("type").and_then(Value::as_str) {
        Some("string") => match parse_options(keywords, "oneOf")? {
            Some(options) => allow(&["enum", "enumNames", "oneOf"]).map(|()| FieldKind::Choice {
                options,
                has_enum_names: keywords.contains_key("enumNames"),
            }),
            None => {
                allow(&["format", "minLength", "maxLength"])?;
                Ok(FieldKind::Text {
                    format: keywords.get("format").map(parse_format).transpose()?,
                    chars_min: count(keywords, "minLength")?.unwrap_or(0),
                    chars_max: count(keywords, "maxLength")?,
                })
            }
        },
        Some(name @ ("integer" | "number")) => {
            allow(&["minimum", "maximum"])?;
            Ok(FieldKind::Number {
                is_integer: name == "integer",
                min: number(keywords, "minimum")?,
                max: number(keywords, "maximum")?,
            })
        }
        Some("boolean") => allow(&[]).map(|()| FieldKind::Boolean),
        Some("array") => {
            allow(&["items", "minItems", "maxItems", "uniqueItems"])?;
            let items = keywords.get("items").and_then(Value::as_object);
            let options = items.map(|items| parse_options(items, "anyOf")).transpose()?.flatten();
            Ok(FieldKind::MultiChoice {
                options: options.ok_or_else(|| FormError::new("the items of a list must be options"))?,
                count_min: count(keywords, "minItems")?.unwrap_or(0),
                count_max: count(keywords, "maxItems")?,
            })
        }
        _ => Err(FormError::new(
            "its type must be `string`, `integer`, `number`, `boolean` or an `array` of options",
        )),
    }
}

fn parse_format(format: &Value) -> Result<FieldFormat, FormError> {
    Ok(match format.as_str() {
        Some("email") => FieldFormat::Email,
        Some("uri") => FieldFormat::Uri,
        Some("date") => FieldFormat::Date,
        Some("date-time") => FieldFormat::DateTime,
        _ => {
            return Err(FormError::new("`format` must be `email`, `uri`, `date` or `date-time`"));
        }
    })
}

fn count(keywords: &Map<String, Value>, key: &str) -> Result<Option<usize>, FormError> {
    let Some(value) = keywords.get(key) else {
        return Ok(None);
    };
    let count = value.as_u64().and_then(|count| usize::try_from(count).ok());
    count
        .map(Some)
        .ok_or_else(|| FormError::new(format!("`{key}` must be a count")))
}

fn number(keywords: &Map<String, Value>, key: &str) -> Result<Option<Number>, FormError> {
    match keywords.get(key) {
        None => Ok(None),
        Some(Value::Number(number)) => Ok(Some(number.clone())),
        Some(_) => Err(FormError::new(format!("`{key}` must be a number"))),
    }
}

fn kind_schema(kind: &FieldKind) -> Map<String, Value> {
    let schema = match kind {
        FieldKind::Text {
            format,
            chars_min,
            chars_max,
        } => {
            let mut schema = json!({"type": "string"});
            if let Some(format) = format {
                schema["format"] = json!(format_name(*format));
            }
            if *chars_min > 0 {
                schema["minLength"] = json!(chars_min);
            }
            if let Some(max) = chars_max {
                schema["maxLength"] = json!(max);
            }
            schema
        }
        FieldKind::Number { is_integer, min, max } => {
            let mut schema = json!({"type": if *is_integer { "integer" } else { "number" }});
            for (key, limit) in [("minimum", min), ("maximum", max)] {
                if let Some(limit) = limit {
                    schema[key] = Value::Number(limit.clone());
                }
            }
            schema
        }
        FieldKind::Boolean => json!({"type": "boolean"}),
        FieldKind::Choice {
            options,
            has_enum_names: true,
        } => {
            let values: Vec<_> = options.iter().map(|option| option.value.as_str()).collect();
            let names: Vec<_> = options.iter().map(FieldOption::label).collect();
            json!({"type": "string", "enum": values, "enumNames": names})
        }
        FieldKind::Choice { options, .. } => {
            let (key, options) = options_schema(options, "oneOf");
            json!({"type": "string", key: options})
        }
        FieldKind::MultiChoice {
            options,
            count_min,
            count_max,
        } => multi_choice_schema(options_schema(options, "anyOf"), *count_min, *count_max),
    };
    match schema {
        Value::Object(schema) => schema,
        _ => Map::new(),
    }
}

fn multi_choice_schema((key, options): (String, Value), count_min: usize, count_max: Option<usize>) -> Value {
    let items = if key == "enum" {
        json!({"type": "string", key: options})
    } else {
        json!({key: options})
    };
    let mut schema = json!({"type": "array", "items": items});
    if count_min > 0 {
        schema["minItems"] = json!(count_min);
    }
    if let Some(max) = count_max {
        schema["maxItems"] = json!(max);
    }
    schema
}

fn format_name(format: FieldFormat) -> &'static str {
    match format {
        FieldFormat::Email => "email",
        FieldFormat::Uri => "uri",
        FieldFormat::Date => "date",
        FieldFormat::DateTime => "date-time",
    }
}
