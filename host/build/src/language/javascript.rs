//! Builds plugins in JavaScript and TypeScript with `componentize-qjs`, which puts the interpreter QuickJS into the
//! component.

use std::path::{Path, PathBuf};

use super::{
    Language, LanguageBuild, MissingTool, consumed_resources::consuming_function, is_async, tool::ToolProgram,
};
use crate::{BuildError, Progress};

/// The directory in which npm puts the programs of a project.
const PROGRAMS: &str = "node_modules/.bin";

/// The package of the componentizer, in the version that the documentation and the tests use.
const COMPONENTIZER: &str = "componentize-qjs@0.4.5";
/// The package of the compiler of TypeScript, in the version that the documentation and the tests use.
const CHECKER: &str = "typescript@5.9.3";

/// Returns the program that builds a component from a script of a project in this language.
pub(super) fn componentizer(dir: &Path, language: Language) -> Result<ToolProgram, MissingTool> {
    find(dir, language, "componentize-qjs", COMPONENTIZER)
}

/// Returns the compiler of TypeScript, which also checks the types.
pub(super) fn checker(dir: &Path) -> Result<ToolProgram, MissingTool> {
    find(dir, Language::TypeScript, "tsc", CHECKER)
}

fn find(dir: &Path, language: Language, program: &'static str, package: &str) -> Result<ToolProgram, MissingTool> {
    ToolProgram::find(program, dir, PROGRAMS).ok_or_else(|| MissingTool {
        language,
        program,
        // The `package.json` of a new project contains the package.
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
    // Both programs are looked up before the first one runs.
    let componentizer = componentizer(build.dir, Language::TypeScript)?;
    let checker = checker(build.dir)?;
    let scripts = build.out_dir.join("js");
    let mut arguments = vec!["--outDir".into(), scripts.clone().into()];
    if build.dir.join("tsconfig.json").is_file() {
        arguments.extend(["--project".into(), ".".into()]);
    } else {
        arguments.extend(["--target", "es2022", "--module", "es2022", "app.ts"].map(Into::into));
    }
    checker.run(build.dir, arguments, build.limit, progress).await?;
    componentize(build, &componentizer, &scripts.join("app.js"), &scripts, progress).await
}

/// Rejects a WIT in which a function consumes an instance of a resource of the plugin itself. The function would
/// receive another instance, because componentize-qjs mistakes the handle of a consumed instance for its
/// representation.
fn reject_consumed_resources(build: &LanguageBuild<'_>, language: Language) -> Result<(), BuildError> {
    match consuming_function(build.wit, build.world)? {
        None => Ok(()),
        Some(function) => Err(BuildError::Bindings {
            language,
            message: format!(
                "`{function}` consumes an instance of a resource of the plugin, which {COMPONENTIZER} does not support; take it as a \
                 `borrow`"
            ),
        }),
    }
}

/// Converts a script to a component. `root` is the directory of its modules.
///
/// The argument `--sync` selects the ABI of synchronous functions, which the cheaper engine of the host runs. With this
/// argument, promises are never resolved, so a world with async functions is built without it.
///
/// The interpreter keeps its imports of WASI: it writes the reason of a trap to standard error, and `Date` needs a
/// clock.
async fn componentize(
    build: &LanguageBuild<'_>,
    componentizer: &ToolProgram,
    script: &Path,
    root: &Path,
    progress: &dyn Progress,
) -> Result<PathBuf, BuildError> {
    let output = build.output_path();
    let mut arguments = vec!["--wit".into(), build.wit_path.into()];
    arguments.extend(["--world".into(), build.world_name()?.into()]);
    arguments.extend(["--js".into(), script.into(), "--module-root".into(), root.into()]);
    arguments.extend(["--output".into(), output.clone().into()]);
    if !is_async(build.wit, build.world)? {
        arguments.push("--sync".into());
    }
    componentizer.run(build.dir, arguments, build.limit, progress).await?;
    Ok(output)
}
