//! Decodes JSON arguments to the values of the parameters of a component's function.

use std::fmt;

use base64::Engine as _;
use base64::alphabet;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};
use serde_json::{Map, Value};
use wasmtime::component::{ResourceAny, Val};

use super::decode_number::{decode_float32, decode_float64, decode_integer, decode_long_integer};
use super::types::{Case, DATA_URL_START, Field, Label, ResourceIndex, WitType};
use toolwit_core::text::json_type;

/// Base64 that ignores unused bits of the last character, which encoders set differently.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true),
);

/// The error for a value that does not fit its type, with its path in the arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DecodeError {
    /// The path from the value to the root, the innermost step first.
    steps: Vec<String>,
    message: String,
}

impl DecodeError {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self {
            steps: Vec::new(),
            message: message.into(),
        }
    }

    /// Creates the error for a value that does not have the expected form.
    pub(crate) fn expected(form: &str, value: &Value) -> Self {
        Self::new(format!("expected {form}, found {}", formatted_value(value)))
    }

    /// Adds the next step towards the root to the path.
    fn within(mut self, step: impl fmt::Display) -> Self {
        self.steps.push(step.to_string());
        self
    }
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.steps.is_empty() {
            for step in self.steps.iter().rev() {
                write!(f, "/{}", step.replace('~', "~0").replace('/', "~1"))?;
            }
            f.write_str(": ")?;
        }
        f.write_str(&self.message)
    }
}

/// Whether the callee takes ownership of a handle or borrows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HandleTransfer {
    /// The callee takes ownership.
    Own,
    /// The callee borrows the handle for the call.
    Borrow,
}

/// Resolves entity ids from the model to handles of live resources.
pub(crate) trait ResolveHandle {
    /// Returns the handle of an entity.
    fn resolve(
        &mut self,
        resource: ResourceIndex,
        id: &str,
        transfer: HandleTransfer,
    ) -> Result<ResourceAny, DecodeError>;
}

/// The resolver for a component that has no entities.
pub(crate) struct NoHandles;

impl ResolveHandle for NoHandles {
    fn resolve(&mut self, _: ResourceIndex, id: &str, _: HandleTransfer) -> Result<ResourceAny, DecodeError> {
        Err(DecodeError::new(format!("there is no entity `{id}`")))
    }
}

/// Decodes a function's arguments in the order of its parameters. Unknown properties are refused.
pub(crate) fn decode_arguments(
    params: &[Field],
    arguments: &Map<String, Value>,
    handles: &mut dyn ResolveHandle,
) -> Result<Vec<Val>, DecodeError> {
    Ok(Decoder { handles }
        .decode_fields(params, arguments)?
        .into_iter()
        .map(|(_, value)| value)
        .collect())
}

struct Decoder<'a> {
    handles: &'a mut dyn ResolveHandle,
}

