//! Values of settings: texts, secrets, environment variables and values of the caller's context.

mod address;
mod redaction;
mod setting;
mod source;

pub(crate) use address::check_address;
pub(crate) use redaction::Redaction;
pub use setting::Setting;
pub use source::{NoValues, ValueSource};
