//! Toolwit runs tools for AI agents as sandboxed WebAssembly components.
//!
//! A tool is a function that a component exports; its WIT is its schema, its grant is its sandbox, and a loop decides when
//! the model may see it. [`Toolwit`] is a host of plugins, and [`Conversation`] runs a model over their tools.

// The attribute `#[tool]` writes `::toolwit`, also in this crate's own tests.
extern crate self as toolwit;

mod host;
mod strategy;

pub use host::{DiscoveryTask, Exposure, TOOLS_VISIBLE_MAX, Toolwit, ToolwitBuilder};
pub use strategy::{RegistryTools, SEARCH_WALL_MAX, TOOL_GUIDANCE, ToolSearch, facades_by_interface};
pub use toolwit_agent as agent;
pub use toolwit_agent::{injection, model};
#[cfg(feature = "build")]
pub use toolwit_build as build;
pub use toolwit_core as tool;
pub use toolwit_core::limits;
#[cfg(feature = "models")]
pub use toolwit_models as models;
pub use toolwit_registry as registry;
pub use toolwit_registry::store;
pub use toolwit_sandbox as sandbox;
pub use toolwit_sandbox::grants;

pub use toolwit_agent::injection::*;
pub use toolwit_agent::model::Scripted;
pub use toolwit_agent::*;
pub use toolwit_core::*;
#[cfg(feature = "models")]
pub use toolwit_models::OpenAi;

#[cfg(feature = "macros")]
#[doc = include_str!("attribute.md")]
pub use toolwit_macros::tool;

/// What the attribute `#[tool]` writes into its users' code.
#[cfg(feature = "macros")]
#[doc(hidden)]
pub mod __private {
    pub use toolwit_core::__private::{schemars, serde};
}

/// Holds the README's example to what the library is.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
