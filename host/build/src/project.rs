//! Creates new projects: directories with an example plugin that can be built without edits.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use wit_parser::UnresolvedPackageGroup;

use super::{BuildError, Language, ResolvedWit, language::update_bindings};

/// The maximum length of a project's name, in characters.
const NAME_CHARS_MAX: usize = 50;

/// A new project: a name, a language and a directory.
///
/// The example plugin has the same tools and the same test cases in every language.
///
/// ```
/// use toolwit_build::{Language, NewProject};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let parent = tempfile::tempdir()?;
/// let project = NewProject::new(parent.path().join("weather"), Language::Python)?;
/// assert_eq!(project.name(), "weather");
/// let files = project.write()?;
/// assert!(files.iter().any(|file| file.ends_with("app.py")));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct NewProject {
    dir: PathBuf,
    name: String,
    language: Language,
}

/// The reason why a project cannot be created.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProjectError {
    /// The last component of the path is not a valid name for a plugin.
    #[error("`{name}` is not a valid name for a plugin: {reason}")]
    Name {
        /// The name.
        name: String,
        /// The reason.
        reason: String,
    },
    /// The directory exists and is not empty.
    #[error("`{}` already exists and is not empty", .0.display())]
    Exists(PathBuf),
    /// The directory could not be read, for example because the path leads to a file.
    #[error("could not read `{}`: {source}", .path.display())]
    Read {
        /// The directory.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The files could not be written, or the bindings could not be generated.
    #[error("could not write `{}`: {source}", .path.display())]
    Write {
        /// The file or directory.
        path: PathBuf,
        /// The error of the operating system or of the generator.
        source: io::Error,
    },
}

/// A file of a template: its path, and its content with placeholders.
type TemplateFile = (&'static str, &'static str);

/// The files of a project in any language.
const COMMON: [TemplateFile; 3] = [
    ("wit/plugin.wit", include_str!("../templates/common/plugin.wit")),
    ("tests.toml", include_str!("../templates/common/tests.toml")),
    (".gitignore", include_str!("../templates/common/gitignore")),
];
const RUST: &[TemplateFile] = &[
    // The template is not named `Cargo.toml`, because cargo would treat its directory as a package.
    ("Cargo.toml", include_str!("../templates/rust/manifest.toml")),
    ("src/lib.rs", include_str!("../templates/rust/lib.rs")),
];
const PYTHON: &[TemplateFile] = &[("app.py", include_str!("../templates/python/app.py"))];
const JAVASCRIPT: &[TemplateFile] = &[
    ("app.js", include_str!("../templates/js/app.js")),
    ("package.json", include_str!("../templates/js/package.json")),
];
const TYPESCRIPT: &[TemplateFile] = &[
    ("app.ts", include_str!("../templates/ts/app.ts")),
    ("package.json", include_str!("../templates/ts/package.json")),
    ("tsconfig.json", include_str!("../templates/ts/tsconfig.json")),
];
const C: &[TemplateFile] = &[("plugin.c", include_str!("../templates/c/plugin.c"))];
const CPP: &[TemplateFile] = &[
    ("plugin.cpp", include_str!("../templates/cpp/plugin.cpp")),
    (
        "exports-example-{{snake}}-tools-Counter.h",
        include_str!("../templates/cpp/counter.h"),
    ),
];
const GO: &[TemplateFile] = &[
    ("go.mod", include_str!("../templates/go/go.mod.template")),
    (
        "export_example_{{snake}}_tools/tools.go",
        include_str!("../templates/go/tools.go"),
    ),
];
const ZIG: &[TemplateFile] = &[("plugin.zig", include_str!("../templates/zig/plugin.zig"))];

impl NewProject {
    /// Describes a new project in `dir`, without writing files. The last component of `dir` is the name of the project.
    /// For `.`, the project has the name of the current directory.
    ///
    /// # Errors
    ///
    /// [`ProjectError::Name`] if the name does not consist of lowercase words with hyphens between them, such as
    /// `weather-report`, is longer than 50 characters, or is a keyword of WIT.
    pub fn new(dir: impl Into<PathBuf>, language: Language) -> Result<Self, ProjectError> {
        let dir = dir.into();
        let name = directory_name(&dir);
        match name_problem(&name) {
            Some(reason) => Err(ProjectError::Name {
                name,
                reason: reason.to_owned(),
            }),
            None => Ok(Self { dir, name, language }),
        }
    }

