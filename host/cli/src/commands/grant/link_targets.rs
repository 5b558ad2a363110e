//! The directories to which the paths of a grant really lead.

use toolwit::grants::{DirectoryRule, GrantRules};

/// Returns the paths of the granted directories to which links lead, with the real paths.
pub(super) fn link_targets(rules: &GrantRules) -> Vec<(String, String)> {
    let with_real_path = |rule: &DirectoryRule| Some((rule.host.clone(), std::fs::canonicalize(&rule.host).ok()?));
    let paths = rules.files.iter().filter_map(with_real_path);
    let leads_elsewhere = paths.filter(|(path, real)| path != real);
    leads_elsewhere
        .map(|(path, real)| (path.display().to_string(), real.display().to_string()))
        .collect()
}
