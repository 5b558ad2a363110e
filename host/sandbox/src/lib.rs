//! Runs the functions of WebAssembly components as tools. This is the only crate of Toolwit that uses wasmtime.
//!
//! A [`Runtime`] owns the state that all plugins of a process share. A [`Plugin`] is a component with a name. [`Plugin::tools`]
//! returns its tools for the conversation of a [`Scope`].
//!
//! # Modules
//! The modules are listed in the order of their dependencies: a module imports only from the modules above it in this list.
//!
//! - `values`: maps JSON to component values, and WIT types to JSON Schema.
//! - `inspect`: reads the tool definitions and imports of a component from its bytes, as an [`Inspection`].
//! - [`grants`]: decides which accesses of a plugin are allowed.
//! - `link`: compiles a component, caches the code ([`CodeCache`]), and links it to WASI and the host interfaces.
//! - `contract`: lists and calls the tools of components that were built for other hosts, through the interfaces of these hosts.
//! - `call`: runs a function under limits, in a fresh instance or in the session instance of a conversation.
//! - `entity`: turns the resources that a call returned into entities, whose methods are tools.
//! - `dynamic`: discovers the tools that a component lists at run time ([`Plugin::discover_tools`]).
//! - `plugin`: creates plugins and their tools.
//! - `interceptor`: plugins that decide about the calls of other tools ([`PluginInterceptor`]).

mod call;
mod contract;
mod dynamic;
mod entity;
#[doc(hidden)]
pub mod fuzz;
pub mod grants;
mod inspect;
mod interceptor;
mod link;
mod plugin;
mod values;

pub use call::plugin::Plugin;
pub use call::runtime::{Runtime, RuntimeOptions, guest_files_max, process_files_max};
pub use call::scope::Scope;
pub use contract::act::act_manifest;
pub use entity::plugin_entity::ChainedResource;
pub use grants::authority::{
    KEY_VALUE_ENTRY_OVERHEAD_BYTES, KeyValueError, KeyValueStore, MemoryKeyValueStore, SecretError, SecretStore,
    SecretValues,
};
pub use grants::file::{GrantsContent, GrantsFile, GrantsFileError, GrantsFileErrorReason, NewGrant, WritableRecord};
pub use inspect::annotations::{Annotations, EntityOptions, Requirement, ToolText};
pub use inspect::cached_inspection::{CachedInspection, INSPECTION_CACHE_VERSION};
pub use inspect::check::UnbuiltComponent;
pub use inspect::dynamic_tools_state::DynamicToolsState;
pub use inspect::imports::{Import, ImportSupport, Wasi3Disabled, WasiVersions};
pub use inspect::inspection::{AdjacentWit, EntityType, Inspection, PackageContext, component_wit};
pub use inspect::lint::{KEEP_STATE, Lint, LintRule, lint};
pub use inspect::profile::Profile;
pub use inspect::source::{read_component, read_package_file, read_wit};
pub use interceptor::PluginInterceptor;
pub use link::compile::cache::CodeCache;
pub use link::compile::cache_entries::{CodeCacheUsage, RemovedCacheEntries};
pub use link::compile::cache_location::{CodeCacheChange, CodeCacheLocation, CodeCacheReport};
pub use link::compile::compiler::Compiler;
pub use link::compile::compiler_child::run_compiler_if_asked;
pub use link::compile::host_setting::{check_host, require_threads};
pub use link::compile::status::CompileStatus;
pub use link::host::http::{Resolve, ResolveFuture};
pub use toolwit_sections::{SectionError, WIT_SECTION, custom_section, replace_custom_sections};
pub use values::types::SkippedExport;
