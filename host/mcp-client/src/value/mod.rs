//! Values of settings: texts, secrets, environment variables and values of the caller's context.

mod address;
mod redaction;
mod secret_names;
mod setting_value;
mod source;

pub(crate) use address::check_address;
pub(crate) use redaction::Redaction;
pub(crate) use secret_names::names_a_secret;
pub(crate) use setting_value::PartOrigin;
pub use setting_value::SettingValue;
pub use source::{NoValues, ValueSource};
