//! A sysroot with the target `wasm32-wasip2` for Debian's compiler.

mod lock;

pub(super) use lock::Lock;

use std::{
    fs, io,
    os::unix::fs::{PermissionsExt, symlink},
    path::{Path, PathBuf},
    time::Duration,
};

use tokio::process::Command;

use super::{
    BuildError, Progress, Silent, Step, TARGET,
    blocking::blocking,
    command::{Stdout, run_to_success},
    environment::{program, use_system_toolchain},
    linkers::Linkers,
};

/// Debian's programs, independent of `PATH`.
const RUSTC: &str = "/usr/bin/rustc";
const CARGO: &str = "/usr/bin/cargo";

/// The directory of Debian's C library for WASI.
const WASI_LIBC: &str = "/usr/lib/wasm32-wasi";

/// The script that starts Debian's compiler with the sysroot.
const WRAPPER: &str = include_str!("rustc.sh");
/// The manifest of an empty package, with which cargo compiles the standard library.
const SEED_MANIFEST: &str = include_str!("seed.toml");
/// The source of the symbols that Debian's C library lacks.
const COMPAT: &str = include_str!("compat.rs");

/// The compiler flag for the standard library. It embeds bitcode, which cargo omits by default. Plugins need the bitcode
/// for link-time optimisation across the standard library.
const STD_FLAGS: &str = "-Cembed-bitcode=yes";

/// The version of the sysroot's layout. Increment the version if a change is incompatible with existing sysroots.
const LAYOUT_VERSION: &str = "1";

/// The prefix of the name of a directory in which a sysroot is built. The id of the building process follows.
const WORK_PREFIX: &str = "work-";

/// The length of each fingerprint in the name of a sysroot.
const FINGERPRINT_CHARS: usize = 8;

/// The time limit for compiling the standard library, which usually takes two minutes on an idle machine.
const STD_LIMIT: Duration = Duration::from_secs(40 * 60);

/// The time limit of every program other than cargo.
const STEP_LIMIT: Duration = Duration::from_secs(120);

/// A directory with the standard library for the host and for WebAssembly, the linkers, and a `rustc` that uses them.
///
/// Its name contains the version of its compiler, so that an upgrade of the compiler causes a new build. The directory
/// gets this name only when it is complete.
#[derive(Clone, Debug)]
pub(super) struct WasmSysroot {
    path: PathBuf,
    /// The host tuple of the compiler.
    host: String,
}

