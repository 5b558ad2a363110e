//! Toolwit runs tools for AI agents as sandboxed WebAssembly components.
//!
//! A [`Toolwit`] is a host: it loads the plugins of a directory and compiles each one before its first call. A
//! [`Conversation`] runs a language model with their tools. A plugin can only compute until the operator grants it
//! capabilities.
//!
//! ```no_run
//! use toolwit::{OpenAi, Toolwit};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let host = Toolwit::builder().plugins("./plugins").grants("./grants.toml").build().await?;
//! let mut conversation = host.conversation().model(OpenAi::from_env("gpt-5")?).build()?;
//! let outcome = conversation.run("Convert 20 degrees Celsius to Fahrenheit.").await?;
//! println!("{}", outcome.text());
//! # Ok(())
//! # }
//! ```
//!
//! The items that most programs need are at the root. Everything else is in a module:
//!
//! - Running plugins: [`Toolwit`], [`CallSession`], [`Exposure`], [`Scope`]; more in [`sandbox`], [`grants`],
//!   [`limits`], [`registry`], [`store`].
//! - Writing tools in Rust: the attributes [`macro@tool`] and [`macro@facade`], the derive macro [`Entity`],
//!   [`NativeTool`], [`ToolObject`]; more in [`mod@tool`].
//! - Conversations: [`Conversation`], [`RunOutcome`], [`Event`]; more in [`agent`].
//! - Deciding which tools a model sees: [`Facade`], [`Unlock`], [`Playbook`], [`StateMachine`]; more in [`injection`]
//!   and [`strategy`].
//! - Models: [`ChatModel`], [`OpenAi`], [`ScriptedModel`]; more in [`model`] and [`models`].
//! - Tools of servers of the Model Context Protocol: [`mcp`].
//! - Building components from source: [`build`]; shipping a package as one file: [`packing`]; adding one from a URL:
//!   [`download`]; finding a tool by name: [`find`]; test cases of a plugin: [`testing`].

#![doc(test(attr(deny(warnings), allow(dead_code, unused_variables))))]

// The code that `#[tool]` generates refers to `::toolwit`, also in this crate's own tests.
extern crate self as toolwit;

#[cfg(feature = "download")]
pub mod download;
pub mod host;
#[cfg(feature = "build")]
pub mod packing;
pub mod strategy;
#[cfg(feature = "otlp")]
pub mod telemetry;
pub mod testing;

pub use host::{CallSession, Exposure, Toolwit, ToolwitBuilder, find};

#[doc(inline)]
pub use toolwit_agent::{
    AgenticTool, Budget, Conversation, ConversationBuilder, Event, RunOutcome,
    injection::{Facade, Playbook, StateMachine, Unlock},
    model::{ChatModel, ScriptedModel},
};
#[doc(inline)]
pub use toolwit_core::{
    Arguments, Artifact, Error, ErrorKind, NativeTool, Parameter, Phase, Tool, ToolContext, ToolDefinition, ToolError,
    ToolExt, ToolObject, ToolResult, ToolSelector, ToolSet, limits::LimitOverrides,
};
#[cfg(feature = "models")]
#[doc(inline)]
pub use toolwit_models::{Anthropic, Gemini, OpenAi, OpenAiResponses};
#[doc(inline)]
pub use toolwit_registry::Registry;
#[doc(inline)]
pub use toolwit_sandbox::{Runtime, Scope};

#[cfg_attr(feature = "macros", doc = include_str!("attribute.md"))]
#[cfg_attr(
    not(feature = "macros"),
    doc = "Needs the feature `macros`. Without the feature, each use is a compile error that names the feature."
)]
pub use toolwit_macros::tool;

#[cfg_attr(feature = "macros", doc = include_str!("entity.md"))]
#[cfg_attr(
    not(feature = "macros"),
    doc = "Needs the feature `macros`. Without the feature, each use is a compile error that names the feature."
)]
pub use toolwit_macros::Entity;

#[cfg_attr(feature = "macros", doc = include_str!("facade.md"))]
#[cfg_attr(
    not(feature = "macros"),
    doc = "Needs the feature `macros`. Without the feature, each use is a compile error that names the feature."
)]
pub use toolwit_macros::facade;

/// The agent loop: conversations, agents, processes and traces.
#[doc(inline)]
pub use toolwit_agent as agent;
/// Injection: which tools of a conversation its model sees, and when that changes.
#[doc(inline)]
pub use toolwit_agent::injection;
/// The interface to language models, and a scripted model for tests.
#[doc(inline)]
pub use toolwit_agent::model;
/// Building plugins from source.
#[cfg(feature = "build")]
#[doc(inline)]
pub use toolwit_build as build;
/// The tool contract: tools, definitions, results, tool sets and errors.
#[doc(inline)]
pub use toolwit_core as tool;
/// Limits that the host enforces, with their defaults.
#[doc(inline)]
pub use toolwit_core::limits;
/// The store of sessions: conversations that are stored event by event and can be resumed.
#[cfg(feature = "sqlite")]
#[doc(inline)]
pub use toolwit_journal as journal;
/// Servers of the Model Context Protocol as sources of tools.
#[cfg(feature = "mcp")]
#[doc(inline)]
pub use toolwit_mcp_client as mcp;
/// Clients of model providers.
#[cfg(feature = "models")]
#[doc(inline)]
pub use toolwit_models as models;
/// Packages on disk: manifests, search and reloading.
#[doc(inline)]
pub use toolwit_registry as registry;
/// The database of package metadata, tool health and plugin values.
#[doc(inline)]
pub use toolwit_registry::store;
/// The sandbox: components as tools, and the runtime that executes them.
#[doc(inline)]
pub use toolwit_sandbox as sandbox;
/// Grants: what the operator permits a plugin to access.
#[doc(inline)]
pub use toolwit_sandbox::grants;

/// Items that code generated by the macros refers to.
#[cfg(feature = "macros")]
#[doc(hidden)]
pub mod __private {
    pub use toolwit_core::__private::{
        EffectClass, Error, FacadeContent, FacadeField, FacadeObject, FacadeOutline, FacadeOwner, NoFacadeContent,
        Rebinding, ToolMethod, ToolMethods, run_blocking, schemars, serde, serialize_entity,
    };
}

/// Compiles the examples in the README.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;

/// Compiles the examples in the chapter about embedding.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/src/embedding.md")]
struct EmbeddingChapter;

/// Compiles the examples in the chapter about MCP servers.
#[cfg(all(doctest, feature = "mcp"))]
#[doc = include_str!("../../../docs/src/mcp-client.md")]
struct McpClientChapter;

/// Compiles the examples in the chapter about tool injection.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/src/injection.md")]
struct InjectionChapter;
