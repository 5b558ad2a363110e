//! The tools of a conversation: those that can be called, and those that are declared to the model.

mod facade_path;
mod gateway;
mod hiding;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::event::Event;
use crate::injection::{CallLog, ConversationView, DiscoveredEntity, Entities, Injection, Lineage};
use crate::limits::LoopLimits;
use crate::model::{DeclaredTool, Delivery};
use toolwit_core::{AddOutcome, Message, NamedTool, Tool, ToolDefinition, ToolId, ToolLookup, ToolName, ToolSet};

pub(crate) use facade_path::facade_path;
pub(crate) use gateway::{CALL_TOOL, call_tool, gateway_target};

/// Callable and declared tools, and the entities behind them.
///
/// During a turn, declared tools are only appended: most providers put tools before messages, and any other change
/// invalidates the cached prompt. The exception is eviction, when more than `tools_max` would be declared.
///
/// With [`Delivery::Gateway`] the declared tools never change: the result that injects a tool describes it.
#[derive(Clone)]
pub(crate) struct Toolbox {
    callable: ToolSet,
    declared: Vec<DeclaredTool>,
    /// Tools that were injected and described behind a gateway, in order.
    described: Vec<ToolName>,
    delivery: Delivery,
    entities: Entities,
    lineage: Lineage,
    pub(crate) calls: CallLog,
    /// Tools that exist from the start and are never hidden.
    fixed: HashSet<ToolName>,
    /// Tools that can be called and are not declared.
    hidden: HashSet<ToolName>,
    /// The time when each tool was last added or called, on `clock`.
    last_use: HashMap<ToolName, u64>,
    /// The number of additions and calls so far.
    clock: u64,
    has_warned: bool,
    tools_max: usize,
    tools_warn: usize,
}

/// The names of added tools, by effect.
#[derive(Default)]
struct Additions {
    new: Vec<ToolName>,
    rebound: Vec<ToolName>,
}

impl Toolbox {
    pub(crate) fn new(callable: ToolSet, delivery: Delivery, limits: &LoopLimits) -> Self {
        let fixed = callable.iter().map(|tool| tool.name.clone()).collect();
        Self {
            callable,
            declared: Vec::new(),
            described: Vec::new(),
            delivery,
            entities: Entities::default(),
            lineage: Lineage::default(),
            calls: CallLog::default(),
            fixed,
            hidden: HashSet::new(),
            last_use: HashMap::new(),
            clock: 0,
            has_warned: false,
            tools_max: limits.tools_max,
            tools_warn: limits.tools_warn,
        }
    }

    pub(crate) fn callable(&self) -> &ToolSet {
        &self.callable
    }

    pub(crate) fn declared(&self) -> &[DeclaredTool] {
        &self.declared
    }

    pub(crate) fn declared_names(&self) -> Vec<ToolName> {
        self.declared.iter().map(|tool| tool.name.clone()).collect()
    }

    pub(crate) fn entities(&self) -> &Entities {
        &self.entities
    }

    /// Adds a tool that was injected before the conversation was resumed. `is_lost` marks one whose object no longer exists.
    pub(crate) fn restore_injected(
        &mut self,
        trigger: &ToolName,
        name: ToolName,
        definition: ToolDefinition,
        tool: Arc<dyn Tool>,
        is_lost: bool,
    ) {
        let id = definition.id.clone();
        // A tool that exists already is now one of the initial tools of the application.
        if self.callable.adopt(name.clone(), definition, tool) && is_lost {
            self.entities.mark_lost(id);
        }
        self.touch(&name);
        self.declare(&name);
        self.record_lineage(&[name], trigger);
    }

    /// Replaces the implementation of an existing tool.
    pub(crate) fn rebind(&mut self, tool: Arc<dyn Tool>) {
        self.entities.mark_recovered(&tool.definition().id);
        self.callable.add(tool);
    }

    /// Removes tools by name.
    pub(crate) fn remove_named(&mut self, names: &[ToolName]) {
        for tool in names.iter().filter_map(|name| self.named(name)).collect::<Vec<_>>() {
            self.remove(&tool.definition.id);
        }
    }

