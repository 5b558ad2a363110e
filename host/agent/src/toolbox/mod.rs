//! The tools of a conversation: those that can be called, and those that are declared to the model.

mod changes;
mod declared_tools;
mod eviction;
mod facade_path;
mod gateway;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use indexmap::IndexSet;

use self::declared_tools::DeclaredTools;
use crate::event::Event;
use crate::injection::{CallLog, ConversationView, Entities, Injection, Lineage, PastCall, number_objects};
use crate::limits::LoopLimits;
use crate::model::{DeclaredTool, ToolDelivery};
use toolwit_core::{
    AddOutcome, Message, NamedTool, Tool, ToolId, ToolLookup, ToolName, ToolProvider, ToolResult, ToolSet,
    tool_identities,
};

pub(crate) use facade_path::facade_path;
pub(crate) use gateway::{CALL_TOOL, gateway_target, gateway_tool};

/// The callable tools and the declared tools of a conversation, and the entities whose methods are among these tools.
///
/// Within a turn, the list of declared tools only grows at its end. Most providers put the tools before the messages, so
/// any other change invalidates the prompt cache. There are two exceptions. If more than `tools_max` tools would be
/// declared, some are evicted. If a tool is added again with another definition, the new definition is declared, because
/// the arguments are checked against the new schema.
///
/// With [`ToolDelivery::Gateway`], injected tools are not declared. The result that injects a tool describes the tool instead.
#[derive(Clone)]
pub(crate) struct Toolbox {
    callable: Arc<ToolSet>,
    declared: DeclaredTools,
    /// Injected tools that a message describes, in order. Only [`ToolDelivery::Gateway`] has such tools.
    described: IndexSet<ToolName>,
    delivery: ToolDelivery,
    entities: Entities,
    lineage: Arc<Lineage>,
    calls: Arc<CallLog>,
    /// The tools that the application or a role added, not an injection. They are never folded. They are evicted only
    /// after the injected tools that were not just used.
    configured: HashSet<ToolName>,
    /// Evicted and folded tools. They can be called, but are neither declared nor described.
    hidden: HashSet<ToolName>,
    /// For each tool, the value of `use_count` at its last use.
    last_use: HashMap<ToolName, u64>,
    /// The number of uses so far. A use is an addition, a call, or a restoration after hiding.
    use_count: u64,
    /// Whether the last check found `tools_warn` declared tools or more.
    has_warned: bool,
    tools_max: usize,
    tools_warn: usize,
}

impl Toolbox {
    pub(crate) fn new(callable: ToolSet, delivery: ToolDelivery, limits: &LoopLimits) -> Self {
        let configured = callable.iter().map(|tool| tool.name.clone()).collect();
        Self {
            callable: Arc::new(callable),
            declared: DeclaredTools::default(),
            described: IndexSet::new(),
            delivery,
            entities: Entities::default(),
            lineage: Arc::default(),
            calls: Arc::default(),
            configured,
            hidden: HashSet::new(),
            last_use: HashMap::new(),
            use_count: 0,
            has_warned: false,
            tools_max: limits.tools_max,
            tools_warn: limits.tools_warn,
        }
    }

    /// Returns the callable tools. A clone of the `Arc` is a snapshot.
    pub(crate) fn callable(&self) -> &Arc<ToolSet> {
        &self.callable
    }

    /// Returns the completed calls. A clone of the `Arc` is a snapshot.
    pub(crate) fn calls(&self) -> &Arc<CallLog> {
        &self.calls
    }

    /// Returns the lineage of injected tools. A clone of the `Arc` is a snapshot.
    pub(crate) fn lineage(&self) -> &Arc<Lineage> {
        &self.lineage
    }

    /// Appends a completed call to the log.
    pub(crate) fn record_call(&mut self, call: PastCall) {
        Arc::make_mut(&mut self.calls).push(call);
    }

    pub(crate) fn declared(&self) -> &[DeclaredTool] {
        self.declared.as_slice()
    }

    /// Returns the size of the declared definitions in a request, in bytes.
    pub(crate) fn definition_bytes(&self) -> usize {
        self.declared.definition_bytes()
    }

    pub(crate) fn declared_names(&self) -> Vec<ToolName> {
        self.declared().iter().map(|tool| tool.name.clone()).collect()
    }

    /// Returns the names of the tools that the model can see: those that are declared, and those that a message describes.
    pub(crate) fn declared_and_described_names(&self) -> Vec<ToolName> {
        let described = self.described.iter().cloned();
        self.declared_names().into_iter().chain(described).collect()
    }

    pub(crate) fn entities(&self) -> &Entities {
        &self.entities
    }

