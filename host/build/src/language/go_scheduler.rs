//! Changes Go's scheduler for async functions.
//!
//! An async function returns to its host when all its goroutines wait. At this moment, the scheduler calls the hook
//! `beforeIdle`, which does nothing in Go's runtime for WASI. A build replaces this hook by means of the compiler's
//! option `-overlay`, which substitutes files of the standard library without changing the installed toolchain.

use std::{
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
};

use super::{LanguageBuild, tool::ToolProgram};
use crate::{BuildError, Progress};

/// The file of Go's runtime with the hook.
const HOOK_FILE: &str = "src/runtime/lock_wasip1.go";

/// The text of the hook in Go's runtime for WASI.
const HOOK: &str = "func beforeIdle(int64, int64) (*g, bool) {\n\treturn nil, false\n}\n";

/// The path and the text of the file that is added to Go's runtime. It contains the function that replaces [`HOOK`].
const ADDED_FILE: (&str, &str) = (
    "src/runtime/toolwit_idle_wasip1.go",
    include_str!("../../templates/go/idle.go"),
);

/// Writes the changed and the added file, and returns the compiler argument that selects them.
pub(super) async fn overlay_argument(
    compiler: &ToolProgram,
    build: &LanguageBuild<'_>,
    progress: &dyn Progress,
) -> Result<OsString, BuildError> {
    let arguments = ["env", "GOROOT"].map(Into::into).to_vec();
    let root = compiler
        .output(build.dir, arguments, build.time_limit, progress)
        .await?;
    let root = Path::new(root.trim_end_matches(['\r', '\n']));
    let hook_file = root.join(HOOK_FILE);
    let text = fs::read_to_string(&hook_file).map_err(BuildError::file("read", &hook_file))?;
    let Some(text) = without_hook(&text) else {
        return Err(BuildError::GoRuntime { path: hook_file });
    };
    let changed_file = write_file(build, "lock_wasip1.go", &text)?;
    let added_file = write_file(build, "toolwit_idle_wasip1.go", ADDED_FILE.1)?;
    let replacements = serde_json::json!({"Replace": {
        path_text(&hook_file): path_text(&changed_file),
        path_text(&root.join(ADDED_FILE.0)): path_text(&added_file),
    }});
    let overlay_file = write_file(build, "overlay.json", &replacements.to_string())?;
    let mut argument = OsString::from("-overlay=");
    argument.push(overlay_file);
    Ok(argument)
}

/// Removes the hook from the text of [`HOOK_FILE`]. Returns `None` if the text does not contain the hook exactly once.
fn without_hook(text: &str) -> Option<String> {
    let text = text.replace("\r\n", "\n");
    (text.matches(HOOK).count() == 1).then(|| text.replace(HOOK, ""))
}

/// Writes a file to the directory for intermediate files.
fn write_file(build: &LanguageBuild<'_>, name: &str, text: &str) -> Result<PathBuf, BuildError> {
    let file = build.out_dir.join(name);
    fs::write(&file, text).map_err(BuildError::file("write", &file))?;
    Ok(file)
}

fn path_text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hook_is_removed_from_a_runtime_that_has_it_and_others_are_refused() {
        let text = format!("package runtime\n\n{HOOK}\nfunc checkTimeouts() {{}}\n");
        let expected = Some("package runtime\n\n\nfunc checkTimeouts() {}\n".to_owned());
        assert_eq!(without_hook(&text), expected);
        assert_eq!(without_hook(&text.replace('\n', "\r\n")), expected);
        assert_eq!(without_hook("package runtime\n"), None);
    }
}
