//! Toolwit runs tools for AI agents as sandboxed WebAssembly components.
//!
//! A tool is a function that a component exports; its WIT is its schema, its grant is its sandbox, and a loop decides when
//! the model may see it.

mod error;
pub mod model;
pub mod tool;

pub use error::{Error, ErrorKind, ErrorReport, LimitUse, Phase};
pub use tool::*;

#[cfg(feature = "build")]
pub mod build;