impl Decoder<'_> {
    /// Decodes a value of a type. For a stream or a future, returns the values that it will deliver. The call later creates the
    /// stream or the future from these values.
    fn decode(&mut self, ty: &WitType, value: &Value) -> Result<Val, DecodeError> {
        Ok(match ty {
            WitType::Bool => Val::Bool(
                value
                    .as_bool()
                    .ok_or_else(|| DecodeError::expected("a boolean", value))?,
            ),
            WitType::S8 => Val::S8(decode_integer(value)?),
            WitType::U8 => Val::U8(decode_integer(value)?),
            WitType::S16 => Val::S16(decode_integer(value)?),
            WitType::U16 => Val::U16(decode_integer(value)?),
            WitType::S32 => Val::S32(decode_integer(value)?),
            WitType::U32 => Val::U32(decode_integer(value)?),
            WitType::S64 => Val::S64(decode_long_integer(value)?),
            WitType::U64 => Val::U64(decode_long_integer(value)?),
            WitType::F32 => Val::Float32(decode_float32(value)?),
            WitType::F64 => Val::Float64(decode_float64(value)?),
            WitType::Char => Val::Char(decode_character(value)?),
            WitType::String => Val::String(expect_text(value)?.to_owned()),
            WitType::Bytes => Val::List(decode_bytes(value)?.into_iter().map(Val::U8).collect()),
            WitType::List(item) => Val::List(self.decode_items(value, |_| Some(item.as_ref()))?),
            WitType::Tuple(items) => {
                let length = expect_array(value)?.len();
                if length != items.len() {
                    return Err(DecodeError::new(format!(
                        "expected an array of {} items, found {length}",
                        items.len()
                    )));
                }
                Val::Tuple(self.decode_items(value, |index| items.get(index))?)
            }
            WitType::Record(fields) => match value {
                Value::Object(map) => Val::Record(self.decode_fields(fields, map)?),
                _ => return Err(DecodeError::expected("an object", value)),
            },
            WitType::Variant(cases) => self.decode_variant(cases, value)?,
            WitType::Enum(labels) => Val::Enum(find_label(labels, expect_text(value)?)?.wit.clone()),
            WitType::Flags(labels) => Val::Flags(decode_flags(labels, value)?),
            WitType::Option(_) if value.is_null() => Val::Option(None),
            WitType::Option(inner) if inner.encodes_null() => {
                const FORM: &str = "`null` or `{\"some\": …}`";
                let (key, value) = only_entry(value, FORM)?;
                if key != "some" {
                    return Err(unknown_key_error(key, FORM));
                }
                let value = self.decode(inner, value).map_err(|error| error.within("some"))?;
                Val::Option(Some(Box::new(value)))
            }
            WitType::Option(inner) => Val::Option(Some(Box::new(self.decode(inner, value)?))),
            WitType::Result { ok, err } => self.decode_result(ok.as_deref(), err.as_deref(), value)?,
            WitType::Stream(item) if **item == WitType::U8 => Val::String(expect_byte_stream(value)?.to_owned()),
            WitType::Stream(item) => Val::List(self.decode_items(value, |_| Some(item.as_ref()))?),
            WitType::Future(Some(payload)) => self.decode(payload, value)?,
            WitType::Future(None) if value.is_null() => Val::Tuple(Vec::new()),
            WitType::Future(None) => return Err(DecodeError::expected("`null`", value)),
            WitType::Own(index) => self.decode_handle(*index, value, HandleTransfer::Own)?,
            WitType::Borrow(index) => self.decode_handle(*index, value, HandleTransfer::Borrow)?,
        })
    }

    /// Decodes the items of an array. `type_at` returns the type of the item at an index.
    fn decode_items<'t>(
        &mut self,
        value: &Value,
        type_at: impl Fn(usize) -> Option<&'t WitType>,
    ) -> Result<Vec<Val>, DecodeError> {
        let mut decoded = Vec::new();
        for (index, item) in expect_array(value)?.iter().enumerate() {
            if let Some(ty) = type_at(index) {
                decoded.push(self.decode(ty, item).map_err(|error| error.within(index))?);
            }
        }
        Ok(decoded)
    }

    /// Decodes the properties of an object, in the order of the fields.
    fn decode_fields(&mut self, fields: &[Field], map: &Map<String, Value>) -> Result<Vec<(String, Val)>, DecodeError> {
        let mut matched_count = 0;
        let mut decoded = Vec::with_capacity(fields.len());
        for Field { label, ty } in fields {
            let value = match map.get(&label.json) {
                Some(value) => {
                    matched_count += 1;
                    self.decode(ty, value).map_err(|error| error.within(&label.json))?
                }
                None if matches!(ty, WitType::Option(_)) => Val::Option(None),
                None => return Err(DecodeError::new(format!("the property `{}` is missing", label.json))),
            };
            decoded.push((label.wit.clone(), value));
        }
        if matched_count < map.len() {
            let names = || fields.iter().map(|field| field.label.json.as_str());
            let unknown_key = map
                .keys()
                .find(|key| !names().any(|name| name == *key))
                .map_or("", String::as_str);
            return Err(DecodeError::new(format!(
                "there is no property {}{}",
                quoted(unknown_key),
                list_names(names())
            )));
        }
        Ok(decoded)
    }

    fn decode_variant(&mut self, cases: &[Case], value: &Value) -> Result<Val, DecodeError> {
        let names = || cases.iter().map(|case| case.label.json.as_str());
        let find = |name: &str| {
            cases
                .iter()
                .find(|case| case.label.json == name)
                .ok_or_else(|| DecodeError::new(format!("there is no case {}{}", quoted(name), list_names(names()))))
        };
        if let Value::String(name) = value {
            let case = find(name)?;
            return match case.ty {
                None => Ok(Val::Variant(case.label.wit.clone(), None)),
                Some(_) => Err(DecodeError::new(format!(
                    "the case `{name}` has a payload; write `{{\"{name}\": …}}`"
                ))),
            };
        }
        let (name, payload) = only_entry(value, "a case's name, or an object with a case and its payload")?;
        let case = find(name)?;
        match &case.ty {
            Some(ty) => {
                let payload = self.decode(ty, payload).map_err(|error| error.within(name))?;
                Ok(Val::Variant(case.label.wit.clone(), Some(Box::new(payload))))
            }
            None => Err(DecodeError::new(format!(
                "the case `{name}` has no payload; write `\"{name}\"`"
            ))),
        }
    }

    fn decode_result(
        &mut self,
        ok: Option<&WitType>,
        err: Option<&WitType>,
        value: &Value,
    ) -> Result<Val, DecodeError> {
        const FORM: &str = "`{\"ok\": …}` or `{\"err\": …}`";
        let (key, payload) = only_entry(value, FORM)?;
        let ty = match key {
            "ok" => ok,
            "err" => err,
            _ => return Err(unknown_key_error(key, FORM)),
        };
        let payload = match (ty, payload) {
            (Some(ty), payload) => Some(Box::new(self.decode(ty, payload).map_err(|error| error.within(key))?)),
            (None, Value::Null) => None,
            (None, payload) => return Err(DecodeError::expected("null", payload).within(key)),
        };
        Ok(Val::Result(if key == "ok" { Ok(payload) } else { Err(payload) }))
    }

    fn decode_handle(
        &mut self,
        index: ResourceIndex,
        value: &Value,
        transfer: HandleTransfer,
    ) -> Result<Val, DecodeError> {
        let Value::String(id) = value else {
            return Err(DecodeError::expected("the id of an entity, a string", value));
        };
        self.handles.resolve(index, id, transfer).map(Val::Resource)
    }
}

