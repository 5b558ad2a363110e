#![doc = include_str!("../README.md")]

#[cfg(feature = "macros")]
#[doc = include_str!("tool.md")]
pub use toolwit_guest_macros::tool;
#[cfg(feature = "macros")]
#[doc = include_str!("tools.md")]
pub use toolwit_guest_macros::tools;
pub use wit_bindgen;

mod convert;
#[cfg(feature = "host")]
mod host;
#[cfg(feature = "host")]
mod result;

#[cfg(feature = "host")]
pub mod ask;
#[cfg(feature = "host")]
pub mod blackboard;
#[cfg(feature = "host")]
pub mod context;
#[cfg(feature = "http")]
pub mod http;
#[cfg(feature = "host")]
pub mod log;
#[cfg(feature = "host")]
pub mod output;
#[cfg(feature = "host")]
pub mod tools;

#[cfg(feature = "host")]
pub use result::{Artifact, HostError, ToolError, ToolResult};

/// The result of a tool whose error is any error, which the model reads as text.
///
/// `?` accepts every error type, and texts: `Err("the city is not known".into())`.
pub type Result<T, E = Box<dyn std::error::Error>> = std::result::Result<T, E>;

/// Items that the expansions of the macros use.
#[doc(hidden)]
pub mod __private {
    pub use crate::convert::{FromWit, IntoWit};
    #[cfg(all(feature = "host", target_family = "wasm"))]
    pub use crate::host::bindings::toolwit::plugin::types;
}

/// Generates Rust bindings for the WIT in the package's `wit` directory.
///
/// Takes the options of [`wit_bindgen::generate!`], such as `world: "name"` or `path: "../wit"`; all are optional. For each
/// exported interface, implement the trait `Guest` of the module `exports::<namespace>::<package>::<interface>`, and for each
/// exported resource the trait `Guest<Resource>`. `export!(Type)` exports the type that implements them.
///
/// ```ignore
/// toolwit_guest::bindings!();
/// toolwit_guest::bindings!({ world: "plugin" });
/// ```
#[macro_export]
macro_rules! bindings {
    () => {
        $crate::bindings!({});
    };
    ({ $($options:tt)* }) => {
        $crate::wit_bindgen::generate!({
            runtime_path: "::toolwit_guest::wit_bindgen::rt",
            generate_all,
            $($options)*
        });
    };
}
