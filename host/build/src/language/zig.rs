//! Builds plugins in Zig. `zig translate-c` converts the bindings for C to Zig modules.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
};

use super::{
    Language, LanguageBuild, MissingTool,
    bindings::{self, BINDINGS_DIR},
    c::files_with_extensions,
    tool::ToolProgram,
};
use crate::{BuildError, Progress};

/// The PyPI package of Zig, in the version that the documentation and the tests use.
const ZIG_PACKAGE: &str = "ziglang==0.17.1";

/// Finds the program of Zig, which also compiles C and C++.
pub(super) fn program(dir: &Path, language: Language) -> Result<ToolProgram, MissingTool> {
    let find = |name| ToolProgram::find(name, dir, ".venv/bin");
    // The PyPI package `ziglang` installs the program under the name `python-zig`.
    find("zig").or_else(|| find("python-zig")).ok_or_else(|| MissingTool {
        language,
        program: "zig",
        install: format!("python3 -m venv .venv && .venv/bin/pip install {ZIG_PACKAGE}"),
    })
}

pub(super) async fn build(build: &LanguageBuild<'_>, progress: &dyn Progress) -> Result<PathBuf, BuildError> {
    let zig = program(build.dir, Language::Zig)?;
    let has_new_bindings = bindings::update(Language::Zig, build.dir, build.wit, build.world)?;
    let bindings_dir = build.dir.join(BINDINGS_DIR);
    for header in files_with_extensions(&bindings_dir, &["h"])? {
        let module = header.with_extension("zig");
        if has_new_bindings || !module.is_file() {
            let translator = zig.clone().with_first_arguments(&["translate-c"]);
            let arguments = ["-target", "wasm32-wasi", "-lc"].map(OsString::from);
            let arguments = arguments.into_iter().chain([header.into()]).collect();
            translator
                .run_to_file(build.dir, arguments, &module, build.time_limit, progress)
                .await?;
        }
    }
    let output = build.output_path();
    let mut output_argument = OsString::from("-femit-bin=");
    output_argument.push(&output);
    let mut arguments: Vec<OsString> = vec![Language::Zig.entry_file().into()];
    arguments.extend(
        files_with_extensions(&bindings_dir, &["c", "o"])?
            .into_iter()
            .map(Into::into),
    );
    arguments.extend(
        [
            "-target",
            "wasm32-wasi",
            "-mexec-model=reactor",
            "-lc",
            "-I",
            BINDINGS_DIR,
            "-O",
            "ReleaseSmall",
            "-rdynamic",
        ]
        .map(Into::into),
    );
    arguments.push(output_argument);
    zig.with_first_arguments(&["build-exe"])
        .run(build.dir, arguments, build.time_limit, progress)
        .await?;
    Ok(output)
}
