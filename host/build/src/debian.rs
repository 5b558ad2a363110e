//! Sets up Rust for WebAssembly from Debian's packages, for machines without a rustup target.
//!
//! Debian packages a current compiler (`rustc-web`, updated for browsers), the sources of its standard library, and a C
//! library for WASI. It does not package the standard library compiled for `wasm32-wasip2`; [`WasmSysroot`] compiles it
//! once per compiler version. Outside of the cache directory, the set-up only installs packages, if the user may do so
//! without a prompt.

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

/// A planned set-up. Its preconditions have been checked.
#[derive(Debug)]
pub(super) struct SetUp {
    linkers: Linkers,
    /// The privilege for installing packages; `None` if no package is missing.
    privilege: Option<Privilege>,
}

impl SetUp {
    /// Checks the preconditions on this machine. Returns the reason if one is not met.
    pub(super) async fn plan(linkers: Option<Linkers>) -> Result<Self, String> {
        if !apt::is_available() {
            return Err("this system is not Debian, whose packages provide it".to_owned());
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

    /// Installs missing packages and compiles the standard library. Waits for another build that does so, and uses its
    /// result.
    pub(super) async fn run(self, cache_dir: &Path, progress: &dyn Progress) -> Result<WasmSysroot, BuildError> {
        let lock = Lock::acquire(cache_dir, progress).await?;
        if let Some(privilege) = self.privilege {
            let missing = apt::missing(&PACKAGES).await?;
            if !missing.is_empty() {
                apt::install(&missing, privilege, progress).await?;
            }
        }
        WasmSysroot::build(cache_dir, &self.linkers, &lock, progress).await
    }
}
