#![doc = include_str!("../README.md")]

pub use wit_bindgen;

/// Generates the Rust side of the WIT in the package's `wit` directory.
///
/// It takes the options of [`wit_bindgen::generate!`], such as `world: "name"` or `path: "../wit"`, and may stand
/// without any. For each exported interface there is a trait `Guest` to implement in the module
/// `exports::<namespace>::<package>::<interface>`, for each exported resource a trait `Guest<Resource>`; `export!(Type)`
/// then makes the component's exports of the type that implements them.
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
