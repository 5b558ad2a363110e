//! Pictures for models: from the artifacts of results, and from the user.

#[allow(clippy::module_inception, reason = "the module is named after its main type")]
mod picture;
mod picture_format;

pub use picture::{InvalidPicture, Picture};
pub use picture_format::PictureFormat;
