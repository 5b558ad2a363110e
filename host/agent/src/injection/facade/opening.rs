//! The evaluation of one call of a facade: which tools it adds to the conversation.

use std::collections::HashSet;
use std::sync::Arc;

use super::context_tool::{ToolDescription, context_tool};
use crate::injection::strategy::{Injection, WithheldTool};
use crate::injection::view::InjectionContext;
use toolwit_core::limits::FACADE_DEPTH_MAX;
use toolwit_core::{NamedTool, RevealedTools, Tool, ToolDefinition, ToolExt, ToolId, ToolSet, decorator_chain};

/// The evaluation of one facade call.
pub(super) struct FacadeOpening<'a> {
    context: &'a InjectionContext<'a>,
    revealed: &'a RevealedTools,
    facade_id: ToolId,
    /// Whether the previous successful call of the facade had the same arguments.
    is_repeated: bool,
    /// Whether the tools are made again, so that each replaces the tool with its id.
    is_made_again: bool,
    injection: Injection,
}

impl<'a> FacadeOpening<'a> {
    pub(super) fn new(context: &'a InjectionContext<'a>, revealed: &'a RevealedTools) -> Self {
        let call = context.call();
        let facade_id = call.tool.definition().id.clone();
        let previous_call = context.calls().last_success(&facade_id);
        Self {
            is_repeated: previous_call.is_some_and(|(_, previous)| previous.arguments == call.arguments),
            context,
            revealed,
            facade_id,
            is_made_again: false,
            injection: Injection::none(),
        }
    }

    /// Makes the tools again, for another caller or after a resume: each replaces the tool with its id, although the arguments
    /// of the facade did not change.
    pub(super) fn made_again(mut self) -> Self {
        self.is_made_again = true;
        self
    }

    /// Returns the injection that adds the revealed tools and their context tool. If the facade is nested too deep, the
    /// injection only withholds it.
    pub(super) fn into_injection(mut self) -> Injection {
        if self.outer_facades().count() >= FACADE_DEPTH_MAX {
            let reason = format!("it is nested in {FACADE_DEPTH_MAX} facades, which is the limit");
            self.withhold(self.context.call().name.as_str().to_owned(), reason);
            return self.injection;
        }
        for tool in &self.revealed.tools {
            self.reveal(tool);
        }
        self.add_context_tool();
        self.injection
    }

    /// Lists an inner tool, and adds it to the conversation. The tool is not added again if it is present, or if a tool with its
    /// id is present and the arguments of the facade did not change. A tool that was lost in a resume does not count as present.
    /// A tool is withheld instead if it would be nested in itself, or if the application removed it.
    fn reveal(&mut self, tool: &Arc<dyn Tool>) {
        let tools = self.context.tools();
        if let Some(present) = find_present(tool, tools) {
            self.injection.listed.push(present.definition.id.clone());
            return;
        }
        let name = tool.definition().name();
        if tool.facade().is_some() && self.is_within(&innermost(tool).definition().id) {
            self.withhold(name.to_owned(), "it would be nested in itself".to_owned());
            return;
        }
        let tool = self.with_scoped_id(tool);
        if tools.is_excluded(&tool) {
            self.withhold(name.to_owned(), "it was removed from the conversation".to_owned());
            return;
        }
        let id = tool.definition().id.clone();
        let is_present = tools.by_id(&id).is_some() && !self.context.entities().is_lost(&id);
        if !(is_present && self.is_repeated) || self.is_made_again {
            self.injection.add.push(tool);
        }
        self.injection.listed.push(id);
    }

    /// Scopes the id of a native tool to its facade, since two facades may have native tools of the same name. Plugin tools
    /// and host tools keep their ids, which are unique. Locks and decorators of the original id still apply.
    fn with_scoped_id(&self, tool: &Arc<dyn Tool>) -> Arc<dyn Tool> {
        let definition = tool.definition();
        if !definition.id.is_native() {
            return tool.clone();
        }
        let facade = &self.context.call().name;
        let mut names = definition.names.clone();
        names.extend(definition.names.first().map(|name| format!("{facade}_{name}")));
        let id = definition.id.within(&self.facade_id);
        Arc::new(tool.clone().with_identity(id, names))
    }

