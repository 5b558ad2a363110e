//! A component as tools: checked, reflected, compiled, linked, instantiated and called. Only this module uses wasmtime.
//!
//! The stages have a type each. An [`Inspection`] is what the bytes tell, without running anything. A [`Plugin`] adds a
//! name and compiles when it is first called; what is linked then makes an instance for each call, or one session
//! instance for each conversation where the component hands out resources. `authority` finds out what a call may do; `wasi`,
//! `files` and `http` are the only places that give it to a guest.

mod annotations;
mod answer;
mod authority;
mod check;
mod code_cache;
#[cfg(test)]
mod code_cache_tests;
mod code_entries;
mod command;
mod compile_status;
mod component;
mod config;
mod custom_section;
mod decode;
mod decode_number;
mod docs;
mod dynamic;
mod encode;
mod engine;
mod entity;
mod fault;
mod files;
mod footprint;
mod frozen;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzz;
mod harvest;
mod host_api;
#[cfg_attr(
    not(feature = "network"),
    allow(dead_code, reason = "nothing is sent, and all that is judged is refused")
)]
mod http;
mod imports;
mod inspection;
mod instance;
mod kept;
mod keyvalue;
mod known;
mod limiter;
mod link_once;
mod linked;
mod log;
#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::unreachable)]
mod mapping_tests;
mod package_docs;
mod place;
mod precompiled;
pub(crate) mod private_file;
mod reflect;
mod rehearsal;
mod runtime;
mod schema;
mod scope;
mod sections;
mod session;
mod session_registry;
mod source;
mod state;
mod stop;
mod stored_values;
mod survey;
mod tally;
mod ticker;
mod tool;
mod type_reader;
mod types;
mod wasi;
mod wit_text;
mod workers;

pub use annotations::{Annotations, EntityOptions, Need, ToolText};
#[cfg(feature = "cli")]
pub(crate) use authority::read_grants;
pub use authority::{SecretError, SecretStore};
pub use code_cache::CodeCache;
pub use code_entries::{CODE_CACHE_BYTES_MAX, CodeCacheUse};
pub use compile_status::CompileStatus;
pub use component::Plugin;
pub use custom_section::custom_section;
pub use docs::WIT_SECTION;
pub use engine::Profile;
pub use entity::ChainedResource;
pub use http::{Resolve, Resolving};
pub use imports::{Import, ImportSupport};
pub use inspection::{EntityType, Inspection, Origin, component_wit};
pub use kept::KEPT_VERSION;
pub use keyvalue::{KeyValue, KeyValueError};
pub use known::KeptInspection;
pub use runtime::{CodeCachePlace, Runtime, RuntimeOptions};
pub use scope::Scope;
pub use sections::{SectionError, replace_custom_sections};
pub use stored_values::StoredKeyValue;
pub use types::Skipped;

#[cfg(feature = "cli")]
pub(crate) use docs::WIT_BYTES_MAX;
#[cfg(feature = "cli")]
pub(crate) use log::printable;
pub(crate) use source::{read_component, read_wit};
