//! Custom sections of WebAssembly components, read and replaced without decoding the rest.
//!
//! Toolwit stores two sections in a component: its WIT package with doc comments ([`WIT_SECTION`]) and its manifest
//! ([`MANIFEST_SECTION`]). Other tools ignore both.

mod read;
mod replace;

pub use read::custom_section;
pub use replace::{SectionError, replace_custom_sections};

/// The name of the custom section with the WIT package, in binary form with docs.
pub const WIT_SECTION: &str = "toolwit:wit";

/// The name of the custom section with the manifest, as TOML.
pub const MANIFEST_SECTION: &str = "toolwit:manifest";

/// The name of the custom section of a core module with the WIT text that the macros of the Rust SDK generate.
pub const WIT_SOURCE_SECTION: &str = "toolwit:wit-source";
