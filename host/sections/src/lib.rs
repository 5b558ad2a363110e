//! Custom sections of WebAssembly components, read and replaced without decoding the rest.
//!
//! Toolwit carries two things inside a component: its WIT package with doc comments ([`WIT_SECTION`]) and its manifest
//! ([`MANIFEST_SECTION`]). Other tools ignore both.

mod read;
mod replace;

pub use read::custom_section;
pub use replace::{SectionError, replace_custom_sections};

/// The custom section that holds a WIT package in its binary form, with docs.
pub const WIT_SECTION: &str = "toolwit:wit";

/// The custom section that holds a manifest, as TOML.
pub const MANIFEST_SECTION: &str = "toolwit:manifest";