fn unknown_key_error(key: &str, form: &str) -> DecodeError {
    DecodeError::new(format!("expected {form}, found the key {}", quoted(key)))
}

/// Returns the key and the value of an object that has exactly one entry. `form` is the expected form, for the error.
fn only_entry<'a>(value: &'a Value, form: &str) -> Result<(&'a str, &'a Value), DecodeError> {
    let Value::Object(map) = value else {
        return Err(DecodeError::expected(form, value));
    };
    match (map.iter().next(), map.len()) {
        (Some((key, value)), 1) => Ok((key.as_str(), value)),
        (_, count) => Err(DecodeError::new(format!(
            "expected {form}, found an object with {count} keys"
        ))),
    }
}

fn expect_array(value: &Value) -> Result<&[Value], DecodeError> {
    value
        .as_array()
        .map(Vec::as_slice)
        .ok_or_else(|| DecodeError::expected("an array", value))
}

fn expect_text(value: &Value) -> Result<&str, DecodeError> {
    value.as_str().ok_or_else(|| DecodeError::expected("a string", value))
}

fn decode_bytes(value: &Value) -> Result<Vec<u8>, DecodeError> {
    decode_base64(expect_text(value)?)
}

/// Returns the text for a stream of bytes. A data URL is checked here, and decoded when its bytes are written to the stream.
fn expect_byte_stream(value: &Value) -> Result<&str, DecodeError> {
    let text = expect_text(value)?;
    if let Some(encoded) = text.strip_prefix(DATA_URL_START) {
        decode_base64(encoded)?;
    }
    Ok(text)
}

fn decode_base64(text: &str) -> Result<Vec<u8>, DecodeError> {
    use base64::DecodeError::{InvalidByte, InvalidLastSymbol, InvalidLength, InvalidPadding};
    BASE64.decode(text).map_err(|error| {
        let reason = match error {
            InvalidByte(at, _) | InvalidLastSymbol(at, _) => format!("invalid character at position {}", at + 1),
            InvalidLength(_) => "the text is incomplete".to_owned(),
            InvalidPadding => "it must be padded with `=` to a multiple of four characters".to_owned(),
        };
        DecodeError::new(format!("expected base64 with `+` and `/`: {reason}"))
    })
}

fn decode_character(value: &Value) -> Result<char, DecodeError> {
    let mut chars = expect_text(value)?.chars();
    match (chars.next(), chars.next()) {
        (Some(character), None) => Ok(character),
        _ => Err(DecodeError::expected("a string of one character", value)),
    }
}

fn decode_flags(labels: &[Label], value: &Value) -> Result<Vec<String>, DecodeError> {
    let mut flags: Vec<String> = Vec::new();
    for (index, item) in expect_array(value)?.iter().enumerate() {
        let flag = expect_text(item)
            .and_then(|name| find_label(labels, name))
            .map_err(|error| error.within(index))?;
        if flags.contains(&flag.wit) {
            return Err(DecodeError::new(format!("the flag `{}` is named twice", flag.json)).within(index));
        }
        flags.push(flag.wit.clone());
    }
    Ok(flags)
}

fn find_label<'a>(labels: &'a [Label], name: &str) -> Result<&'a Label, DecodeError> {
    labels.iter().find(|label| label.json == name).ok_or_else(|| {
        let names = labels.iter().map(|label| label.json.as_str());
        DecodeError::new(format!("there is no name {}{}", quoted(name), list_names(names)))
    })
}

/// Lists the valid names as the end of an error message.
fn list_names<'a>(names: impl Iterator<Item = &'a str>) -> String {
    const NAMES_MAX: usize = 40;
    let mut names: Vec<_> = names.map(|name| format!("`{name}`")).collect();
    if names.is_empty() {
        return "; there are none".to_owned();
    }
    if names.len() > NAMES_MAX {
        names.truncate(NAMES_MAX);
        names.push("…".to_owned());
    }
    format!("; known are {}", names.join(", "))
}

/// Quotes an untrusted name, escaped and cut to 60 characters.
pub(crate) fn quoted(name: &str) -> String {
    const CHARS_MAX: usize = 60;
    let mut text: String = name.chars().take(CHARS_MAX).flat_map(char::escape_debug).collect();
    if name.chars().nth(CHARS_MAX).is_some() {
        text.push('…');
    }
    format!("`{text}`")
}

/// Formats a value for an error message: an array or object as its type, a long string as its length, any other value as JSON.
fn formatted_value(value: &Value) -> String {
    const BYTES_MAX: usize = 60;
    match value {
        Value::Array(_) | Value::Object(_) => json_type(value).to_owned(),
        Value::String(text) if text.len() > BYTES_MAX => format!("a string of {} bytes", text.len()),
        _ => value.to_string(),
    }
}
