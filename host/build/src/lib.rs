//! Builds a plugin from its source: `toolwit build DIR`.
//!
//! [`Build`] looks at what lies in a directory ([`Source`]), builds a component from it with that language's own tools,
//! and appends the project's WIT with its `///` comments ([`embed_wit`]), since no toolchain carries them along:
//!
//! ```text
//! DIR ── Source ──┬─ Cargo.toml ────── cargo, for wasm32-wasip2 ──┐
//!                 ├─ toolwit.toml ──── the author's command ──────┼── component ── + toolwit:wit ── NAME.wasm
//!                 └─ a .wasm file ──── made a component if a core module
//! ```
//!
//! The Rust target is the one thing that a machine may lack; the `rust_target` module says where it comes from then.

mod apt;
mod blocking;
mod cargo;
mod command;
mod componentize;
mod debian;
mod environment;
mod error;
mod linkers;
mod progress;
mod request;
mod rust_target;
mod source;
mod wasm_sysroot;
mod wit;

pub use error::BuildError;
pub use progress::{BuildEvent, Progress, Silent, Step};
pub use request::{Build, BuildReport};
pub use source::{BuildCommand, Source};
pub use toolwit_sections::SectionError;
pub use wit::{EmbedError, ResolvedWit, WitError, embed_wit};