    /// Gives numbers to the objects of a result that have no id, except those that `is_claimed` accepts.
    pub(crate) fn number_objects(&mut self, result: &mut ToolResult, is_claimed: impl Fn(&dyn ToolProvider) -> bool) {
        number_objects(result, &mut self.entities, self.calls.all().len(), is_claimed);
    }

    /// Adds a tool that was injected before the conversation was resumed. `is_lost` is set for a method of an entity
    /// whose object no longer exists.
    pub(crate) fn restore_injected(&mut self, trigger: &ToolName, name: ToolName, tool: Arc<dyn Tool>, is_lost: bool) {
        let id = tool.definition().id.clone();
        // `adopt` refuses a tool that already exists or is excluded. Such a tool is not marked as lost.
        if Arc::make_mut(&mut self.callable).adopt(name.clone(), tool) && is_lost {
            self.entities.mark_lost(id);
        }
        self.touch(&name);
        self.declare(&name);
        self.record_lineage(&[name], trigger);
    }

    /// Returns the ids of the callable tools that a resume could not restore, in the order of the tools.
    pub(crate) fn lost_tools(&self) -> Vec<ToolId> {
        if !self.entities.has_lost_tools() {
            return Vec::new();
        }
        let ids = self.callable.iter().map(|tool| &tool.definition.id);
        ids.filter(|id| self.entities.is_lost(id)).cloned().collect()
    }

    /// Returns whether a tool of an earlier process cannot be called: it is lost, or the conversation does not have it.
    pub(crate) fn is_gone(&self, tool: &ToolId) -> bool {
        self.entities.is_lost(tool) || self.callable.by_id(tool).is_none()
    }

    /// Replaces a method of an entity by a method with a live object, and removes the mark of a lost tool.
    pub(crate) fn rebind(&mut self, tool: Arc<dyn Tool>) {
        self.entities.mark_recovered(&tool.definition().id);
        self.replace(tool);
    }

    /// Replaces an existing tool, and declares its new definition if the definition has changed.
    pub(crate) fn replace(&mut self, tool: Arc<dyn Tool>) {
        if let AddOutcome::Redefined(name) = Arc::make_mut(&mut self.callable).add(tool) {
            self.refresh_definition(&name);
        }
    }

    /// Removes tools by name.
    pub(crate) fn remove_named(&mut self, names: &[ToolName]) {
        for tool in names
            .iter()
            .filter_map(|name| self.callable_tool(name))
            .collect::<Vec<_>>()
        {
            self.remove(&tool.definition.id);
        }
    }

    /// With [`ToolDelivery::Gateway`], returns a text that describes to the model the tools that the events inject, redefine
    /// or restore. Returns `None` with another delivery, or if the events have no such tools.
    pub(crate) fn descriptions(&self, events: &[Event]) -> Option<String> {
        if self.delivery != ToolDelivery::Gateway {
            return None;
        }
        let names = events.iter().flat_map(|event| match event {
            Event::ToolsInjected { names, .. }
            | Event::ToolsRedefined { names, .. }
            | Event::ToolsRestored { names } => names.as_slice(),
            _ => &[],
        });
        let lines: String = names
            .filter_map(|name| self.callable_tool(name))
            .map(|tool| gateway::description_line(&tool))
            .collect();
        (!lines.is_empty()).then(|| format!("\n\n{}\n{lines}", gateway::DESCRIPTIONS_HEADING))
    }

    pub(crate) fn delivery(&self) -> ToolDelivery {
        self.delivery
    }

    /// Returns the view of the conversation that strategies receive.
    pub(crate) fn view<'s>(&'s self, history: &'s [Message]) -> ConversationView<'s> {
        ConversationView::new(history, &self.callable)
            .with_entities(&self.entities)
            .with_lineage(&self.lineage)
            .with_calls(&self.calls)
    }

    pub(crate) fn look_up(&self, name: &str) -> ToolLookup {
        self.callable.look_up(name)
    }

    /// Adds a tool of the application or of a role, unless it is excluded. The tool is declared from the next turn on.
    pub(crate) fn add_configured(&mut self, tool: Arc<dyn Tool>) -> AddOutcome {
        let outcome = Arc::make_mut(&mut self.callable).add(tool);
        if !matches!(outcome, AddOutcome::Excluded(_)) {
            self.hidden.remove(outcome.name());
            self.configured.insert(outcome.name().clone());
        }
        outcome
    }

    /// Ends the exclusion of a tool and of the tools that it decorates. Returns the events to emit.
    pub(crate) fn admit_tool(&mut self, tool: &Arc<dyn Tool>) -> Vec<Event> {
        let mut admitted = tool_identities(tool);
        admitted.retain(|id| Arc::make_mut(&mut self.callable).admit(id));
        admitted.into_iter().map(|tool| Event::ToolAdmitted { tool }).collect()
    }

