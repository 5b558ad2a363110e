//! Outlines Markdown, extracts sections and converts it, as a Toolwit plugin.
//!
//! ```
//! use markdown::outline::{headings, section};
//!
//! let text = "# Guide\n\n## Setup\nRun it.\n## Use\n";
//! assert_eq!(headings(text).len(), 3);
//! assert_eq!(section(text, "setup")?, "## Setup\nRun it.\n");
//! # Ok::<(), String>(())
//! ```
//!
//! The model reads the WIT in `wit/markdown.wit`. Everything except the WIT bindings in `plugin` is ordinary Rust and tested natively.

pub mod convert;
pub mod outline;

#[cfg(target_family = "wasm")]
mod plugin;