    /// Returns the name of the plugin.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the directory of the project.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Writes the files of the project, and returns their paths.
    ///
    /// # Errors
    ///
    /// [`ProjectError::Exists`] if the directory has files, [`ProjectError::Read`] if the directory cannot be read, and
    /// [`ProjectError::Write`] if a file cannot be written or the bindings cannot be generated.
    pub fn write(&self) -> Result<Vec<PathBuf>, ProjectError> {
        let write_error = |path: &Path| {
            let path = path.to_owned();
            move |source| ProjectError::Write { path, source }
        };
        match fs::read_dir(&self.dir) {
            Ok(mut entries) => {
                if entries.next().is_some() {
                    return Err(ProjectError::Exists(self.dir.clone()));
                }
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(source) => {
                let path = self.dir.clone();
                return Err(ProjectError::Read { path, source });
            }
        }
        let mut paths = Vec::new();
        for (path, template) in COMMON.iter().chain(self.template_files()) {
            let path = self.dir.join(self.fill_in(path));
            let dir = path.parent().unwrap_or(&self.dir);
            fs::create_dir_all(dir).map_err(write_error(dir))?;
            fs::write(&path, self.fill_in(template)).map_err(write_error(&path))?;
            paths.push(path);
        }
        // Editors need the bindings before the first build.
        let bindings = ResolvedWit::read(&self.dir.join("wit"))
            .map_err(BuildError::from)
            .and_then(|wit| update_bindings(self.language, &self.dir, &wit, None));
        bindings.map_err(|error| write_error(&self.dir)(io::Error::other(error)))?;
        Ok(paths)
    }

    /// Returns the template files of the project's language.
    fn template_files(&self) -> &'static [TemplateFile] {
        match self.language {
            Language::Rust => RUST,
            Language::Python => PYTHON,
            Language::JavaScript => JAVASCRIPT,
            Language::TypeScript => TYPESCRIPT,
            Language::C => C,
            Language::Cpp => CPP,
            Language::Zig => ZIG,
            Language::Go => GO,
        }
    }

    /// Replaces the placeholders of a template by the project's name, in the spelling that each placeholder requires.
    fn fill_in(&self, template: &str) -> String {
        template
            .replace("{{name}}", &self.name)
            .replace("{{snake}}", &self.name.replace('-', "_"))
            .replace("{{SCREAMING}}", &self.name.replace('-', "_").to_uppercase())
    }
}

/// Returns the reason why a name is not valid for a package in WIT and in each language, or `None` if it is valid.
fn name_problem(name: &str) -> Option<&'static str> {
    let is_word = |word: &str| {
        word.starts_with(|c: char| c.is_ascii_lowercase())
            && word.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit())
    };
    if name.len() > NAME_CHARS_MAX {
        Some("it is too long")
    } else if !name.split('-').all(is_word) {
        Some("it must be lowercase words, with hyphens between them")
    } else if UnresolvedPackageGroup::parse("plugin.wit", &format!("package example:{name};")).is_err() {
        Some("it is a keyword of WIT")
    } else {
        None
    }
}

/// Returns the last component of a path or, if it has no name, of the absolute path.
fn directory_name(dir: &Path) -> String {
    // The path `.` has no file name.
    let absolute = std::path::absolute(dir).unwrap_or_default();
    let name = dir.file_name().or_else(|| absolute.file_name());
    name.unwrap_or_default().to_string_lossy().into_owned()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::Source;

    #[test]
    fn a_new_project_is_detected_as_its_language() {
        let parent = tempfile::tempdir().unwrap();
        for language in Language::ALL {
            let dir = parent.path().join(format!("my-{}", language.short_name()));
            let project = NewProject::new(&dir, language).unwrap();
            let files = project.write().unwrap();
            for file in files {
                let text = fs::read_to_string(&file).unwrap();
                assert!(!text.contains("{{"), "{}", file.display());
            }
            let expected = match language {
                Language::Rust => Source::Cargo,
                other => Source::Language(other),
            };
            assert_eq!(Source::find(&dir).unwrap(), expected);
            let error = project.write().unwrap_err();
            assert!(matches!(error, ProjectError::Exists(_)), "{error}");
        }
    }

    #[test]
    fn a_project_in_the_current_directory_has_the_name_of_the_directory() {
        let current = std::env::current_dir().unwrap();
        let project = NewProject::new(".", Language::Go).unwrap();
        assert_eq!(Some(project.name()), current.file_name().unwrap().to_str());
    }

    #[test]
    fn a_name_that_is_not_valid_for_a_package_is_refused() {
        for name in [
            "",
            "Weather",
            "2go",
            "a--b",
            "a_b",
            "größe",
            "..",
            "a b",
            "interface",
            "u32",
            "error-context",
        ] {
            let project = NewProject::new(Path::new("/nowhere").join(name), Language::C);
            // With an empty name, the last component of the path is `nowhere`, which is a valid name.
            assert!(project.is_err() || name.is_empty(), "{name}");
        }
        assert!(NewProject::new("/", Language::C).is_err());
    }
}
