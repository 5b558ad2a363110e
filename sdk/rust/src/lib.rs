#![doc = include_str!("../README.md")]

pub use wit_bindgen;

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