    /// Returns the text that describes tools injected behind a gateway, or `None` without a gateway or such tools.
    pub(crate) fn descriptions(&self, events: &[Event]) -> Option<String> {
        if self.delivery != Delivery::Gateway {
            return None;
        }
        let names = events.iter().flat_map(|event| match event {
            Event::ToolsInjected { names, .. } | Event::ToolsRestored { names } => names.as_slice(),
            _ => &[],
        });
        let lines: String = names
            .filter_map(|name| self.named(name))
            .map(|tool| gateway::describe(&tool))
            .collect();
        (!lines.is_empty()).then(|| format!("\n\n{}\n{lines}", gateway::HEADING))
    }

    pub(crate) fn delivery(&self) -> Delivery {
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

    /// Adds a tool as if it were an initial one. It is declared from the next turn.
    pub(crate) fn add_fixed(&mut self, tool: Arc<dyn Tool>) -> ToolName {
        let name = self.callable.add(tool).name().clone();
        self.hidden.remove(&name);
        self.fixed.insert(name.clone());
        name
    }

    /// Removes a tool. It stays declared until the end of the turn.
    pub(crate) fn remove(&mut self, id: &ToolId) -> Option<ToolName> {
        let name = self.callable.remove(id)?;
        self.hidden.remove(&name);
        self.fixed.remove(&name);
        Some(name)
    }

    /// Begins a turn: stops declaring removed tools and refreshes definitions. Returns the declared names.
    pub(crate) fn start_turn(&mut self) -> Vec<ToolName> {
        let mut names: Vec<_> = self.declared.drain(..).map(|tool| tool.name).collect();
        names.append(&mut self.described);
        let mut present: HashSet<_> = names.iter().cloned().collect();
        for tool in self.callable.iter() {
            if !self.hidden.contains(&tool.name) && present.insert(tool.name.clone()) {
                names.push(tool.name.clone());
            }
        }
        names.retain(|name| self.declare(name).is_some());
        names
    }

    /// Applies an injection at the beginning of a turn, when tools may be folded too.
    pub(crate) fn begin_turn(&mut self, injection: Injection, trigger: &ToolName) -> Vec<Event> {
        let folded = self.fold(&injection.fold);
        folded.into_iter().chain(self.apply(injection, trigger)).collect()
    }

    /// Updates the declared definitions from the callable tools. Call it only before the first inference of a turn.
    pub(crate) fn refresh_declared(&mut self) {
        let callable = &self.callable;
        self.declared
            .retain_mut(|tool| match callable.look_up(tool.name.as_str()) {
                ToolLookup::Found(current) => {
                    tool.definition = current.definition;
                    true
                }
                ToolLookup::Removed(_) | ToolLookup::Unknown(_) => false,
            });
    }

    /// Records that a tool is called. A hidden tool is declared again.
    pub(crate) fn mark_called(&mut self, name: &ToolName) -> Vec<Event> {
        self.touch(name);
        let name = std::slice::from_ref(name);
        let (restored, hidden) = (self.restore(name), self.evict(name));
        restored.into_iter().chain(hidden).collect()
    }

    /// Applies an injection after the result of `trigger`: removals first, then additions. Returns the events to emit.
    pub(crate) fn apply(&mut self, injection: Injection, trigger: &ToolName) -> Vec<Event> {
        let removed: Vec<_> = injection.remove.iter().filter_map(|id| self.remove(id)).collect();
        let added = self.add(injection.add);
        let mut events = Vec::new();
        if !removed.is_empty() {
            events.push(Event::ToolsRemoved {
                trigger: trigger.clone(),
                names: removed,
            });
        }
        events.extend(self.declare_new(&added.new, trigger));
        events.extend(self.recover_rebound(added.rebound, trigger));
        let mut recent = added.new;
        let listed = injection.listed.iter().filter_map(|id| self.callable.by_id(id));
        let listed: Vec<_> = listed.map(|tool| tool.name.clone()).collect();
        events.extend(self.restore(&listed));
        recent.extend(listed);
        for discovery in &injection.discovered {
            self.entities.record(discovery);
            let names = self.names_of(discovery);
            events.push(entity_discovered(discovery, names.clone()));
            events.extend(self.restore(&names));
            recent.extend(names);
        }
        events.extend(injection.rejected.into_iter().map(|rejected| Event::ProviderInvalid {
            kind: rejected.prefix,
            reason: rejected.reason,
        }));
        events.extend(injection.withheld.into_iter().map(|withheld| Event::ToolWithheld {
            trigger: trigger.clone(),
            name: withheld.name,
            reason: withheld.reason,
        }));
        events.extend(self.evict(&recent));
        events.extend(self.warn());
        events
    }

    /// Declares new tools.
    fn declare_new(&mut self, names: &[ToolName], trigger: &ToolName) -> Option<Event> {
        if names.is_empty() {
            return None;
        }
        let prompt_bytes = names.iter().filter_map(|name| self.declare(name)).sum();
        self.record_lineage(names, trigger);
        Some(Event::ToolsInjected {
            trigger: trigger.clone(),
            names: names.to_vec(),
            definitions: self.definitions(names),
            prompt_bytes,
        })
    }

    /// Records that rebound tools have an object again.
    fn recover_rebound(&mut self, names: Vec<ToolName>, trigger: &ToolName) -> Option<Event> {
        if names.is_empty() {
            return None;
        }
        let tools = names.iter().filter_map(|name| self.named(name));
        let ids: Vec<_> = tools.map(|tool| tool.definition.id.clone()).collect();
        for id in &ids {
            self.entities.mark_recovered(id);
        }
        Some(Event::ToolsRebound {
            trigger: trigger.clone(),
            names,
        })
    }

    fn add(&mut self, tools: Vec<Arc<dyn Tool>>) -> Additions {
        let mut additions = Additions::default();
        for tool in tools {
            match self.callable.add(tool) {
                AddOutcome::New(name) => additions.new.push(name),
                AddOutcome::Rebound(name) if additions.new.contains(&name) => {}
                AddOutcome::Rebound(name) => additions.rebound.push(name),
            }
        }
        for name in &additions.new {
            self.touch(name);
        }
        additions
    }

    fn named(&self, name: &ToolName) -> Option<NamedTool> {
        match self.callable.look_up(name.as_str()) {
            ToolLookup::Found(tool) => Some(tool),
            _ => None,
        }
    }

    fn definitions(&self, names: &[ToolName]) -> Vec<ToolDefinition> {
        let tools = names.iter().filter_map(|name| self.named(name));
        tools.map(|tool| ToolDefinition::clone(&tool.definition)).collect()
    }

    fn record_lineage(&mut self, names: &[ToolName], trigger: &ToolName) {
        let id_of = |name: &ToolName| self.named(name).map(|tool| tool.definition.id.clone());
        let Some(parent) = id_of(trigger) else { return };
        let tools: Vec<_> = names.iter().filter_map(id_of).collect();
        for tool in tools {
            self.lineage.record(tool, parent.clone());
        }
    }

    /// Declares a callable tool after the others. Returns the bytes that this adds to the prompt, 0 if it was already
    /// declared, or `None` if the tool does not exist.
    fn declare(&mut self, name: &ToolName) -> Option<u64> {
        let tool = self.named(name)?;
        if self.delivery == Delivery::Gateway && !self.fixed.contains(name) {
            if self.described.contains(name) {
                return Some(0);
            }
            self.described.push(name.clone());
            return u64::try_from(gateway::describe(&tool).len()).ok();
        }
        if self.is_declared(name) {
            return Some(0);
        }
        let definition = tool.definition;
        let schema_bytes = definition.input_schema.to_string().len();
        let bytes = name.as_str().len() + definition.description.len() + schema_bytes;
        self.declared.push(DeclaredTool {
            name: name.clone(),
            definition,
        });
        u64::try_from(bytes).ok()
    }

    fn is_declared(&self, name: &ToolName) -> bool {
        self.declared.iter().any(|tool| tool.name == *name)
    }

    /// Records that a tool was used now.
    pub(crate) fn touch(&mut self, name: &ToolName) {
        self.clock += 1;
        self.last_use.insert(name.clone(), self.clock);
    }

    fn names_of(&self, discovery: &DiscoveredEntity) -> Vec<ToolName> {
        let tools = discovery.tools.iter().filter_map(|id| self.callable.by_id(id));
        tools.map(|tool| tool.name.clone()).collect()
    }
}

fn entity_discovered(discovery: &DiscoveredEntity, tools: Vec<ToolName>) -> Event {
    Event::EntityDiscovered {
        kind: discovery.prefix.clone(),
        id: discovery.key.as_ref().map(|key| key.id.clone()),
        binding: discovery.binding,
        tools,
    }
}

#[cfg(test)]
mod tests;
