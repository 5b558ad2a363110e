//! Rust for WebAssembly out of Debian's packages, where no rustup target can be had.
//!
//! Debian packages a current compiler (`rustc-web`, kept up to date for browsers), the sources of its standard
//! library with everything they depend on, and a C library for WASI; it does not package the library compiled for
//! `wasm32-wasip2`. [`WasmSysroot`] compiles it once. Nothing outside of the cache directory changes but for the
//! packages, and those only when the user may install them.

use std::path::Path;

use super::{
    BuildError, Progress,
    apt::{self, Privilege},
    linkers::Linkers,
    wasm_sysroot::{Lock, WasmSysroot},
};

/// The compiler, cargo, the sources of the standard library, its host build, and the C library for WASI.
const PACKAGES: [&str; 5] = [
    "rustc-web",
    "cargo-web",
    "rust-web-src",
    "libstd-rust-web-dev",
    "wasi-libc",
];

/// A set-up that can be carried out on this machine, as far as can be told.
#[derive(Debug)]
pub(super) struct SetUp {
    linkers: Linkers,
    /// What it may install packages with, if it has to.
    privilege: Option<Privilege>,
}

impl SetUp {
    /// Looks at what the machine has, and says what stands against it.
    pub(super) async fn plan(linkers: Option<Linkers>) -> Result<Self, String> {
        if !apt::is_available() {
            return Err("this is no Debian, whose packages could replace it".to_owned());
        }
        let Some(linkers) = linkers else {
            return Err(
                "`wasm-component-ld` and `rust-lld` or `wasm-ld` are neither in a Rust toolchain nor on PATH \
                        (`cargo install wasm-component-ld`, `apt-get install lld`)"
                    .to_owned(),
            );
        };
        let missing = apt::missing(&PACKAGES).await.map_err(|error| error.to_string())?;
        if missing.is_empty() {
            return Ok(Self {
                linkers,
                privilege: None,
            });
        }
        match Privilege::find().await {
            Some(privilege) => Ok(Self {
                linkers,
                privilege: Some(privilege),
            }),
            None => Err(format!("this user may not install the packages {}", missing.join(", "))),
        }
    }

    /// Installs what is missing and compiles the standard library, or waits for another build that is doing so.
    pub(super) async fn run(self, cache_dir: &Path, progress: &dyn Progress) -> Result<WasmSysroot, BuildError> {
        let lock = Lock::take(cache_dir, progress).await?;
        if let Some(privilege) = self.privilege {
            let missing = apt::missing(&PACKAGES).await?;
            if !missing.is_empty() {
                apt::install(&missing, privilege, progress).await?;
            }
        }
        WasmSysroot::build(cache_dir, &self.linkers, &lock, progress).await
    }
}
