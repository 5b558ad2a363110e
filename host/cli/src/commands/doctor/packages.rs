//! Checks of packages: broken packages, missing dynamic tools, WIT files that are not used, and tools whose last call
//! failed.

use super::finding::Findings;
use crate::exit::Exit;
use crate::hint::{discovery_error, with_fixing_hint};
use crate::output::package::wit_warning;
use crate::output::page::counted;
use crate::shell::SuggestedCommand;
use toolwit::registry::{FailingTool, Registry};

pub(super) fn check(registry: &Registry, findings: &mut Findings) {
    let packages = registry.packages();
    let broken = packages
        .iter()
        .filter_map(|package| Some((package, package.broken_reason()?)));
    for (package, reason) in broken {
        let message = format!("{} is broken: {}", package.name, reason.message);
        findings.add_problem(
            "packages",
            &package.name,
            message,
            with_fixing_hint(reason).suggestion.clone(),
            Exit::NotLoaded,
        );
    }
    for (package, error) in packages
        .iter()
        .filter_map(|package| Some((package, discovery_error(package)?)))
    {
        let hint = error.suggestion.as_deref().unwrap_or_default();
        let message = format!("{}: {}", package.name, error.message);
        findings.add_warning("packages", &package.name, message, hint);
    }
    for plugin in registry.plugins() {
        if let Some(problem) = &plugin.inspection().wit_problem {
            let hint = format!("`toolwit lint` explains it; replace or delete `{}.wit`", plugin.name());
            findings.add_warning("packages", plugin.name(), wit_warning(plugin.name(), problem), hint);
        }
    }
    let usable = counted(registry.plugins().count(), "plugin");
    let tools = counted(registry.tool_count(), "tool");
    findings.add_ok("packages", format!("{usable} can be used, with {tools}"));
    match registry.failing_tools() {
        Ok(failing) => {
            for FailingTool { tool, error } in failing {
                let reason = error.as_deref().unwrap_or("unknown reason");
                let message = format!("{tool} failed when it was last called: {reason}");
                let call = SuggestedCommand::new("call").operand(tool.as_str());
                let hint = format!("a successful call clears this: `{call}`");
                findings.add_warning("health", tool.owner(), message, hint);
            }
        }
        Err(error) => {
            let hint = "check the metadata database, or pass another one with `--store FILE`";
            findings.add_warning("health", "store", format!("health cannot be read: {error}"), hint);
        }
    }
}
