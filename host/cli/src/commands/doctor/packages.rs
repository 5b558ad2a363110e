//! Packages that cannot be used, and tools that failed.

use super::finding::Findings;
use crate::exit::Exit;
use crate::hint::discovery_error;
use crate::output::page::counted;
use toolwit::registry::Registry;
use toolwit::store::ToolKey;

pub(super) fn check(registry: &Registry, findings: &mut Findings) {
    let packages = registry.packages();
    let broken = packages.iter().filter_map(|package| Some((package, package.reason()?)));
    for (package, reason) in broken {
        let message = format!("{} is broken: {}", package.name, reason.message);
        findings.problem(
            "packages",
            &package.name,
            message,
            reason.suggestion.clone(),
            Exit::NotLoaded,
        );
    }
    for (package, unasked) in packages
        .iter()
        .filter_map(|package| Some((package, discovery_error(package)?)))
    {
        let hint = unasked.suggestion.as_deref().unwrap_or_default();
        let message = format!("{}: {}", package.name, unasked.message);
        findings.warning("packages", &package.name, message, hint);
    }
    let usable = counted(registry.plugins().count(), "plugin");
    let tools = counted(registry.tool_count(), "tool");
    findings.ok("packages", format!("{usable} can be used, with {tools}"));
    match registry.store().health() {
        Ok(health) => {
            for plugin in registry.plugins() {
                let digest = &plugin.inspection().digest;
                for tool in &plugin.inspection().tools {
                    let known = health.get(&ToolKey::new(digest.as_str(), tool.id.as_str()));
                    let Some(known) = known.filter(|known| known.is_broken()) else {
                        continue;
                    };
                    let why = known.error.as_deref().unwrap_or("it is not known why");
                    let message = format!("{} failed when it was last called: {why}", tool.id);
                    let hint = format!("a call that goes well heals it: `toolwit call {}`", tool.id);
                    findings.warning("health", plugin.name(), message, hint);
                }
            }
        }
        Err(error) => {
            let hint = "see to the file of the store, or name another one with `--store FILE`";
            findings.warning("health", "store", format!("health cannot be read: {error}"), hint);
        }
    }
}
