//! Makes the tools of open facades again: for another caller, and for a conversation that was resumed.

use std::collections::{HashMap, HashSet};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures::FutureExt;

use super::opening::{FacadeOpening, context_tool_id, is_or_decorates};
use crate::injection::strategy::{Injection, TriggeredInjection};
use crate::injection::view::{CompletedCall, ConversationView, InjectionContext};
use toolwit_core::limits::SOURCE_WALL_MAX;
use toolwit_core::{
    Arguments, NamedTool, RevealedTools, Tool, ToolFacade, ToolId, ToolName, ToolResult, decorator_chain,
};

/// Returns those of the lost tools that an open facade makes again.
pub(super) async fn recover(lost: &[ToolId], view: ConversationView<'_>) -> Vec<Arc<dyn Tool>> {
    let mut recovered = Vec::new();
    for parent in parents(lost.iter(), view) {
        let present = view.tools().by_id(&parent);
        // The guard of a facade decides about a call of the present caller, not about that of an earlier process.
        let Some(facade) = present.filter(|named| !lost.contains(&parent) && !is_guarded(&named.tool)) else {
            continue;
        };
        if let Some(injection) = make_again(facade, &facade.tool, view).await {
            recovered.extend(injection.add);
        }
    }
    recovered.retain(|tool| lost.contains(&tool.definition().id));
    recovered
}

/// Returns the changes after which no tool of an open facade is of an earlier caller. The tools are made again with the context
/// of the view. A tool that is not made again leaves.
///
/// A facade with a guard, such as an approval, makes nothing without a call: the guard may refuse this caller.
pub(super) async fn change_caller(view: ConversationView<'_>) -> Vec<TriggeredInjection> {
    let mut change = CallerChange {
        view,
        made: HashMap::new(),
        gone: HashSet::new(),
        changes: Vec::new(),
    };
    let ids = view.tools().iter().map(|named| &named.definition.id);
    for parent in parents(ids, view) {
        change.apply_to(&parent).await;
    }
    change.changes
}

/// Returns whether a guard, such as an approval, decides about the calls of a tool.
fn is_guarded(tool: &Arc<dyn Tool>) -> bool {
    decorator_chain(tool).any(|layer| layer.decorator().is_some_and(|guard| guard.is_guard()))
}

/// Returns the tools whose results injected these tools, the outermost first.
fn parents<'i>(tools: impl Iterator<Item = &'i ToolId>, view: ConversationView<'_>) -> Vec<ToolId> {
    let lineage = view.lineage();
    let mut seen = HashSet::new();
    let parents = tools.filter_map(|id| lineage.parent(id)).filter(|id| seen.insert(*id));
    let mut parents: Vec<_> = parents.cloned().collect();
    parents.sort_by_key(|id| lineage.ancestors(id).count());
    parents
}

/// Makes the tools again that the last successful call of a facade revealed. `tool` is the facade, or the one that replaces it.
/// Returns `None` if the facade was not called, or if only a call can make its tools.
async fn make_again(named: &NamedTool, tool: &Arc<dyn Tool>, view: ConversationView<'_>) -> Option<Injection> {
    let facade = tool.facade()?;
    let (_, past_call) = view.calls().last_success(&named.definition.id)?;
    let revealed = revealed_again(facade, &named.name, past_call.arguments.clone(), view).await?;
    let mut result = ToolResult::text("");
    result.revealed_tools = Some(revealed.clone());
    let call = CompletedCall::new(
        "",
        named.name.clone(),
        past_call.arguments.clone(),
        tool.clone(),
        result,
    );
    let context = InjectionContext::after(&call, view);
    Some(FacadeOpening::new(&context, &revealed).made_again().into_injection())
}

