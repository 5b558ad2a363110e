//! Finds the program file of a server process.

use std::path::{Path, PathBuf};

/// Finds the file of a program. Returns `None` if the file does not exist or is not executable.
///
/// A relative path such as `bin/server` or `./server` starts at `directory`, or at the current directory if `directory`
/// is `None`. A plain name is looked up in the directories of `path_variable`, the value of the variable `PATH`. Relative
/// directories of `PATH` are skipped, because the current directory would then decide which program is executed.
pub(super) fn find(program: &str, path_variable: Option<&str>, directory: Option<&Path>) -> Option<PathBuf> {
    let program_path = Path::new(program);
    if program_path.components().count() > 1 || program_path.is_absolute() {
        let file = directory.map_or_else(|| program_path.to_owned(), |directory| directory.join(program_path));
        return is_executable(&file).then_some(file);
    }
    let directories = std::env::split_paths(path_variable?).filter(|directory| directory.is_absolute());
    let names = file_names(program);
    directories
        .flat_map(|directory| names.iter().map(move |name| directory.join(name)).collect::<Vec<_>>())
        .find(|candidate| is_executable(candidate))
}

/// Returns the possible file names of a program. On Windows, the program can be named without its extension.
fn file_names(program: &str) -> Vec<String> {
    let mut names = vec![program.to_owned()];
    if cfg!(windows) {
        names.extend(["exe", "cmd", "bat"].map(|extension| format!("{program}.{extension}")));
    }
    names
}

fn is_executable(path: &Path) -> bool {
    let Ok(metadata) = std::fs::metadata(path) else {
        return false;
    };
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        metadata.is_file() && metadata.permissions().mode() & 0o111 != 0
    }
    #[cfg(not(unix))]
    {
        metadata.is_file()
    }
}

#[cfg(all(test, unix))]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_name_is_looked_up_in_absolute_directories_only() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("server");
        fs::write(&file, "#!/bin/sh\n").unwrap();
        let path = directory.path().to_str().unwrap();
        assert_eq!(find("server", Some(path), None), None, "the file is not executable");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(find("server", Some(path), None).as_ref(), Some(&file));
        assert_eq!(
            find("server", Some(".:bin"), Some(directory.path())),
            None,
            "relative directories are skipped"
        );
        assert_eq!(find("server", None, Some(directory.path())), None);
        assert_eq!(
            find("./server", None, Some(directory.path())),
            Some(directory.path().join("./server"))
        );
        assert_eq!(find(file.to_str().unwrap(), None, None), Some(file));
    }
}
