//! The directory in which cargo compiles a plugin.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use super::{BuildError, Progress, TARGET, blocking::blocking, wasm_sysroot::Lock};

/// The target directory of one build.
///
/// The packages of a workspace share its directory. Packages outside of workspaces share one directory of the user, so
/// that common dependencies, such as `wit-bindgen`, are compiled once. Both directories are separate from those of host
/// builds, so that plugin builds and host builds do not lock or invalidate each other.
#[derive(Debug)]
pub(super) struct TargetDirectory {
    /// The path for cargo's `--target-dir`.
    pub(super) path: PathBuf,
    /// Prevents concurrent builds of packages with the same name, because cargo gives their components the same path.
    _lock: Option<Lock>,
}

impl TargetDirectory {
    /// Returns the directory for plugins in the target directory of a workspace.
    pub(super) fn of_workspace(target_dir: &Path) -> Self {
        Self {
            path: target_dir.join("toolwit"),
            _lock: None,
        }
    }

    /// Returns the shared directory `path` for a build of the package `name` in `dir`. Waits until no other build uses
    /// the directory for a package of this name.
    pub(super) async fn shared(
        path: &Path,
        name: &str,
        dir: &Path,
        progress: &dyn Progress,
    ) -> Result<Self, BuildError> {
        let package_dir = path.join("packages").join(name);
        let lock = Lock::acquire(&package_dir, progress).await?;
        let (target, name, dir) = (path.to_owned(), name.to_owned(), dir.to_owned());
        let prepare =
            move || record_owner(&target, &package_dir, &name, &dir).map_err(BuildError::file("write", &target));
        blocking(prepare).await?;
        Ok(Self {
            path: path.to_owned(),
            _lock: Some(lock),
        })
    }
}

/// Records that the components of packages called `name` belong to the package in `dir`. If they belonged to another
/// package, deletes them. Otherwise, cargo would use them as the components of the package in `dir`.
fn record_owner(target: &Path, package_dir: &Path, name: &str, dir: &Path) -> io::Result<()> {
    let owner_file = package_dir.join("owner");
    let new_owner = dir.to_string_lossy();
    if fs::read_to_string(&owner_file).is_ok_and(|owner| owner == new_owner) {
        return Ok(());
    }
    let profiles = match fs::read_dir(target.join(TARGET)) {
        Ok(profiles) => profiles.collect::<Result<Vec<_>, _>>()?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(error),
    };
    // The directory also contains files that are not profiles, such as `CACHEDIR.TAG`.
    for profile in profiles.iter().filter(|profile| profile.path().is_dir()) {
        for stem in [name.to_owned(), name.replace('-', "_")] {
            let file = profile.path().join("deps").join(stem).with_added_extension("wasm");
            match fs::remove_file(file) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
    }
    fs::write(owner_file, new_owner.as_bytes())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn the_component_of_another_package_with_the_same_name_is_deleted() {
        let target = tempfile::tempdir().unwrap();
        let package_dir = target.path().join("packages/my-guest");
        let deps = target.path().join(TARGET).join("plugin/deps");
        fs::create_dir_all(&package_dir).unwrap();
        fs::create_dir_all(&deps).unwrap();
        fs::write(target.path().join(TARGET).join("CACHEDIR.TAG"), "").unwrap();
        let record = |dir: &str| record_owner(target.path(), &package_dir, "my-guest", Path::new(dir)).unwrap();
        let file_count = || fs::read_dir(&deps).unwrap().count();
        record("/one");
        for file in ["my_guest.wasm", "my-guest.wasm", "libwit_bindgen.rlib"] {
            fs::write(deps.join(file), "").unwrap();
        }
        record("/one");
        assert_eq!(file_count(), 3, "the component of the same package stays");
        record("/other");
        assert_eq!(file_count(), 1, "only the dependency stays");
        record("/other");
        record("/one");
    }
}
