//! Builds a plugin from its source directory.
//!
//! [`Build`] detects the kind of project ([`Source`]), builds a component with the toolchain of its language, and
//! embeds the project's WIT with its `///` comments ([`embed_wit`]), which toolchains drop:
//!
//! ```text
//! DIR ── Source ──┬─ Cargo.toml ────── cargo, for wasm32-wasip2 ──┐
//!                 ├─ app.py, app.js, … the language's toolchain ──┤
//!                 ├─ toolwit.toml ──── the author's command ──────┼── component or core module ── + toolwit:wit ── NAME.wasm
//!                 └─ a .wasm file ────────────────────────────────┘
//! ```
//!
//! A core module is converted to a component before the WIT is embedded.
//!
//! [`NewProject`] writes a new project in a [`Language`]. The project can be built without edits.
//!
//! The macros of the Rust SDK generate WIT and store it in the core module. `wit_source` reads it from the built
//! component.
//!
//! If the machine lacks the Rust target, `rust_target` obtains it: with rustup, or on Debian by compiling the standard
//! library from packaged sources.

mod apt;
mod blocking;
mod c_code;
mod cargo;
mod clock_guard;
mod command;
mod componentize;
mod debian;
mod embed;
mod environment;
mod error;
mod language;
mod linkers;
mod plugin_build;
mod process_group;
mod progress;
mod project;
mod rust_target;
mod snapshot;
mod source;
mod target_directory;
mod wasm_sysroot;
mod wit;
mod wit_source;

/// The Rust target that plugins in Rust are compiled for.
const TARGET: &str = "wasm32-wasip2";

pub use embed::BuildReport;
pub use error::BuildError;
pub use language::{Language, MissingTool, UnknownLanguage};
pub use plugin_build::Build;
pub use progress::{BuildEvent, Progress, Silent, Step};
pub use project::{NewProject, ProjectError};
pub use rust_target::cargo_version;
pub use snapshot::SourceSnapshot;
pub use source::{BuildCommand, Source};
pub use toolwit_sections::SectionError;
pub use wit::{EmbedError, ResolvedWit, WitError, embed_wit};
