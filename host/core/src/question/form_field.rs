//! The fields of a form, and the values that they accept.

use serde_json::{Number, Value};

use super::choice::FieldOption;

/// A field of a form.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct FormField {
    /// The name of the value in the answer: letters, digits, `_`, `-` and `.` of ASCII.
    pub name: String,
    /// The text to show instead of the name.
    pub title: Option<String>,
    /// The explanation of the field.
    pub description: Option<String>,
    /// The type of the value.
    pub kind: FieldKind,
    /// Whether an answer must have the value.
    pub is_required: bool,
    /// The value that the form suggests.
    pub default: Option<Value>,
}

impl FormField {
    /// Returns the text to show: the title, or else the name.
    #[must_use]
    pub fn label(&self) -> &str {
        self.title.as_deref().unwrap_or(&self.name)
    }

    /// Returns the texts with which the field asks for a value.
    pub(super) fn texts(&self) -> impl Iterator<Item = &str> {
        let optional_texts = [self.title.as_deref(), self.description.as_deref()];
        std::iter::once(self.name.as_str()).chain(optional_texts.into_iter().flatten())
    }
}

/// The format of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FieldFormat {
    /// An address of electronic mail.
    Email,
    /// A URI with a scheme.
    Uri,
    /// A date such as `2026-07-28`.
    Date,
    /// A date and a time such as `2026-07-28T12:00:00Z`.
    DateTime,
}

/// The type of the value of a field.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum FieldKind {
    /// A text.
    Text {
        /// The format; `None` for any text.
        format: Option<FieldFormat>,
        /// Minimum number of characters.
        chars_min: usize,
        /// Maximum number of characters; `None` if only the limit of an answer applies.
        chars_max: Option<usize>,
    },
    /// A number.
    Number {
        /// Whether the number must be an integer.
        is_integer: bool,
        /// The smallest number.
        min: Option<Number>,
        /// The largest number.
        max: Option<Number>,
    },
    /// Yes or no.
    Boolean,
    /// One option.
    Choice {
        /// The options.
        options: Vec<FieldOption>,
        /// Whether the schema has the titles in `enumNames`, as older clients expect them.
        has_enum_names: bool,
    },
    /// Several options.
    MultiChoice {
        /// The options.
        options: Vec<FieldOption>,
        /// Minimum number of selected options.
        count_min: usize,
        /// Maximum number of selected options.
        count_max: Option<usize>,
    },
}

impl FieldKind {
    /// Returns whether a person types the value, so that it could be a secret.
    pub(super) fn is_free_text(&self) -> bool {
        matches!(self, Self::Text { .. } | Self::Number { .. })
    }

    /// Checks the value of an answer.
    ///
    /// # Errors
    /// The reason why the field does not accept the value, as a text for the person.
    pub fn check(&self, value: &Value) -> Result<(), String> {
        match (self, value) {
            (
                Self::Text {
                    format,
                    chars_min,
                    chars_max,
                },
                Value::String(text),
            ) => {
                let count = text.chars().count();
                if count < *chars_min {
                    return Err(format!("expected at least {chars_min} characters"));
                }
                if let Some(max) = chars_max.filter(|max| count > *max) {
                    return Err(format!("expected at most {max} characters"));
                }
                format.map_or(Ok(()), |format| format.check(text))
            }
            (Self::Number { is_integer, min, max }, Value::Number(number)) => {
                check_number(number, *is_integer, min.as_ref(), max.as_ref())
            }
            (Self::Boolean, Value::Bool(_)) => Ok(()),
            (Self::Choice { options, .. }, Value::String(text)) => check_option(options, text),
            (
                Self::MultiChoice {
                    options,
                    count_min,
                    count_max,
                },
                Value::Array(selected),
            ) => check_selection(options, selected, *count_min, *count_max),
            _ => Err(format!("expected {}", self.noun())),
        }
    }

