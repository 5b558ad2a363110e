//! Builds plugins in Python with `componentize-py`, which embeds CPython and the imported modules in the component.

use std::path::{Path, PathBuf};

use super::{Language, LanguageBuild, MissingTool, tool::ToolProgram};
use crate::{BuildError, Progress};

/// The version of `componentize-py` that the documentation and the tests use.
const VERSION: &str = "0.25.1";

/// The directory with the project's dependencies, which `pip install --target deps` creates.
const DEPENDENCY_DIR: &str = "deps";

/// Finds the program that builds a component from Python modules.
pub(super) fn componentizer(dir: &Path) -> Result<ToolProgram, MissingTool> {
    ToolProgram::find("componentize-py", dir, ".venv/bin").ok_or_else(|| MissingTool {
        language: Language::Python,
        program: "componentize-py",
        install: format!("python3 -m venv .venv && .venv/bin/pip install componentize-py=={VERSION}"),
    })
}

pub(super) async fn build(build: &LanguageBuild<'_>, progress: &dyn Progress) -> Result<PathBuf, BuildError> {
    let componentizer = componentizer(build.dir)?;
    let output = build.output_path();
    let mut arguments = vec!["-d".into(), build.wit_path.into(), "-w".into()];
    arguments.extend([build.world_name()?.into(), "componentize".into(), "app".into()]);
    arguments.extend(["-p".into(), ".".into()]);
    if build.dir.join(DEPENDENCY_DIR).is_dir() {
        arguments.extend(["-p".into(), DEPENDENCY_DIR.into()]);
    }
    arguments.extend(["-o".into(), output.clone().into()]);
    componentizer
        .run(build.dir, arguments, build.time_limit, progress)
        .await?;
    Ok(output)
}
