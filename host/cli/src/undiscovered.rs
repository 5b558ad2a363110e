//! The hint for a package whose dynamic tools are missing.

use toolwit::Error;
use toolwit::registry::Package;

/// Returns why the dynamic tools of a package are missing, with the command that discovers them as hint.
pub(super) fn discovery_error(package: &Package) -> Option<Error> {
    let error = package.discovery_error()?;
    let command = format!("`toolwit refresh {}`", package.name);
    let failure = package.discovery_failure();
    let hint = match failure.map(|failure| failure.suggestion.as_deref()) {
        Some(Some(first)) => format!("{first}; then {command} discovers them"),
        Some(None) => format!("{command} tries again"),
        None => format!("{command} discovers them now; a host discovers them when it starts"),
    };
    Some(error.with_suggestion(hint))
}