impl WasmSysroot {
    /// Returns the path of Debian's cargo.
    pub(super) fn cargo(&self) -> &'static Path {
        Path::new(CARGO)
    }

    /// Returns the path of the compiler that uses this sysroot.
    pub(super) fn rustc(&self) -> PathBuf {
        self.path.join("bin/rustc")
    }

    /// Returns the directory of the linkers. A build must have this directory on its `PATH`.
    pub(super) fn linker_dir(&self) -> PathBuf {
        self.path.join("lib/rustlib").join(&self.host).join("bin")
    }

    /// Finds the complete sysroot of the installed compiler. Returns `None` if the sysroot or a linker is missing.
    ///
    /// If a link to a linker is broken, for example because a toolchain was removed, the method replaces the link by a
    /// link to one of `linkers`.
    pub(super) async fn find(cache_dir: &Path, linkers: Option<&Linkers>) -> Option<Self> {
        let compiler = Compiler::installed().await.ok()?;
        let sysroot = Self {
            path: compiler.sysroot_in(cache_dir),
            host: compiler.host,
        };
        let (candidate, linkers) = (sysroot.clone(), linkers.cloned());
        let check = move || {
            let has_linkers = || {
                ["wasm-component-ld", "wasm-ld"]
                    .iter()
                    .all(|name| candidate.linker_dir().join(name).exists())
            };
            let repair = |linkers| candidate.link_linkers(linkers).is_ok();
            Ok(candidate.path.is_dir() && (has_linkers() || linkers.as_ref().is_some_and(repair)))
        };
        blocking(check).await.unwrap_or(false).then_some(sysroot)
    }

    /// Builds the sysroot, unless a previous holder of the lock has built it.
    pub(super) async fn build(
        cache_dir: &Path,
        linkers: &Linkers,
        _lock: &Lock,
        progress: &dyn Progress,
    ) -> Result<Self, BuildError> {
        if let Some(existing) = Self::find(cache_dir, Some(linkers)).await {
            return Ok(existing);
        }
        let compiler = Compiler::installed().await?;
        remove_obsolete_directories(cache_dir.to_owned(), compiler.id.clone()).await?;
        let work_dir = cache_dir.join(format!("{WORK_PREFIX}{}", std::process::id()));
        let unfinished = Self {
            path: work_dir.join("sysroot"),
            host: compiler.host.clone(),
        };

        let (sysroot, linkers) = (unfinished.clone(), linkers.clone());
        blocking(move || {
            sysroot
                .lay_out(&linkers)
                .map_err(BuildError::file("write", &sysroot.path))
        })
        .await?;
        unfinished.build_std(&work_dir.join("seed"), progress).await?;
        unfinished.add_libc(&work_dir).await?;

        let finished = Self {
            path: compiler.sysroot_in(cache_dir),
            host: compiler.host.clone(),
        };
        let path = finished.path.clone();
        blocking(move || fs::rename(&unfinished.path, &path).map_err(BuildError::file("write", path))).await?;
        remove_obsolete_directories(cache_dir.to_owned(), compiler.id).await?;
        Ok(finished)
    }

    /// Creates the sysroot without the WebAssembly libraries: links to the host library and the linkers, and a `rustc`.
    fn lay_out(&self, linkers: &Linkers) -> io::Result<()> {
        let host_libdir = Path::new("/usr/lib/rustlib").join(&self.host).join("lib");
        fs::create_dir_all(self.linker_dir())?;
        fs::create_dir_all(self.target_libdir().join("self-contained"))?;
        fs::create_dir_all(self.path.join("bin"))?;
        symlink(host_libdir, self.path.join("lib/rustlib").join(&self.host).join("lib"))?;
        self.link_linkers(linkers)?;
        fs::write(self.rustc(), WRAPPER)?;
        fs::set_permissions(self.rustc(), fs::Permissions::from_mode(0o755))
    }

    /// Creates the links to the linkers that are missing or broken. Copies would not work, because `rust-lld` finds its
    /// LLVM library relative to its real path. Under the name `wasm-ld`, `rust-lld` acts as the linker for WebAssembly.
    fn link_linkers(&self, linkers: &Linkers) -> io::Result<()> {
        let links = [
            ("wasm-component-ld", &linkers.component_ld),
            ("rust-lld", &linkers.lld),
            ("wasm-ld", &linkers.lld),
        ];
        for (name, target) in links {
            let link = self.linker_dir().join(name);
            if link.exists() {
                continue;
            }
            let temporary = self.linker_dir().join(format!(".{name}.{}", std::process::id()));
            symlink(target, &temporary)?;
            fs::rename(&temporary, &link)?;
        }
        Ok(())
    }

    /// Compiles the standard library from Debian's sources and copies the resulting libraries into the sysroot. `seed_dir`
    /// is the directory for the empty package of [`SEED_MANIFEST`].
    ///
    /// The dependencies of the standard library come from the crate registry, in the versions of Debian's lock file.
    /// Debian's copies of the dependencies are not used, because they lack the prebuilt objects of `wit-bindgen`.
    async fn build_std(&self, seed_dir: &Path, progress: &dyn Progress) -> Result<(), BuildError> {
        progress.step(Step::BuildStd);
        let dir = seed_dir.to_owned();
        let write_seed = move || {
            fs::create_dir_all(&dir)?;
            fs::write(dir.join("Cargo.toml"), SEED_MANIFEST)?;
            fs::write(dir.join("lib.rs"), "#![no_std]\n")
        };
        blocking({
            let dir = seed_dir.to_owned();
            move || write_seed().map_err(BuildError::file("write", dir))
        })
        .await?;

        let mut cargo = Command::new(CARGO);
        use_system_toolchain(&mut cargo, Some(&self.linker_dir()));
        cargo
            .current_dir(seed_dir)
            .env("RUSTC", RUSTC)
            .env("RUSTC_BOOTSTRAP", "1")
            .env("RUSTFLAGS", STD_FLAGS)
            .args(["build", "--release", "--target", TARGET, "--target-dir", "target"])
            .arg("-Zbuild-std=std,panic_abort,proc_macro");
        run_to_success(cargo, Stdout::Stream, STD_LIMIT, progress).await?;

        let compiled = seed_dir.join("target").join(TARGET).join("release/deps");
        let destination = self.target_libdir();
        blocking(move || copy_libraries(&compiled, &destination).map_err(BuildError::file("copy", compiled))).await
    }

    /// Copies the C library, and adds to the copy the object of [`COMPAT`].
    async fn add_libc(&self, work_dir: &Path) -> Result<(), BuildError> {
        let (compat, object) = (work_dir.join("compat.rs"), work_dir.join("compat.o"));
        let libc_dir = self.target_libdir().join("self-contained");
        let (source, destination) = (compat.clone(), libc_dir.clone());
        blocking(move || {
            fs::write(&source, COMPAT).map_err(BuildError::file("write", source))?;
            copy_libc(Path::new(WASI_LIBC), &destination).map_err(BuildError::file("copy", WASI_LIBC))
        })
        .await?;

        let mut rustc = Command::new(RUSTC);
        use_system_toolchain(&mut rustc, None);
        rustc
            .arg("--sysroot")
            .arg(&self.path)
            .args(["--target", TARGET, "--edition", "2024", "--crate-type", "lib"]);
        rustc
            .args(["--emit", "obj", "-Copt-level=s", "-Cpanic=abort", "-o"])
            .arg(&object)
            .arg(&compat);
        run_to_success(rustc, Stdout::Stream, STEP_LIMIT, &Silent).await?;

        // `S` omits the symbol index: GNU ar cannot index WebAssembly, and the linker does not need the index.
        let mut ar = program("ar");
        ar.arg("rS").arg(libc_dir.join("libc.a")).arg(&object);
        run_to_success(ar, Stdout::Stream, STEP_LIMIT, &Silent).await?;
        Ok(())
    }

    /// Returns the directory of the libraries for WebAssembly.
    fn target_libdir(&self) -> PathBuf {
        self.path.join("lib/rustlib").join(TARGET).join("lib")
    }
}

