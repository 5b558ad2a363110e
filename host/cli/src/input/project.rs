//! The settings of the project.

use std::path::Path;

use toolwit::Error;
use toolwit::registry::Project;

/// Reads `toolwit.toml` in the current directory, if it exists.
pub(crate) fn project() -> Result<Project, Error> {
    Project::read(Path::new("."))
}
