//! Builds a plugin from its source directory.
//!
//! [`Build`] detects the kind of project ([`Source`]), builds a component with the toolchain of its language, and
//! embeds the project's WIT with its `///` comments ([`embed_wit`]), which toolchains drop:
//!
//! ```text
//! DIR ── Source ──┬─ Cargo.toml ────── cargo, for wasm32-wasip2 ──┐
//!                 ├─ app.py, app.js, … the language's toolchain ───┤
//!                 ├─ toolwit.toml ──── the author's command ──────┼── component ── + toolwit:wit ── NAME.wasm
//!                 └─ a .wasm file ──── converted if it is a core module
//! ```
//!
//! [`NewProject`] writes a new project in a [`Language`]. The project can be built without a change.
//!
//! The macros of the Rust SDK generate WIT, which is read from the built core module (`wit_source`).
//!
//! If the machine lacks the Rust target, `rust_target` obtains it: with rustup, or on Debian from packages.

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

/// The target that plugins are compiled for.
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