/// The installed compiler of Debian.
struct Compiler {
    /// The host tuple.
    host: String,
    /// The release, and a fingerprint of the output of `rustc -vV`.
    id: String,
}

impl Compiler {
    /// Queries the installed compiler.
    async fn installed() -> Result<Self, BuildError> {
        let mut rustc = Command::new(RUSTC);
        use_system_toolchain(&mut rustc, None);
        rustc.arg("-vV");
        let version = run_to_success(rustc, Stdout::Collect, STEP_LIMIT, &Silent)
            .await?
            .stdout;
        let field = |name| {
            version
                .lines()
                .find_map(|line| line.strip_prefix(name))
                .unwrap_or_default()
                .to_owned()
        };
        Ok(Self {
            host: field("host: "),
            id: format!("{}-{}", field("release: "), fingerprint(&[&version])),
        })
    }

    /// Returns the directory of the compiler's sysroot. Versions of Toolwit that build different sysroots use different
    /// directories.
    fn sysroot_in(&self, cache_dir: &Path) -> PathBuf {
        let layout = fingerprint(&[LAYOUT_VERSION, WRAPPER, SEED_MANIFEST, STD_FLAGS, COMPAT]);
        cache_dir.join(format!("{}-{layout}", self.id))
    }
}

/// Returns the first characters of a digest of the texts.
fn fingerprint(texts: &[&str]) -> String {
    let mut hash = blake3::Hasher::new();
    for text in texts {
        hash.update(&(text.len() as u64).to_le_bytes()).update(text.as_bytes());
    }
    hash.finalize().to_hex()[..FINGERPRINT_CHARS].to_owned()
}

