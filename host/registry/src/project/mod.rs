//! The settings of a project: `toolwit.toml`.

mod interceptors;
mod limits;

pub use interceptors::InterceptorSettings;
pub use limits::{LongRunningTools, ProjectLimits, RunSettings};

use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::install::RemoteFile;
use crate::manifest::LimitSettings;
use crate::text_file;
use toolwit_core::Error;
use toolwit_core::limits::PROJECT_BYTES_MAX;

/// The settings in `toolwit.toml`. All are optional. Unknown keys are errors.
///
/// The author is not trusted, because a cloned repository can contain the file. Therefore, grants,
/// [limits](Project::limits) above the defaults, long-running tools, the package index, interceptors, sandbox settings
/// and MCP servers are proposals, which apply only after the user has accepted them.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct Project {
    /// Limits of each call.
    limits: LimitSettings,
    /// The tools whose calls may take longer than others.
    tools: LongRunningTools,
    /// Limits of each run.
    run: RunSettings,
    /// The settings of a build. Only the crate `toolwit-build` reads them.
    build: IgnoredAny,
    /// The settings of tool groups. Only the crate `toolwit-agent` reads them.
    groups: IgnoredAny,
    /// The settings of MCP servers. Only the crate `toolwit-mcp-client` reads them. They are proposals, because they
    /// start programs.
    mcp: IgnoredAny,
    /// The package index that the project proposes. It applies only after the user has accepted it.
    pub index: IndexSettings,
    /// Grants that the project proposes. They apply only after the user has accepted them.
    pub grants: ProposedGrants,
    /// Plugins that the project proposes to wrap calls with. They apply only after the user has accepted them, because
    /// they see all arguments and results.
    pub interceptors: Vec<InterceptorSettings>,
    /// Settings of the sandbox that the project proposes. They apply only after the user has accepted them.
    pub sandbox: SandboxSettings,
}

/// Settings of the sandbox.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct SandboxSettings {
    /// Whether components can import WASI 0.3.
    pub wasi_p3: bool,
}

/// The settings of the package index, which lists the packages that can be added by name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct IndexSettings {
    /// The URL of the index. With the fragment `#sha256=DIGEST`, only content with this digest is accepted.
    pub url: Option<RemoteFile>,
}

impl IndexSettings {
    /// Reads the settings from a file that has no other settings. Returns the defaults if the file does not exist.
    ///
    /// # Errors
    /// Those of [`Project::read`].
    pub fn read(path: &Path) -> Result<Self, Error> {
        let Some(text) = text_file::read(path, PROJECT_BYTES_MAX)? else {
            return Ok(Self::default());
        };
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        text_file::parse(&text, &name, "its only key is `url`")
    }
}

/// The location of the grants that a project proposes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct ProposedGrants {
    /// Path to the grants file, relative to `toolwit.toml`.
    pub file: Option<PathBuf>,
}

impl Project {
    /// The name of the settings file.
    pub const FILE_NAME: &str = "toolwit.toml";

    /// Returns the limits of calls and runs.
    #[must_use]
    pub fn limits(&self) -> ProjectLimits {
        ProjectLimits {
            limits: self.limits.clone(),
            run: self.run.clone(),
            tools: self.tools.clone(),
        }
    }

    /// Reads `toolwit.toml` in a directory. Returns the defaults if the file does not exist.
    ///
    /// # Errors
    /// Those of [`Project::parse`]; [`ErrorKind::Configuration`](toolwit_core::ErrorKind::Configuration) if the file is
    /// too large or not a regular file; [`ErrorKind::Io`](toolwit_core::ErrorKind::Io) if the file cannot be read.
    pub fn read(directory: &Path) -> Result<Self, Error> {
        match text_file::read(&directory.join(Self::FILE_NAME), PROJECT_BYTES_MAX)? {
            Some(text) => Self::parse(&text),
            None => Ok(Self::default()),
        }
    }

    /// Parses the text of a `toolwit.toml`.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`](toolwit_core::ErrorKind::Configuration) if the text is invalid or has an unknown key.
    /// The message has the line and the column.
    pub fn parse(text: &str) -> Result<Self, Error> {
        text_file::parse(text, Self::FILE_NAME, "see `docs/src/operating.md` for its keys")
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::fs;
    use std::time::Duration;

    use super::*;
    use toolwit_core::ErrorKind;

    fn read(text: &str) -> Result<Project, Error> {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join(Project::FILE_NAME), text).unwrap();
        Project::read(directory.path())
    }

    #[test]
    fn project_sets_limits_and_ignores_the_build_settings() {
        let project =
            read("[limits]\nhost_calls = 20_000\nwall = \"5s\"\n\n[run]\niterations = 3\n\n[build]\nx = 1\n").unwrap();
        let ProjectLimits { limits, run, .. } = project.limits();
        let overrides = limits.overrides();
        assert_eq!(
            (overrides.host_calls_max, overrides.wall_max),
            (Some(20_000), Some(Duration::from_secs(5)))
        );
        assert_eq!(run.iterations, Some(3));
    }

    #[test]
    fn missing_file_sets_nothing_and_an_error_has_line_and_column() {
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(Project::read(directory.path()).unwrap(), Project::default());
        for (text, position) in [
            ("[limits]\nfule = 1\n", "toolwit.toml:2:1: "),
            ("[limits]\nwall = \"soon\"\n", "toolwit.toml:2:8: "),
            ("[limit]\n", "toolwit.toml:1:2: "),
            (
                "[index]\nurl = \"http://example.com/index.json\"\n",
                "toolwit.toml:2:7: ",
            ),
        ] {
            let error = read(text).unwrap_err();
            assert_eq!(error.kind, ErrorKind::Configuration);
            assert!(error.message.starts_with(position), "{error}");
        }
    }
}
