//! Values of settings: texts, secrets, environment variables and values of the caller's context.

mod address;
mod redaction;
mod setting_value;
mod source;

pub(crate) use address::check_address;
pub(crate) use redaction::Redaction;
pub use setting_value::SettingValue;
pub use source::{NoValues, ValueSource};