    /// Returns a description of the accepted values, with an article.
    #[must_use]
    pub fn noun(&self) -> &'static str {
        match self {
            Self::Text { format, .. } => match format {
                None => "a text",
                Some(FieldFormat::Email) => "an email address",
                Some(FieldFormat::Uri) => "a URI",
                Some(FieldFormat::Date) => "a date such as 2026-07-28",
                Some(FieldFormat::DateTime) => "a time such as 2026-07-28T12:00:00Z",
            },
            Self::Number { is_integer: true, .. } => "an integer",
            Self::Number { .. } => "a number",
            Self::Boolean => "yes or no",
            Self::Choice { .. } => "one of the options",
            Self::MultiChoice { .. } => "a list of options",
        }
    }
}

impl FieldFormat {
    fn check(self, text: &str) -> Result<(), String> {
        let is_valid = match self {
            Self::Email => text
                .split_once('@')
                .is_some_and(|(local, domain)| !local.is_empty() && !domain.is_empty() && !domain.contains('@')),
            Self::Uri => text.split_once(':').is_some_and(|(scheme, rest)| {
                scheme.starts_with(|c: char| c.is_ascii_alphabetic())
                    && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
                    && !rest.is_empty()
            }),
            Self::Date => is_date(text),
            Self::DateTime => text.split_once(['T', 't']).is_some_and(|(date, time)| {
                is_date(date) && time.len() >= 6 && time.starts_with(|c: char| c.is_ascii_digit())
            }),
        };
        let is_one_word = !text.contains(char::is_whitespace);
        if is_valid && is_one_word {
            return Ok(());
        }
        let kind = FieldKind::Text {
            format: Some(self),
            chars_min: 0,
            chars_max: None,
        };
        Err(format!("expected {}", kind.noun()))
    }
}

/// Returns whether a text has the form of a date: four, two and two digits.
fn is_date(text: &str) -> bool {
    let parts: Vec<_> = text.split('-').collect();
    let is_digits = |part: &str, count: usize| part.len() == count && part.bytes().all(|byte| byte.is_ascii_digit());
    let [year, month, day] = parts.as_slice() else {
        return false;
    };
    let is_within = |part: &str, max: u8| part.parse().is_ok_and(|number: u8| (1..=max).contains(&number));
    is_digits(year, 4) && is_digits(month, 2) && is_digits(day, 2) && is_within(month, 12) && is_within(day, 31)
}

fn check_number(number: &Number, is_integer: bool, min: Option<&Number>, max: Option<&Number>) -> Result<(), String> {
    let value = number.as_f64().unwrap_or(f64::NAN);
    if is_integer && value.fract() != 0.0 {
        return Err("expected an integer".to_owned());
    }
    if let Some(min) = min.filter(|min| min.as_f64().is_some_and(|min| value < min)) {
        return Err(format!("expected at least {min}"));
    }
    match max.filter(|max| max.as_f64().is_some_and(|max| value > max)) {
        Some(max) => Err(format!("expected at most {max}")),
        None => Ok(()),
    }
}

fn check_option(options: &[FieldOption], text: &str) -> Result<(), String> {
    if options.iter().any(|option| option.value == text) {
        return Ok(());
    }
    Err("expected one of the options".to_owned())
}

fn check_selection(
    options: &[FieldOption],
    selected: &[Value],
    count_min: usize,
    count_max: Option<usize>,
) -> Result<(), String> {
    if selected.len() < count_min {
        return Err(format!("expected at least {count_min} options"));
    }
    if let Some(max) = count_max.filter(|max| selected.len() > *max) {
        return Err(format!("expected at most {max} options"));
    }
    for (index, value) in selected.iter().enumerate() {
        let text = value.as_str().ok_or("expected a list of texts")?;
        check_option(options, text)?;
        if selected[..index].contains(value) {
            return Err("an option occurs twice".to_owned());
        }
    }
    Ok(())
}