    /// Ends the exclusion of an id. A resume calls this for a tool that the application had added again.
    pub(crate) fn admit_id(&mut self, id: &ToolId) {
        Arc::make_mut(&mut self.callable).admit(id);
    }

    /// Removes the tools with this id, and excludes the id: a tool with this id can be added again only after it is
    /// [admitted](Self::admit_tool). The tools stay declared until the end of the turn. Returns the names of the removed
    /// tools.
    pub(crate) fn exclude(&mut self, id: &ToolId) -> Vec<ToolName> {
        let names = Arc::make_mut(&mut self.callable).exclude(id);
        for name in &names {
            self.hidden.remove(name);
            self.configured.remove(name);
        }
        names
    }

    /// Removes a tool, and returns its name, or `None` if it does not exist. The tool stays declared until the end of
    /// the turn.
    pub(crate) fn remove(&mut self, id: &ToolId) -> Option<ToolName> {
        let name = Arc::make_mut(&mut self.callable).remove(id)?;
        self.hidden.remove(&name);
        self.configured.remove(&name);
        Some(name)
    }

    /// Begins a turn: declares the callable tools that are not hidden, with their current definitions. Returns the
    /// names of the declared tools, and with [`ToolDelivery::Gateway`] also of the described tools.
    pub(crate) fn start_turn(&mut self) -> Vec<ToolName> {
        let mut names: IndexSet<_> = self.declared.take().into_iter().collect();
        names.extend(std::mem::take(&mut self.described));
        let callable = self.callable.clone();
        let visible = callable.iter().filter(|tool| !self.hidden.contains(&tool.name));
        names.extend(visible.map(|tool| tool.name.clone()));
        names.retain(|name| self.declare(name));
        names.into_iter().collect()
    }

    /// At the beginning of a turn, evicts the tools beyond the limit on declared tools, and checks whether a warning is
    /// due. Returns the events to emit.
    pub(crate) fn limit_declared(&mut self) -> Vec<Event> {
        let evicted = self.evict(&[]);
        evicted.into_iter().chain(self.warn()).collect()
    }

    /// Applies an injection at the beginning of a turn, when tools may be folded too.
    pub(crate) fn apply_at_turn_start(&mut self, injection: Injection, trigger: &ToolName) -> Vec<Event> {
        let folded = self.fold(&injection.fold);
        folded.into_iter().chain(self.apply(injection, trigger)).collect()
    }

    /// Updates the declared definitions from the callable tools, and stops declaring removed tools. The caller must do so
    /// before the first inference of a turn: later, the change would invalidate the prompt cache.
    pub(crate) fn refresh_declared(&mut self) {
        let callable = &self.callable;
        self.declared.retain(|tool| match callable.look_up(tool.name.as_str()) {
            ToolLookup::Found(current) => {
                tool.definition = current.definition;
                true
            }
            ToolLookup::Removed(_) | ToolLookup::Unknown(_) => false,
        });
    }

    /// Records that a tool is called. A hidden tool is declared again, which may evict others. Returns the events to
    /// emit.
    pub(crate) fn mark_called(&mut self, name: &ToolName) -> Vec<Event> {
        self.touch(name);
        let name = std::slice::from_ref(name);
        let (restored, evicted) = (self.restore(name), self.evict(name));
        restored.into_iter().chain(evicted).collect()
    }

    /// Returns the callable tool with this name.
    fn callable_tool(&self, name: &ToolName) -> Option<NamedTool> {
        match self.callable.look_up(name.as_str()) {
            ToolLookup::Found(tool) => Some(tool),
            _ => None,
        }
    }

    /// Declares a callable tool after the others, or updates its definition if it is already declared. With
    /// [`ToolDelivery::Gateway`], an injected tool is added to the described tools instead. Returns whether the tool was
    /// neither declared nor described before.
    fn declare(&mut self, name: &ToolName) -> bool {
        let Some(tool) = self.callable_tool(name) else {
            return false;
        };
        if self.delivery == ToolDelivery::Gateway && !self.configured.contains(name) {
            return self.described.insert(name.clone());
        }
        let is_new = self.declared.push(&tool);
        if !is_new {
            self.refresh_definition(name);
        }
        is_new
    }

    /// Declares the tools that an interrupted run declared, such as the tools of its roles, if they are callable.
    pub(crate) fn declare_again(&mut self, names: &[ToolName]) {
        for name in names {
            self.declare(name);
        }
    }

    /// Records that a tool is used now.
    pub(crate) fn touch(&mut self, name: &ToolName) {
        self.use_count += 1;
        self.last_use.insert(name.clone(), self.use_count);
    }
}

#[cfg(test)]
mod tests;