    /// Adds `<facade>_context`, which describes all tools that the facade has revealed so far. Adds nothing if the call
    /// lists no tool, or if an up-to-date context tool is present.
    fn add_context_tool(&mut self) {
        let id = context_tool_id(&self.facade_id);
        let is_present = self.context.tools().by_id(&id).is_some() && !self.context.entities().is_lost(&id);
        if self.injection.listed.is_empty() || (is_present && self.injection.add.is_empty()) {
            return;
        }
        let descriptions = self.tool_descriptions(&id);
        let call = self.context.call();
        let about = &call.tool.definition().description;
        let notes = self.revealed.usage_notes.as_deref();
        match context_tool(id, &call.name, about, &descriptions, notes) {
            Ok(tool) => self.injection.add.push(tool),
            Err(error) => tracing::warn!(facade = %call.name, %error, "the context tool of a facade cannot be created"),
        }
    }

    /// Describes the tools that the facade has revealed so far, except its context tool. If they were made again, the others
    /// leave and are not described.
    fn tool_descriptions(&self, context_tool: &ToolId) -> Vec<ToolDescription> {
        let tools = self.context.tools();
        let added = &self.injection.add;
        let added_ids: HashSet<_> = added.iter().map(|tool| &tool.definition().id).collect();
        let mut visited_ids = HashSet::from([context_tool]);
        let earlier_ids = if self.is_made_again {
            &[]
        } else {
            self.context.lineage().children(&self.facade_id)
        };
        let revealed_ids = earlier_ids.iter().chain(&self.injection.listed);
        let present_ids = revealed_ids.filter(|id| !added_ids.contains(id) && visited_ids.insert(id));
        let present = present_ids
            .filter_map(|id| tools.by_id(id))
            .map(|tool| ToolDescription {
                name: tool.name.clone(),
                definition: ToolDefinition::clone(&tool.definition),
            });
        let names = tools.names_after_adding(added).into_iter();
        let added_tools = names.zip(added).map(|(name, tool)| ToolDescription {
            name,
            definition: tool.definition().clone(),
        });
        present.chain(added_tools).collect()
    }

    /// Returns the facades in which this one is nested, nearest first.
    fn outer_facades(&self) -> impl Iterator<Item = &'a NamedTool> {
        let tools = self.context.tools();
        let ancestors = self.context.lineage().ancestors(&self.facade_id);
        let named = ancestors.filter_map(|id| tools.by_id(id));
        named.filter(|tool| tool.tool.facade().is_some())
    }

    /// Returns whether an id is that of this facade, or of a facade in which this one is nested. The id must be that of an
    /// [`innermost`] tool, and is compared with the ids of the innermost tools of these facades.
    fn is_within(&self, id: &ToolId) -> bool {
        let own_id = &innermost(&self.context.call().tool).definition().id;
        own_id == id
            || self
                .outer_facades()
                .any(|facade| innermost(&facade.tool).definition().id == *id)
    }

    fn withhold(&mut self, name: String, reason: String) {
        self.injection.withheld.push(WithheldTool { name, reason });
    }
}

/// Returns the id of the context tool of a facade.
pub(super) fn context_tool_id(facade: &ToolId) -> ToolId {
    facade.bound_to("context")
}

/// Returns the innermost tool, below all decorators.
fn innermost(tool: &Arc<dyn Tool>) -> &Arc<dyn Tool> {
    decorator_chain(tool).last().unwrap_or(tool)
}

/// Returns the tool of the set that is `tool` or decorates it, or `None` if the set has no such tool.
pub(super) fn find_present<'a>(tool: &Arc<dyn Tool>, tools: &'a ToolSet) -> Option<&'a NamedTool> {
    let ids = tools.ids_with_identity(&tool.definition().id);
    ids.filter_map(|id| tools.by_id(id))
        .find(|present| is_or_decorates(&present.tool, tool))
}

/// Returns whether `tool` is `inner`, or decorates it.
pub(super) fn is_or_decorates(tool: &Arc<dyn Tool>, inner: &Arc<dyn Tool>) -> bool {
    decorator_chain(tool).any(|layer| address(layer) == address(inner))
}

/// Returns the address of a tool, which identifies the tool.
pub(super) fn address(tool: &Arc<dyn Tool>) -> *const () {
    Arc::as_ptr(tool).cast()
}
