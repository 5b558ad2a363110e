//! Detects the kind of project in a plugin's directory. The kind decides how the plugin is built.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use serde::Deserialize;

use super::{BuildError, Language};

/// The file in which a project configures its build.
const CONFIGURATION: &str = "toolwit.toml";

/// The source of a component in a directory.
///
/// If a directory contains several sources, the first in this order is used: the `[build]` table of a `toolwit.toml`, a
/// `Cargo.toml`, the entry file of another language, a `.wasm` file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Source {
    /// A Rust package.
    Cargo,
    /// A project with its own build command.
    Command(BuildCommand),
    /// A project in a language other than Rust, which is recognized by its entry file.
    Language(Language),
    /// A component that another tool has built. The build only embeds the WIT.
    Component(PathBuf),
    /// A core module that another tool has built. The build converts it to a component and embeds the WIT.
    CoreModule(PathBuf),
}

/// The `[build]` table of a `toolwit.toml`.
///
/// ```toml
/// [build]
/// command = ["npx", "componentize-qjs", "--wit", "wit", "--js", "app.js", "-o", "app.wasm"]
/// output = "app.wasm"
/// ```
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct BuildCommand {
    /// The program and its arguments. The program runs in the project's directory, without a shell.
    pub command: Vec<String>,
    /// The path of the component or core module that the command writes, relative to the project's directory.
    pub output: PathBuf,
}

impl Source {
    /// Detects the source in `dir`.
    ///
    /// # Errors
    ///
    /// [`BuildError::NothingToBuild`] if there is no source, [`BuildError::SeveralLanguages`] or
    /// [`BuildError::SeveralWasmFiles`] if the source is ambiguous, [`BuildError::NotADirectory`] if `dir` is not a
    /// directory, and the error of a file that cannot be read or is not valid.
    pub fn find(dir: &Path) -> Result<Self, BuildError> {
        if !dir.is_dir() {
            return Err(BuildError::NotADirectory { dir: dir.to_owned() });
        }
        if let Some(command) = BuildCommand::read(&dir.join(CONFIGURATION))? {
            return Ok(Self::Command(command));
        }
        if dir.join("Cargo.toml").is_file() {
            return Ok(Self::Cargo);
        }
        match Language::all_in_directory(dir).as_slice() {
            [] => {}
            [language] => return Ok(Self::Language(*language)),
            several => {
                return Err(BuildError::SeveralLanguages {
                    dir: dir.to_owned(),
                    files: several.iter().map(|language| language.entry_file()).collect(),
                });
            }
        }
        let mut files = wasm_files(dir).map_err(BuildError::file("read", dir))?;
        match (files.pop(), files.is_empty()) {
            (Some(file), true) => Self::of_file(file),
            (Some(file), false) => {
                files.push(file);
                let name = |file: &PathBuf| file.file_name().unwrap_or_default().to_string_lossy().into_owned();
                Err(BuildError::SeveralWasmFiles {
                    dir: dir.to_owned(),
                    files: files.iter().map(name).collect(),
                })
            }
            (None, _) => Err(BuildError::NothingToBuild { dir: dir.to_owned() }),
        }
    }

    /// Returns the source for a file: a component or a core module, recognized by its first bytes.
    ///
    /// # Errors
    ///
    /// [`BuildError::NotWasm`] for any other file, [`BuildError::File`] if the file cannot be read.
    pub(super) fn of_file(file: PathBuf) -> Result<Self, BuildError> {
        let bytes = fs::read(&file).map_err(BuildError::file("read", &file))?;
        if wasmparser::Parser::is_component(&bytes) {
            Ok(Self::Component(file))
        } else if wasmparser::Parser::is_core_wasm(&bytes) {
            Ok(Self::CoreModule(file))
        } else {
            Err(BuildError::NotWasm { path: file })
        }
    }
}

