//! Checks that a conversation has the tools to which its strategies and decorators refer.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::injection::{InjectionStrategy, StrategyChain};
use toolwit_core::limits::FACADE_DEPTH_MAX;
use toolwit_core::{Error, ErrorKind, Phase, SelectorMap, Tool, ToolId, ToolName, ToolSelector, ToolSet};

/// Checks that each reference selects a tool of the conversation, a tool behind a facade, or a tool that a strategy can restore,
/// such as a tool of a registry. Late references are not checked, since their tools may appear during the conversation.
///
/// # Errors
/// [`ErrorKind::Configuration`] for the first reference that selects no tool.
pub(super) fn check_tool_references(
    references: &[ToolSelector],
    tools: &ToolSet,
    strategies: &StrategyChain,
) -> Result<(), Error> {
    let early_references = references.iter().filter(|reference| !reference.is_late());
    let mut positions = SelectorMap::default();
    let mut unresolved = BTreeSet::new();
    for (position, reference) in early_references.clone().enumerate() {
        positions.insert(reference, position);
        unresolved.insert(position);
    }
    for named in tools.iter() {
        remove_resolved(&named.tool, Some(&named.name), &positions, &mut unresolved, 0);
    }
    let mut unresolved_references = early_references
        .enumerate()
        .filter(|(position, _)| unresolved.contains(position));
    let missing = unresolved_references.find_map(|(_, reference)| {
        let text = reference.text()?;
        strategies.restore(&ToolId::from_text(text)).is_none().then_some(text)
    });
    missing.map_or(Ok(()), |text| Err(missing_tool_error(text, tools)))
}

/// Removes from `unresolved` the positions of the references that select a tool or, for a facade, a tool behind the facade.
/// `name` is `None` for a tool behind a facade, since such a tool has no assigned name.
fn remove_resolved(
    tool: &Arc<dyn Tool>,
    name: Option<&ToolName>,
    positions: &SelectorMap<usize>,
    unresolved: &mut BTreeSet<usize>,
    depth: usize,
) {
    for position in positions.get(tool, name) {
        unresolved.remove(position);
    }
    let facade = tool
        .facade()
        .filter(|_| depth < FACADE_DEPTH_MAX && !unresolved.is_empty());
    for tool in facade.into_iter().flat_map(|facade| facade.fixed_tools()) {
        remove_resolved(tool, None, positions, unresolved, depth + 1);
    }
}

fn missing_tool_error(text: &str, tools: &ToolSet) -> Error {
    let message =
        format!("a strategy or a decorator refers to the tool `{text}`, which the conversation does not have");
    let late_hint = "if it appears during the conversation, refer to it with `ToolSelector::later`";
    let nearest: Vec<_> = tools.nearest(text).iter().map(|name| format!("`{name}`")).collect();
    Error::new(ErrorKind::Configuration, Phase::Registry, message).with_suggestion(if nearest.is_empty() {
        late_hint.to_owned()
    } else {
        format!("did you mean {}? {late_hint}", nearest.join(" or "))
    })
}