/// Removes the work directories of finished and killed builds, and the sysroots of compilers that are no longer
/// installed.
///
/// Other directories stay, because they belong to builds with other locks, or to the user. The caller must hold the lock
/// of the cache directory.
async fn remove_obsolete_directories(cache_dir: PathBuf, compiler_id: String) -> Result<(), BuildError> {
    blocking(move || {
        for entry in fs::read_dir(&cache_dir)
            .map_err(BuildError::file("read", &cache_dir))?
            .flatten()
        {
            let is_directory = entry.file_type().is_ok_and(|file_type| file_type.is_dir());
            if is_directory && is_obsolete(&entry.file_name().to_string_lossy(), &compiler_id) {
                let path = entry.path();
                fs::remove_dir_all(&path).map_err(BuildError::file("remove", path))?;
            }
        }
        Ok(())
    })
    .await
}

/// Returns whether a directory of this name is the work directory of a build, or a sysroot of another compiler. The name
/// of a sysroot is `RELEASE-VERSION-LAYOUT`. The last two are fingerprints, and the first two are the compiler's id.
fn is_obsolete(name: &str, compiler_id: &str) -> bool {
    if let Some(process_id) = name.strip_prefix(WORK_PREFIX) {
        return !process_id.is_empty() && process_id.bytes().all(|byte| byte.is_ascii_digit());
    }
    let is_fingerprint =
        |text: &str| text.len() == FINGERPRINT_CHARS && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let mut parts = name.rsplitn(3, '-');
    let (layout, version, release) = (parts.next(), parts.next(), parts.next());
    let (Some(layout), Some(version), Some(release)) = (layout, version, release) else {
        return false;
    };
    is_fingerprint(layout) && is_fingerprint(version) && format!("{release}-{version}") != compiler_id
}

/// Copies the compiled libraries, except the library of the empty package.
fn copy_libraries(from: &Path, to: &Path) -> io::Result<()> {
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let name = entry.file_name();
        let text = name.to_string_lossy();
        let is_library = text.ends_with(".rlib") || text.ends_with(".rmeta");
        if is_library && !text.starts_with("libstd_seed") {
            fs::copy(entry.path(), to.join(name))?;
        }
    }
    Ok(())
}

/// Copies the archives of the C library and the start objects of programs and libraries.
///
/// With Debian's `crt1-command.o`, every call of an export runs the constructors. One export is the allocation function,
/// in which the guest must not call imports. Programs are therefore linked with `crt1.o`, which runs the constructors
/// once.
fn copy_libc(from: &Path, to: &Path) -> io::Result<()> {
    fs::copy(from.join("crt1.o"), to.join("crt1-command.o"))?;
    fs::copy(from.join("crt1-reactor.o"), to.join("crt1-reactor.o"))?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let name = entry.file_name();
        if name.to_string_lossy().ends_with(".a") {
            fs::copy(entry.path(), to.join(name))?;
        }
    }
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_work_directories_and_sysroots_of_other_compilers_are_removed() {
        let cache = tempfile::tempdir().unwrap();
        let compiler = format!("1.90.0-{}", fingerprint(&["rustc 1.90.0"]));
        let layout = fingerprint(&["layout"]);
        let installed = [
            format!("{compiler}-{layout}"),
            format!("{compiler}-{}", fingerprint(&["other"])),
        ];
        let unrelated = ["target", "c", "work-notes", "my-project", "work-"].map(str::to_owned);
        let obsolete = [
            "work-123".to_owned(),
            format!("1.85.0-{}-{layout}", fingerprint(&["rustc 1.85.0"])),
            format!("1.90.0-nightly-{}-{layout}", fingerprint(&["rustc 1.90.0-nightly"])),
        ];
        for name in installed.iter().chain(&unrelated).chain(&obsolete) {
            fs::create_dir_all(cache.path().join(name).join("content")).unwrap();
        }
        fs::write(cache.path().join("lock"), "").unwrap();
        remove_obsolete_directories(cache.path().to_owned(), compiler)
            .await
            .unwrap();
        for name in installed.iter().chain(&unrelated) {
            assert!(cache.path().join(name).join("content").is_dir(), "{name} stays");
        }
        for name in &obsolete {
            assert!(!cache.path().join(name).exists(), "{name} is removed");
        }
        assert!(cache.path().join("lock").is_file(), "the lock stays");
    }
}
