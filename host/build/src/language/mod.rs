//! The languages that a plugin can be written in, and the builds of all of them except Rust.
//!
//! This module installs no programs. The error for a missing program contains the command that installs the program.

mod bindings;
mod c;
mod consumed_resources;
mod go;
mod go_scheduler;
mod javascript;
mod python;
mod tool;
mod zig;

use std::{
    fmt,
    path::{Path, PathBuf},
    str::FromStr,
    time::Duration,
};

pub(super) use bindings::update as update_bindings;
pub(super) use c::{CTools, find_c_tools};
use wit_parser::{LiveTypes, TypeDefKind, WorldItem};

use super::{BuildError, Progress, ResolvedWit};

/// A language that plugins are written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Language {
    /// Rust, built with cargo.
    Rust,
    /// Python, built with `componentize-py`.
    Python,
    /// JavaScript, built with `componentize-qjs`.
    JavaScript,
    /// TypeScript, compiled with `tsc` and built as JavaScript.
    TypeScript,
    /// C, built with the C compiler of Zig or of the WASI SDK.
    C,
    /// C++, built with the C++ compiler of Zig or of the WASI SDK.
    Cpp,
    /// Zig, built with `zig`.
    Zig,
    /// Go, built with `go` for WASI.
    Go,
}

impl Language {
    /// All languages.
    pub const ALL: [Self; 8] = [
        Self::Rust,
        Self::Python,
        Self::JavaScript,
        Self::TypeScript,
        Self::C,
        Self::Cpp,
        Self::Zig,
        Self::Go,
    ];

    /// Returns the short name, such as `js`, which [`Language::from_str`] parses.
    #[must_use]
    pub const fn short_name(self) -> &'static str {
        match self {
            Self::Rust => "rust",
            Self::Python => "python",
            Self::JavaScript => "js",
            Self::TypeScript => "ts",
            Self::C => "c",
            Self::Cpp => "cpp",
            Self::Zig => "zig",
            Self::Go => "go",
        }
    }

    /// Returns the name of the file that marks a directory as a project in this language.
    #[must_use]
    pub const fn entry_file(self) -> &'static str {
        match self {
            Self::Rust => "Cargo.toml",
            Self::Python => "app.py",
            Self::JavaScript => "app.js",
            Self::TypeScript => "app.ts",
            Self::C => "plugin.c",
            Self::Cpp => "plugin.cpp",
            Self::Zig => "plugin.zig",
            Self::Go => "go.mod",
        }
    }

    /// Returns a program that builds a project in `dir` and is missing on this machine, with the command that installs
    /// it. Returns `None` if no program is missing.
    ///
    /// The result for Rust is always `None`, because a build finds or sets up the Rust toolchain.
    #[must_use]
    pub fn missing_tool(self, dir: &Path) -> Option<MissingTool> {
        let tool = match self {
            Self::Rust => return None,
            Self::Python => python::componentizer(dir).map(drop),
            Self::JavaScript => javascript::componentizer(dir, self).map(drop),
            Self::TypeScript => javascript::componentizer(dir, self)
                .and(javascript::typescript_compiler(dir))
                .map(drop),
            Self::C => c::C.compiler(dir).map(drop),
            Self::Cpp => c::CPP.compiler(dir).map(drop),
            Self::Zig => zig::program(dir, self).map(drop),
            Self::Go => go::compiler(dir).map(drop),
        };
        tool.err()
    }

    /// Returns the languages other than Rust whose entry file is in `dir`.
    pub(super) fn all_in_directory(dir: &Path) -> Vec<Self> {
        let has_entry_file = |language: &Self| *language != Self::Rust && dir.join(language.entry_file()).is_file();
        Self::ALL.into_iter().filter(has_entry_file).collect()
    }
}

impl fmt::Display for Language {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Rust => "Rust",
            Self::Python => "Python",
            Self::JavaScript => "JavaScript",
            Self::TypeScript => "TypeScript",
            Self::C => "C",
            Self::Cpp => "C++",
            Self::Zig => "Zig",
            Self::Go => "Go",
        })
    }
}

/// The error for a text that does not name a language.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown language `{0}`; the languages are rust, python, js, ts, c, cpp, zig, go")]
pub struct UnknownLanguage(String);

impl FromStr for Language {
    type Err = UnknownLanguage;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "rust" => Ok(Self::Rust),
            "python" | "py" => Ok(Self::Python),
            "js" | "javascript" => Ok(Self::JavaScript),
            "ts" | "typescript" => Ok(Self::TypeScript),
            "c" => Ok(Self::C),
            "cpp" | "c++" => Ok(Self::Cpp),
            "zig" => Ok(Self::Zig),
            "go" | "golang" => Ok(Self::Go),
            other => Err(UnknownLanguage(other.to_owned())),
        }
    }
}

