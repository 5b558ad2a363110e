//! Reads the format, the dimensions and the camera data of images, as a Toolwit plugin.
//!
//! The model reads the WIT in `wit/image_info.wit`. Everything except the WIT bindings in `plugin` is ordinary Rust and tested
//! natively. No picture is decoded.

pub mod exif;
pub mod info;

#[cfg(target_family = "wasm")]
mod plugin;
