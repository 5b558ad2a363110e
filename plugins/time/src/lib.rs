//! Converts times between zones and calculates with dates, as a Toolwit plugin.
//!
//! The model reads the WIT in `wit/time.wit`. Everything except the WIT bindings in `plugin` is ordinary Rust and tested natively. The
//! data of the time zones is in the component, because a guest has no file system.

pub mod moment;
pub mod zones;

#[cfg(target_family = "wasm")]
mod plugin;
