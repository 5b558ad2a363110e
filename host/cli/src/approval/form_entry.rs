//! The form of a plugin's question at the terminal: its texts, and the values that a person types.

use anstyle::Style;
use serde_json::{Number, Value};

use crate::output::page::{BAD, FAINT, NAME, Page, WARN};
use toolwit::tool::{FieldKind, FieldOption, FormField, Question};

/// The line that refuses to answer.
const DECLINE: &str = "/decline";

/// The line that closes the form without a decision.
const CANCEL: &str = "/cancel";

/// The prompt of a form without fields.
pub(super) const CONFIRM_PROMPT: &str = "  [y]es, [n]o: ";

/// A typed line of a form.
#[derive(Debug, PartialEq)]
pub(super) enum TypedValue {
    /// The value of the field; `None` for an optional field that is left out.
    Value(Option<Value>),
    /// The person refuses to answer.
    Decline,
    /// The person closes the form.
    Cancel,
    /// The line is not a value of the field, for this reason.
    Invalid(String),
}

/// Returns the beginning of the form: the plugin that asks, its text, and how to refuse.
pub(super) fn heading(question: &Question) -> Page {
    let mut page = Page::new();
    page.styled(WARN, "question")
        .text("   from the plugin ")
        .styled(NAME, &question.plugin)
        .end();
    page.block(4, Style::new(), question.form.message());
    let hint = format!("`{DECLINE}` refuses to answer, `{CANCEL}` closes the form");
    page.spaces(2).styled(FAINT, hint).end();
    page
}

/// Returns the description of a field, with its options.
pub(super) fn field_page(field: &FormField) -> Page {
    let mut page = Page::new();
    if let Some(description) = &field.description {
        page.spaces(4).styled(FAINT, description).end();
    }
    if let FieldKind::Choice { options, .. } | FieldKind::MultiChoice { options, .. } = &field.kind {
        for (index, option) in options.iter().enumerate() {
            page.spaces(4)
                .styled(NAME, index + 1)
                .text("  ")
                .text(option.label())
                .end();
        }
    }
    page
}

/// Returns the prompt of a field, with the values that it accepts and its default.
pub(super) fn field_prompt(field: &FormField) -> String {
    let values = match &field.kind {
        FieldKind::Boolean => "y/n".to_owned(),
        FieldKind::Choice { .. } => "a number".to_owned(),
        FieldKind::MultiChoice { .. } => "numbers, separated by commas".to_owned(),
        kind => kind.noun().to_owned(),
    };
    let default = match &field.default {
        Some(default) => format!(" [{}]", default_text(&field.kind, default)),
        None if field.is_required => String::new(),
        None => " [none]".to_owned(),
    };
    format!("  {} ({values}){default}: ", field.label())
}

/// Returns the error of an invalid line.
pub(super) fn error_page(reason: &str) -> Page {
    let mut page = Page::new();
    page.spaces(2).styled(BAD, "error:").text(" ").text(reason).end();
    page
}

/// Parses the line that a person typed for a field. An empty line stands for the default, or for an optional field that is left
/// out.
pub(super) fn parse_line(field: &FormField, line: &str) -> TypedValue {
    let line = line.trim();
    match line {
        DECLINE => return TypedValue::Decline,
        CANCEL => return TypedValue::Cancel,
        "" => {
            return match (&field.default, field.is_required) {
                (Some(default), _) => TypedValue::Value(Some(default.clone())),
                (None, false) => TypedValue::Value(None),
                (None, true) => TypedValue::Invalid("a value is required".to_owned()),
            };
        }
        _ => {}
    }
    let value = parse_value(&field.kind, line).and_then(|value| field.kind.check(&value).map(|()| value));
    match value {
        Ok(value) => TypedValue::Value(Some(value)),
        Err(reason) => TypedValue::Invalid(reason),
    }
}

/// Parses the line that a person typed for a form without fields. Returns `None` for a line that is not an answer.
pub(super) fn parse_confirmation(line: &str) -> Option<TypedValue> {
    match line.trim().to_ascii_lowercase().as_str() {
        "y" | "yes" => Some(TypedValue::Value(None)),
        "n" | "no" | DECLINE => Some(TypedValue::Decline),
        CANCEL => Some(TypedValue::Cancel),
        _ => None,
    }
}

fn parse_value(kind: &FieldKind, line: &str) -> Result<Value, String> {
    let invalid = || format!("expected {}", kind.noun());
    Ok(match kind {
        FieldKind::Text { .. } => line.into(),
        FieldKind::Number { .. } => {
            let number: Option<Number> = serde_json::from_str(line).ok();
            Value::Number(number.ok_or_else(invalid)?)
        }
        FieldKind::Boolean => match line.to_ascii_lowercase().as_str() {
            "y" | "yes" | "true" => Value::Bool(true),
            "n" | "no" | "false" => Value::Bool(false),
            _ => return Err(invalid()),
        },
        FieldKind::Choice { options, .. } => find_option(options, line).ok_or_else(invalid)?.value.clone().into(),
        FieldKind::MultiChoice { options, .. } => {
            let selected = line.split(',').map(|word| {
                let option = find_option(options, word.trim()).ok_or_else(invalid)?;
                Ok::<_, String>(Value::from(option.value.clone()))
            });
            Value::Array(selected.collect::<Result<_, _>>()?)
        }
        _ => return Err("this field cannot be filled in at a terminal".to_owned()),
    })
}

/// Finds an option by its number in the list, its value or its title.
fn find_option<'o>(options: &'o [FieldOption], word: &str) -> Option<&'o FieldOption> {
    let number = word.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
    number.and_then(|index| options.get(index)).or_else(|| {
        options
            .iter()
            .find(|option| option.value == word || option.label() == word)
    })
}

fn default_text(kind: &FieldKind, default: &Value) -> String {
    match (kind, default) {
        (FieldKind::Boolean, Value::Bool(is_true)) => if *is_true { "y" } else { "n" }.to_owned(),
        (FieldKind::Choice { options, .. }, Value::String(value)) => {
            let option = options.iter().find(|option| option.value == *value);
            option.map_or(value.as_str(), FieldOption::label).to_owned()
        }
        (_, Value::String(text)) => text.clone(),
        (_, default) => default.to_string(),
    }
}
