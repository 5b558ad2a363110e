//! C, with the compiler of Zig or of the WASI SDK.
//!
//! The bindings are the C files in the directory `bindings`. A new project has those of its WIT. `wit-bindgen` generates them again
//! after the WIT has changed.

use std::{
    ffi::OsString,
    fs, io,
    path::{Path, PathBuf},
};

use super::{Language, LanguageBuild, MissingTool, tool::ToolProgram};
use crate::{BuildError, Progress, ResolvedWit};

/// The versions that the documentation and the tests use.
const COMPILER: &str = "ziglang==0.17.1";
const GENERATOR: &str = "wit-bindgen-cli@0.60.0";

/// The directory in which the WASI SDK is unpacked by convention.
const WASI_SDK: &str = "/opt/wasi-sdk/bin";

/// The directory of the generated files, and the file in it with the digest of their WIT.
const BINDINGS: &str = "bindings";
const DIGEST: &str = "wit.digest";

pub(super) fn compiler(dir: &Path) -> Result<ToolProgram, MissingTool> {
    let local = ".venv/bin";
    let zig = |name: &str| ToolProgram::find(name, dir, local).map(|zig| zig.with_first_arguments(&["cc"]));
    let found = ToolProgram::at(&Path::new(WASI_SDK).join("clang"));
    let found = found.or_else(|| zig("zig")).or_else(|| zig("python-zig"));
    found.ok_or_else(|| MissingTool {
        language: Language::C,
        program: "zig",
        install: format!("python3 -m venv .venv && .venv/bin/pip install {COMPILER}"),
    })
}

pub(super) async fn build(build: &LanguageBuild<'_>, progress: &dyn Progress) -> Result<PathBuf, BuildError> {
    let compiler = compiler(build.dir)?;
    let bindings = build.dir.join(BINDINGS);
    if !is_current(&bindings, build.wit)? {
        generate(build, &bindings, progress).await?;
    }
    let output = build.output();
    let mut arguments: Vec<OsString> = [
        "--target=wasm32-wasi",
        "-Os",
        "-mexec-model=reactor",
        "-Wl,--strip-debug",
    ]
    .map(Into::into)
    .to_vec();
    arguments.extend(["-I".into(), BINDINGS.into()]);
    for dir in [build.dir, &bindings] {
        arguments.extend(files(dir, &["c", "o"])?.into_iter().map(Into::into));
    }
    arguments.extend(["-o".into(), output.clone().into()]);
    compiler.run(build.dir, arguments, build.limit, progress).await?;
    Ok(output)
}

/// Records that the bindings in the directory of a project are those of its WIT.
pub(crate) fn record_bindings(dir: &Path, wit: &ResolvedWit) -> io::Result<()> {
    fs::write(dir.join(BINDINGS).join(DIGEST), digest(wit).map_err(io::Error::other)?)
}

fn is_current(bindings: &Path, wit: &ResolvedWit) -> Result<bool, BuildError> {
    let recorded = fs::read_to_string(bindings.join(DIGEST)).unwrap_or_default();
    Ok(recorded == digest(wit)?)
}

fn digest(wit: &ResolvedWit) -> Result<String, BuildError> {
    let mut hasher = blake3::Hasher::new();
    for package in wit.encode()? {
        hasher.update(&package);
    }
    Ok(format!("{}\n", hasher.finalize()))
}

async fn generate(build: &LanguageBuild<'_>, bindings: &Path, progress: &dyn Progress) -> Result<(), BuildError> {
    let generator = ToolProgram::find("wit-bindgen", build.dir, ".venv/bin").ok_or_else(|| MissingTool {
        language: Language::C,
        program: "wit-bindgen",
        install: format!("cargo install {GENERATOR}"),
    })?;
    let write_error = || BuildError::file("write", bindings);
    fs::create_dir_all(bindings).map_err(write_error())?;
    // Those of another world would be compiled too.
    for file in files(bindings, &["c", "h", "o"])? {
        fs::remove_file(file).map_err(write_error())?;
    }
    let mut arguments = vec!["c".into(), build.wit_path.into(), "--world".into()];
    arguments.extend([build.world_name()?.into(), "--out-dir".into(), BINDINGS.into()]);
    generator.run(build.dir, arguments, build.limit, progress).await?;
    record_bindings(build.dir, build.wit).map_err(write_error())
}

/// Returns the files in a directory with one of the extensions, sorted by name.
fn files(dir: &Path, extensions: &[&str]) -> Result<Vec<PathBuf>, BuildError> {
    let read = || -> io::Result<Vec<PathBuf>> {
        let entries = fs::read_dir(dir)?.collect::<Result<Vec<_>, _>>()?;
        let mut files: Vec<_> = entries.iter().map(fs::DirEntry::path).collect();
        files.retain(|file| {
            file.extension()
                .is_some_and(|extension| extensions.iter().any(|one| extension == *one))
        });
        files.sort();
        Ok(files)
    };
    read().map_err(BuildError::file("read", dir))
}