/// Returns the tools that a facade makes for the context of the view.
async fn revealed_again(
    facade: &dyn ToolFacade,
    name: &ToolName,
    arguments: Arguments,
    view: ConversationView<'_>,
) -> Option<RevealedTools> {
    let made = AssertUnwindSafe(facade.make_again(&arguments, view.context())).catch_unwind();
    match tokio::time::timeout(SOURCE_WALL_MAX, made).await {
        Ok(Ok(revealed)) => revealed,
        Ok(Err(_)) => {
            tracing::error!(facade = %name, "a facade panicked; its tools are missing");
            None
        }
        Err(_) => {
            tracing::warn!(facade = %name, limit = ?SOURCE_WALL_MAX, "a facade takes too long; its tools are missing");
            None
        }
    }
}

/// The changes for another caller, which are computed for the outermost facades first.
struct CallerChange<'a> {
    view: ConversationView<'a>,
    /// The tools that were made again, which replace those of the conversation.
    made: HashMap<ToolId, Arc<dyn Tool>>,
    /// The tools that leave.
    gone: HashSet<ToolId>,
    changes: Vec<TriggeredInjection>,
}

impl CallerChange<'_> {
    /// Adds the changes of the tools that the results of one tool injected.
    async fn apply_to(&mut self, parent: &ToolId) {
        let present = self.view.tools().by_id(parent).filter(|_| !self.gone.contains(parent));
        let Some(named) = present else {
            // The tools of a facade leave with the facade.
            if self.gone.contains(parent) || self.has_revealed_tools(parent) {
                self.remove_children(parent, |_| false);
            }
            return;
        };
        let tool = self.made.get(parent).unwrap_or(&named.tool).clone();
        let Some(facade) = tool.facade() else {
            // The result of another tool revealed the tools. Only a call of that tool makes them again.
            if self.has_revealed_tools(parent) {
                self.remove_children(parent, |_| false);
            }
            return;
        };
        let made = if is_guarded(&tool) {
            None
        } else {
            make_again(named, &tool, self.view).await
        };
        let injection = made.unwrap_or_default();
        let context_tool = context_tool_id(parent);
        let tools = self.view.tools();
        let is_fixed = |id: &ToolId| {
            let present = tools.by_id(id);
            present.is_some_and(|present| {
                facade
                    .fixed_tools()
                    .iter()
                    .any(|fixed| is_or_decorates(&present.tool, fixed))
            })
        };
        let stays = |id: &ToolId| injection.listed.contains(id) || is_fixed(id);
        let keeps_a_tool = self.view.lineage().children(parent).iter().any(&stays);
        let has_new_tools = injection.add.iter().any(|tool| tool.definition().id != context_tool);
        let has_removed = self.remove_children(parent, |id| stays(id) || (*id == context_tool && keeps_a_tool));
        if has_new_tools || (has_removed && keeps_a_tool) {
            let ids = injection
                .add
                .iter()
                .map(|tool| (tool.definition().id.clone(), tool.clone()));
            self.made.extend(ids);
            self.changes
                .push(TriggeredInjection::new(named.name.clone(), injection));
        }
    }

    /// Returns whether the last successful call of a tool revealed tools.
    fn has_revealed_tools(&self, tool: &ToolId) -> bool {
        let last_call = self.view.calls().last_success(tool);
        last_call.is_some_and(|(_, call)| call.has_revealed_tools)
    }

    /// Removes the tools that the results of `parent` injected, except methods of entities and those that stay. Returns whether
    /// a tool is removed.
    fn remove_children(&mut self, parent: &ToolId, stays: impl Fn(&ToolId) -> bool) -> bool {
        let view = self.view;
        let context_tool = context_tool_id(parent);
        let is_method = |id: &ToolId| id.unbound() != *id && *id != context_tool;
        let children = view.lineage().children(parent).iter();
        let removed = children.filter(|id| view.tools().by_id(id).is_some() && !stays(id) && !is_method(id));
        let removed: Vec<_> = removed.cloned().collect();
        if removed.is_empty() {
            return false;
        }
        self.gone.extend(removed.iter().cloned());
        let trigger = view.calls().last_success(parent).map(|(_, call)| call.name.clone());
        let trigger = trigger.or_else(|| view.tools().by_id(parent).map(|named| named.name.clone()));
        self.changes
            .extend(trigger.map(|trigger| TriggeredInjection::new(trigger, Injection::remove(removed))));
        true
    }
}
