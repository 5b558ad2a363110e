//! Toolwit runs tools for AI agents as sandboxed WebAssembly components.
//!
//! A tool is a function that a component exports; its WIT is its schema, its grant is its sandbox, and a loop decides when
//! the model may see it.
//!
//! Data flows through the modules in this order, and a module imports only from those before it: [`mod@tool`] says what a tool
//! is, [`limits`] how much it may use, [`capability`] what it may reach, [`store`] remembers between processes, [`plugin`]
//! makes tools of components, [`registry`] finds components on disk, [`injection`] decides which tools come and go,
//! [`model`] asks language models, [`agent`] is the loop over all of it. [`Toolwit`] puts them together.

// The attribute `#[tool]` writes `::toolwit`, also in this crate's own tests.
extern crate self as toolwit;

pub mod agent;
#[cfg(feature = "build")]
pub mod build;
pub mod capability;
#[cfg(feature = "cli")]
pub mod cli;
mod error;
mod host;
pub mod injection;
pub mod limits;
pub mod model;
pub mod plugin;
pub mod registry;
pub mod store;
pub mod tool;

pub use agent::*;
pub use error::{Error, ErrorKind, ErrorReport, LimitUse, Phase};
pub use host::{Exposure, TOOLS_VISIBLE_MAX, Toolwit, ToolwitBuilder};
pub use injection::*;
#[cfg(feature = "models")]
pub use model::OpenAi;
pub use model::Scripted;
pub use tool::*;

#[cfg(feature = "macros")]
#[doc = include_str!("tool/attribute.md")]
pub use toolwit_macros::tool;

/// What the attribute `#[tool]` writes into its users' code.
#[cfg(feature = "macros")]
#[doc(hidden)]
pub mod __private {
    pub use {schemars, serde};
}

/// Holds the README's example to what the library is.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;
