//! Custom sections of WebAssembly components, read and replaced without decoding the rest.
//!
//! Toolwit stores up to three sections in a component: its WIT package with doc comments ([`WIT_SECTION`]), its
//! manifest ([`MANIFEST_SECTION`]) and its user interfaces ([`UI_SECTION`]). Other tools ignore them.

mod read;
mod replace;

pub use read::custom_section;
pub use replace::{SectionError, replace_custom_sections};

/// The name of the custom section with the WIT package, in binary form with docs.
pub const WIT_SECTION: &str = "toolwit:wit";

/// The name of the custom section with the manifest, as TOML.
pub const MANIFEST_SECTION: &str = "toolwit:manifest";

/// The name of the custom section with the user interfaces for results, as a JSON object of HTML documents by name.
pub const UI_SECTION: &str = "toolwit:ui";

/// The name of the custom section of a core module with the WIT text that the macros of the Rust SDK generate.
pub const WIT_SOURCE_SECTION: &str = "toolwit:wit-source";