impl BuildCommand {
    /// Reads the table from a file. Returns `None` if the file does not exist or has no such table.
    fn read(path: &Path) -> Result<Option<Self>, BuildError> {
        /// The table of the file that a build reads. Other commands use the other tables.
        #[derive(Deserialize)]
        struct Configuration {
            build: Option<BuildCommand>,
        }
        let text = match fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => {
                return Err(BuildError::File {
                    action: "read",
                    path: path.to_owned(),
                    source,
                });
            }
        };
        let invalid = |message: String| BuildError::Configuration {
            path: path.to_owned(),
            message,
        };
        let configuration: Configuration = toml::from_str(&text).map_err(|error| invalid(error.to_string()))?;
        match configuration.build {
            Some(build) if build.command.is_empty() => Err(invalid("`build.command` must not be empty".to_owned())),
            build => Ok(build),
        }
    }
}

/// Returns the WebAssembly files in `dir`, sorted by name.
fn wasm_files(dir: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "wasm") && path.is_file() {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;

    /// Creates a project directory with these files.
    fn project(files: &[(&str, &[u8])]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for (name, bytes) in files {
            fs::write(dir.path().join(name), bytes).unwrap();
        }
        dir
    }

    const COMPONENT: &[u8] = b"\0asm\x0d\0\x01\0";
    const MODULE: &[u8] = b"\0asm\x01\0\0\0";

    #[test]
    fn a_build_command_precedes_a_cargo_package_which_precedes_a_file() {
        let configuration = b"[build]\ncommand = [\"make\"]\noutput = \"out.wasm\"\n[other]\nkey = 1\n".as_slice();
        let project = project(&[
            ("toolwit.toml", configuration),
            ("Cargo.toml", b""),
            ("a.wasm", COMPONENT),
        ]);
        let Source::Command(build) = Source::find(project.path()).unwrap() else {
            panic!("another source")
        };
        assert_eq!(
            (build.command, build.output),
            (vec!["make".to_owned()], PathBuf::from("out.wasm"))
        );

        fs::write(project.path().join("toolwit.toml"), "[grants]\n").unwrap();
        assert_eq!(Source::find(project.path()).unwrap(), Source::Cargo);

        fs::remove_file(project.path().join("Cargo.toml")).unwrap();
        assert_eq!(
            Source::find(project.path()).unwrap(),
            Source::Component(project.path().join("a.wasm"))
        );
    }

    #[test]
    fn the_entry_file_selects_the_language_and_several_languages_are_refused() {
        let project = project(&[("app.py", b""), ("old.wasm", COMPONENT)]);
        assert_eq!(
            Source::find(project.path()).unwrap(),
            Source::Language(Language::Python)
        );
        fs::write(project.path().join("app.ts"), "").unwrap();
        let error = Source::find(project.path()).unwrap_err();
        assert!(error.to_string().ends_with("app.py, app.ts"), "{error}");
        assert!(error.suggestion().is_some());
    }

    #[test]
    fn core_modules_are_detected_and_text_is_refused() {
        let module = project(&[("a.wasm", MODULE)]);
        assert_eq!(
            Source::find(module.path()).unwrap(),
            Source::CoreModule(module.path().join("a.wasm"))
        );
        let text = project(&[("a.wasm", b"(component)")]);
        assert!(matches!(Source::find(text.path()), Err(BuildError::NotWasm { .. })));
    }

    #[test]
    fn a_missing_or_ambiguous_source_is_refused_with_the_files_found() {
        let empty = project(&[("README.md", b"")]);
        let error = Source::find(empty.path()).unwrap_err();
        assert!(error.to_string().contains("no `Cargo.toml`"), "{error}");
        assert!(error.suggestion().is_some());

        let ambiguous = project(&[("b.wasm", COMPONENT), ("a.wasm", MODULE)]);
        let error = Source::find(ambiguous.path()).unwrap_err();
        assert!(error.to_string().ends_with("a.wasm, b.wasm"), "{error}");

        let missing = Source::find(&empty.path().join("missing")).unwrap_err();
        assert!(matches!(missing, BuildError::NotADirectory { .. }));
    }

    #[test]
    fn a_misspelt_build_table_is_reported_with_its_line() {
        let misspelt = project(&[("toolwit.toml", b"[build]\ncommand = [\"make\"]\noutputs = \"a.wasm\"\n")]);
        let error = Source::find(misspelt.path()).unwrap_err().to_string();
        assert!(error.contains("line 3") && error.contains("outputs"), "{error}");
    }
}
