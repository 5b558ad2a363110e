//! Finds the two linkers that are needed to build a component.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

/// The linker front end that converts the core module of the LLVM linker to a component.
const COMPONENT_LD: &str = "wasm-component-ld";

/// The paths of `wasm-component-ld` and an LLVM linker. Every rustup toolchain contains both, whichever targets it has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Linkers {
    /// The path of `wasm-component-ld`.
    pub(super) component_ld: PathBuf,
    /// The path of `rust-lld` or `wasm-ld`, which are the same program.
    pub(super) lld: PathBuf,
}

impl Linkers {
    /// Searches the directory `toolchain_bin` with the private programs of a toolchain, then `PATH`, then Debian's LLVM
    /// directories. Returns `None` if one of the two linkers is missing.
    pub(super) fn find(toolchain_bin: Option<&Path>) -> Option<Self> {
        #[expect(clippy::disallowed_methods, reason = "programs are looked up on `PATH`")]
        let path = env::var_os("PATH").unwrap_or_default();
        let mut dirs: Vec<PathBuf> = toolchain_bin.into_iter().map(Path::to_owned).collect();
        dirs.extend(env::split_paths(&path).filter(|dir| dir.is_absolute()));
        dirs.extend(llvm_dirs());
        Self::find_in(&dirs)
    }

    fn find_in(dirs: &[PathBuf]) -> Option<Self> {
        let find_file = |name: &str| dirs.iter().map(|dir| dir.join(name)).find(|file| file.is_file());
        Some(Self {
            component_ld: find_file(COMPONENT_LD)?,
            lld: find_file("rust-lld").or_else(|| find_file("wasm-ld"))?,
        })
    }
}

/// Returns the directories `/usr/lib/llvm-*/bin`, newest version first.
fn llvm_dirs() -> Vec<PathBuf> {
    let version = |dir: &Path| dir.file_name()?.to_str()?.strip_prefix("llvm-")?.parse::<u32>().ok();
    let entries = fs::read_dir("/usr/lib")
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path());
    let mut dirs: Vec<_> = entries.filter_map(|dir| Some((version(&dir)?, dir))).collect();
    dirs.sort_by_key(|(version, _)| std::cmp::Reverse(*version));
    dirs.into_iter().map(|(_, dir)| dir.join("bin")).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;

    #[test]
    fn both_linkers_are_required_and_the_first_directory_takes_precedence() {
        let dir = tempfile::tempdir().unwrap();
        let (first, second) = (dir.path().join("a"), dir.path().join("b"));
        for bin in [&first, &second] {
            fs::create_dir(bin).unwrap();
            fs::write(bin.join("wasm-ld"), "").unwrap();
        }
        let dirs = [first.clone(), second.clone()];
        assert_eq!(Linkers::find_in(&dirs), None);

        fs::write(second.join(COMPONENT_LD), "").unwrap();
        assert_eq!(
            Linkers::find_in(&dirs),
            Some(Linkers {
                component_ld: second.join(COMPONENT_LD),
                lld: first.join("wasm-ld")
            })
        );
        fs::write(second.join("rust-lld"), "").unwrap();
        assert_eq!(Linkers::find_in(&dirs).unwrap().lld, second.join("rust-lld"));
    }
}
