//! Runs the functions of WebAssembly components as tools. The only crate that uses wasmtime.
//!
//! The rooms stand in the order of a call: `inspect` reads a component's bytes, `values` maps JSON to component values,
//! [`grants`] decides what a plugin may access, `link` compiles a component and links it to the host interfaces, `call` runs
//! it under limits, `entity` turns returned resources into tools, and `dynamic` discovers tools that a component lists at run time.

mod call;
mod dynamic;
mod entity;
#[doc(hidden)]
pub mod fuzz;
pub mod grants;
mod inspect;
mod link;
mod plugin;
mod values;

pub use call::plugin::Plugin;
pub use call::runtime::{Runtime, RuntimeOptions};
pub use call::scope::Scope;
pub use entity::entity::ChainedResource;
pub use grants::authority::{
    KeyValueError, KeyValueStore, MemoryKeyValueStore, MissingGrant, SecretError, SecretStore,
};
pub use grants::file::{GrantsFile, GrantsFileError, GrantsFileErrorReason, NewGrant};
pub use inspect::annotations::{Annotations, EntityOptions, Requirement, ToolText};
pub use inspect::docs::WIT_BYTES_MAX;
pub use inspect::dynamic_tools::DynamicTools;
pub use inspect::imports::{Import, ImportSupport};
pub use inspect::inspection::{EntityType, Inspection, Origin, component_wit};
pub use inspect::kept::INSPECTION_CACHE_VERSION;
pub use inspect::known::CachedInspection;
pub use inspect::profile::Profile;
pub use inspect::source::{read_component, read_wit};
pub use link::code_cache::CodeCache;
pub use link::code_cache_entries::{CODE_CACHE_BYTES_MAX, CodeCacheUsage};
pub use link::code_cache_location::CodeCacheLocation;
pub use link::compile_status::CompileStatus;
pub use link::http::{Resolve, ResolveFuture};
pub use toolwit_sections::{SectionError, WIT_SECTION, custom_section, replace_custom_sections};
pub use values::types::SkippedExport;
