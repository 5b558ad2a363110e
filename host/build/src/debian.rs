//! Sets up Rust for WebAssembly from Debian's packages, for machines without a rustup target.
//!
//! Debian has packages with a current compiler (`rustc-web`, which is updated for browsers), the sources of its standard
//! library, and a C library for WASI. It has no package with the standard library compiled for `wasm32-wasip2`.
//! [`WasmSysroot`] compiles the library once per compiler version.
//!
//! The set-up writes to the cache directory, and installs missing packages if it can do so without a password prompt.

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

/// A planned set-up. [`plan`](Self::plan) has checked its preconditions.
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
            return Err("this system is not Debian, so packages cannot provide the target".to_owned());
        }
        let Some(linkers) = linkers else {
            return Err(
                "a linker is missing from the Rust toolchain and from PATH: both `wasm-component-ld` \
                 (`cargo install wasm-component-ld`) and `rust-lld` or `wasm-ld` (`apt-get install lld`) are needed"
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
            None => Err(format!(
                "packages are missing that this user cannot install without a password: {}",
                missing.join(", ")
            )),
        }
    }

    /// Installs missing packages and compiles the standard library. If another build is doing so, waits for that build
    /// and uses its result.
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
