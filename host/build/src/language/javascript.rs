//! Builds plugins in JavaScript and TypeScript with `componentize-qjs`, which embeds the interpreter QuickJS in the
//! component.

use std::path::{Path, PathBuf};

use super::{
    Language, LanguageBuild, MissingTool, consumed_resources::consuming_function, is_async, tool::ToolProgram,
};
use crate::{BuildError, Progress};

/// The directory in which npm installs the programs of a project.
const NPM_BIN: &str = "node_modules/.bin";

/// The npm package of the componentizer, in the version that the documentation and the tests use.
const COMPONENTIZER_PACKAGE: &str = "componentize-qjs@0.4.5";
/// The npm package of the TypeScript compiler, in the version that the documentation and the tests use.
const TYPESCRIPT_PACKAGE: &str = "typescript@5.9.3";

/// Finds the program that builds a component from a JavaScript file. `language` is the language of the project.
pub(super) fn componentizer(dir: &Path, language: Language) -> Result<ToolProgram, MissingTool> {
    find(dir, language, "componentize-qjs", COMPONENTIZER_PACKAGE)
}

/// Finds the TypeScript compiler, which also checks the types.
pub(super) fn typescript_compiler(dir: &Path) -> Result<ToolProgram, MissingTool> {
    find(dir, Language::TypeScript, "tsc", TYPESCRIPT_PACKAGE)
}

fn find(dir: &Path, language: Language, program: &'static str, package: &str) -> Result<ToolProgram, MissingTool> {
    ToolProgram::find(program, dir, NPM_BIN).ok_or_else(|| MissingTool {
        language,
        program,
        // The `package.json` of a new project lists the package.
        install: if dir.join("package.json").is_file() {
            "npm install".to_owned()
        } else {
            format!("npm install --save-dev {package}")
        },
    })
}

pub(super) async fn build(build: &LanguageBuild<'_>, progress: &dyn Progress) -> Result<PathBuf, BuildError> {
    reject_consumed_resources(build, Language::JavaScript)?;
    let script = build.dir.join(Language::JavaScript.entry_file());
    let componentizer = componentizer(build.dir, Language::JavaScript)?;
    componentize(build, &componentizer, &script, build.dir, progress).await
}

pub(super) async fn build_typescript(
    build: &LanguageBuild<'_>,
    progress: &dyn Progress,
) -> Result<PathBuf, BuildError> {
    reject_consumed_resources(build, Language::TypeScript)?;
    // Both programs are looked up before one runs, so that a missing program is reported at once.
    let componentizer = componentizer(build.dir, Language::TypeScript)?;
    let compiler = typescript_compiler(build.dir)?;
    let script_dir = build.out_dir.join("js");
    let mut arguments = vec!["--outDir".into(), script_dir.clone().into()];
    if build.dir.join("tsconfig.json").is_file() {
        arguments.extend(["--project".into(), ".".into()]);
    } else {
        arguments.extend(["--target", "es2022", "--module", "es2022", "app.ts"].map(Into::into));
    }
    compiler.run(build.dir, arguments, build.time_limit, progress).await?;
    componentize(build, &componentizer, &script_dir.join("app.js"), &script_dir, progress).await
}

/// Rejects a WIT in which a function consumes an instance of a resource of the plugin. The function would receive the
/// wrong instance, because componentize-qjs mistakes the handle of a consumed instance for its representation.
fn reject_consumed_resources(build: &LanguageBuild<'_>, language: Language) -> Result<(), BuildError> {
    match consuming_function(build.wit, build.world)? {
        None => Ok(()),
        Some(function) => Err(BuildError::Bindings {
            language,
            message: format!(
                "`{function}` consumes an instance of a resource of the plugin, which {COMPONENTIZER_PACKAGE} does not \
                 support; take the instance as a `borrow`"
            ),
        }),
    }
}

/// Converts a script to a component. `module_root` is the directory of the modules that the script imports.
///
/// The argument `--sync` selects the ABI of synchronous functions. The host runs such a component on an engine that is
/// cheaper because it lacks async support. With `--sync`, promises are never resolved, so a world with async functions
/// is built without this argument.
///
/// The interpreter's WASI imports are not removed, because it writes the reason of a trap to standard error, and `Date`
/// needs a clock.
async fn componentize(
    build: &LanguageBuild<'_>,
    componentizer: &ToolProgram,
    script: &Path,
    module_root: &Path,
    progress: &dyn Progress,
) -> Result<PathBuf, BuildError> {
    let output = build.output_path();
    let mut arguments = vec!["--wit".into(), build.wit_path.into()];
    arguments.extend(["--world".into(), build.world_name()?.into()]);
    arguments.extend(["--js".into(), script.into(), "--module-root".into(), module_root.into()]);
    arguments.extend(["--output".into(), output.clone().into()]);
    if !is_async(build.wit, build.world)? {
        arguments.push("--sync".into());
    }
    componentizer
        .run(build.dir, arguments, build.time_limit, progress)
        .await?;
    Ok(output)
}
