//! Reads and replaces custom sections of WebAssembly components, without decoding other sections.
//!
//! Toolwit stores up to three sections in a component: its WIT package with doc comments ([`WIT_SECTION`]), its
//! manifest ([`MANIFEST_SECTION`]) and its user interfaces ([`UI_SECTION`]). Other tools ignore them.

mod read;
mod replace;

pub use read::custom_section;
pub use replace::{SectionError, replace_custom_sections};

/// The name of the custom section with the WIT package, in the binary format of WIT, with doc comments.
pub const WIT_SECTION: &str = "toolwit:wit";

/// The name of the custom section with the manifest, as TOML.
pub const MANIFEST_SECTION: &str = "toolwit:manifest";

/// The name of the custom section with the user interfaces for results, as a JSON object from names to HTML documents.
pub const UI_SECTION: &str = "toolwit:ui";

/// The name of the custom section with the WIT text that the macros of the Rust SDK generate. The section is in the core
/// module of a plugin, which is nested in the component after the build.
pub const WIT_SOURCE_SECTION: &str = "toolwit:wit-source";