/// A program that a language needs and this machine does not have.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MissingTool {
    /// The language of the project.
    pub language: Language,
    /// The program.
    pub program: &'static str,
    /// The command that installs the program, to be run in the directory of the project.
    pub install: String,
}

/// A build of a project in a language other than Rust.
#[derive(Debug)]
pub(super) struct LanguageBuild<'a> {
    /// The directory of the project.
    pub(super) dir: &'a Path,
    /// The path of the project's WIT.
    pub(super) wit_path: &'a Path,
    /// The project's WIT.
    pub(super) wit: &'a ResolvedWit,
    /// The name of the world that the project implements. It is required if the WIT has several worlds.
    pub(super) world: Option<&'a str>,
    /// The directory for intermediate files and the output. It must exist.
    pub(super) out_dir: &'a Path,
    /// The time limit of each program.
    pub(super) time_limit: Duration,
}

impl LanguageBuild<'_> {
    /// Builds the component or core module, and returns its path.
    pub(super) async fn run(&self, language: Language, progress: &dyn Progress) -> Result<PathBuf, BuildError> {
        match language {
            Language::Python => python::build(self, progress).await,
            Language::JavaScript => javascript::build(self, progress).await,
            Language::TypeScript => javascript::build_typescript(self, progress).await,
            Language::C => c::C.build(self, progress).await,
            Language::Cpp => c::CPP.build(self, progress).await,
            Language::Zig => zig::build(self, progress).await,
            Language::Go => go::build(self, progress).await,
            Language::Rust => Err(BuildError::NothingToBuild {
                dir: self.dir.to_owned(),
            }),
        }
    }

    /// Returns the name of the selected world, or of the only world of the WIT.
    fn world_name(&self) -> Result<String, BuildError> {
        let world = self.wit.world(self.world)?;
        Ok(self.wit.resolve().worlds[world].name.clone())
    }

    /// Returns the path of the component or core module to write.
    fn output_path(&self) -> PathBuf {
        let name = self.dir.file_name().unwrap_or_default();
        self.out_dir.join(name).with_added_extension("wasm")
    }
}

/// Returns whether a world has async functions, streams or futures.
fn is_async(wit: &ResolvedWit, world: Option<&str>) -> Result<bool, BuildError> {
    let (resolve, world) = (wit.resolve(), wit.world(world)?);
    let mut items = resolve.worlds[world]
        .imports
        .values()
        .chain(resolve.worlds[world].exports.values());
    let has_async_function = items.any(|item| match item {
        WorldItem::Function(function) => function.kind.is_async(),
        WorldItem::Interface { id, .. } => {
            let mut functions = resolve.interfaces[*id].functions.values();
            functions.any(|function| function.kind.is_async())
        }
        WorldItem::Type { .. } => false,
    });
    let mut types = LiveTypes::default();
    types.add_world(resolve, world);
    let is_stream = |id| matches!(resolve.types[id].kind, TypeDefKind::Stream(_) | TypeDefKind::Future(_));
    Ok(has_async_function || types.iter().any(is_stream))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn async_functions_streams_and_futures_make_a_world_async() {
        let world_is_async = |text: &str| {
            let wit = ResolvedWit::parse(Path::new("plugin.wit"), text).unwrap();
            is_async(&wit, Some("w")).unwrap()
        };
        let unused = "interface unused { f: async func(); }";
        for (interface, expected) in [
            ("f: func(a: list<u8>) -> string;", false),
            ("f: async func();", true),
            ("f: func() -> stream<u8>;", true),
            ("record r { s: list<future<string>> } f: func(r: r);", true),
            ("resource r { f: async func(); }", true),
        ] {
            let text = format!("package a:b; {unused} interface i {{ {interface} }} world w {{ export i; }}");
            assert_eq!(world_is_async(&text), expected, "{interface}");
        }
        assert!(world_is_async("package a:b; world w { import f: async func(); }"));
        assert!(!world_is_async("package a:b; world w { export f: func(); }"));
    }

    #[test]
    fn each_short_name_can_be_parsed_and_is_listed_in_the_error() {
        for language in Language::ALL {
            assert_eq!(language.short_name().parse::<Language>().unwrap(), language);
        }
        let error = "cobol".parse::<Language>().unwrap_err().to_string();
        for language in Language::ALL {
            assert!(error.contains(language.short_name()), "{error}");
        }
    }
}
