//! Applies injections to the tools of a conversation.

use std::sync::Arc;

use indexmap::IndexSet;

use super::Toolbox;
use super::declared_tools::definition_bytes;
use super::gateway::description_line;
use crate::event::Event;
use crate::injection::{DiscoveredEntity, Injection, shared_method_id};
use crate::model::ToolDelivery;
use toolwit_core::{AddOutcome, Decorator, Tool, ToolDefinition, ToolId, ToolLookup, ToolName};

/// The names of the tools that an injection adds, grouped by the [`AddOutcome`].
#[derive(Default)]
struct Additions {
    new: IndexSet<ToolName>,
    /// Tools that existed before, including the redefined tools.
    rebound: Vec<ToolName>,
    redefined: Vec<ToolName>,
    excluded: Vec<ToolName>,
}

impl Toolbox {
    /// Applies an injection that the tool `trigger` caused: removals first, then additions. Returns the events to emit.
    pub(crate) fn apply(&mut self, injection: Injection, trigger: &ToolName) -> Vec<Event> {
        let guards = if injection.discovered.is_empty() {
            Vec::new()
        } else {
            self.guards(trigger)
        };
        let removed: Vec<_> = injection.remove.iter().filter_map(|id| self.remove(id)).collect();
        let additions = self.add(injection.add);
        let mut events = Vec::new();
        if !removed.is_empty() {
            events.push(Event::ToolsRemoved {
                trigger: trigger.clone(),
                names: removed,
            });
        }
        let new: Vec<_> = additions.new.into_iter().collect();
        events.extend(self.declare_new(&new, trigger));
        events.extend(self.recover_rebound(additions.rebound, trigger));
        events.extend(self.redefine(additions.redefined, trigger));
        let mut recent = new;
        recent.push(trigger.clone());
        let listed = injection.listed.iter().filter_map(|id| self.callable.by_id(id));
        let listed: Vec<_> = listed.map(|tool| tool.name.clone()).collect();
        events.extend(self.restore(&listed));
        recent.extend(listed);
        for discovery in &injection.discovered {
            self.attach_guards(&guards, &discovery.tools);
            self.entities.record(discovery);
            self.guard_shared_methods(discovery);
            let names = self.names_of(discovery);
            events.push(discovery_event(discovery, names.clone()));
            events.extend(self.restore(&names));
            recent.extend(names);
        }
        events.extend(injection.rejected.into_iter().map(|rejected| Event::ProviderInvalid {
            kind: rejected.prefix,
            reason: rejected.reason,
        }));
        let excluded = additions.excluded.into_iter();
        let excluded = excluded.map(|name| (name.to_string(), "it was removed from the conversation".to_owned()));
        let withheld = injection
            .withheld
            .into_iter()
            .map(|withheld| (withheld.name, withheld.reason));
        events.extend(excluded.chain(withheld).map(|(name, reason)| Event::ToolWithheld {
            trigger: trigger.clone(),
            name,
            reason,
        }));
        events.extend(self.evict(&recent));
        events.extend(self.warn());
        events
    }

    /// Returns the guards of a tool, even if the tool was removed. The guards also apply to the methods of the entities
    /// that the tool returns.
    pub(crate) fn guards(&self, tool: &ToolName) -> Vec<Arc<dyn Decorator>> {
        match self.callable.look_up(tool.as_str()) {
            ToolLookup::Found(named) => self.callable.guards(&named.definition.id),
            ToolLookup::Removed(id) => self.callable.guards(&id),
            ToolLookup::Unknown(_) => Vec::new(),
        }
    }

    /// Applies guards to methods of entities, now and each time these methods are added again.
    pub(crate) fn attach_guards(&mut self, guards: &[Arc<dyn Decorator>], methods: &[ToolId]) {
        for method in methods.iter().filter(|_| !guards.is_empty()) {
            let callable = Arc::make_mut(&mut self.callable);
            guards.iter().for_each(|guard| callable.attach(method, guard));
        }
    }

    /// Applies the guards of the members' own tools to the shared methods of a group. All members of the group share one
    /// tool per method, so the guards then apply to every member.
    fn guard_shared_methods(&mut self, discovery: &DiscoveredEntity) {
        let Some(addition) = &discovery.group_addition else {
            return;
        };
        for method in &discovery.tools {
            let guards = addition.missing_guards(method, &self.entities, &self.callable);
            self.attach_guards(&guards, &[shared_method_id(method)]);
        }
    }

    /// Adds tools to the callable tools. Returns their names, grouped by the outcome.
    fn add(&mut self, tools: Vec<Arc<dyn Tool>>) -> Additions {
        let mut additions = Additions::default();
        for tool in tools {
            match Arc::make_mut(&mut self.callable).add(tool) {
                AddOutcome::New(name) => drop(additions.new.insert(name)),
                // The injection has this new tool twice.
                AddOutcome::Rebound(name) | AddOutcome::Redefined(name) if additions.new.contains(&name) => {}
                AddOutcome::Rebound(name) => additions.rebound.push(name),
                AddOutcome::Redefined(name) => {
                    additions.rebound.push(name.clone());
                    additions.redefined.push(name);
                }
                AddOutcome::Excluded(name) => additions.excluded.push(name),
                _ => {}
            }
        }
        for name in &additions.new {
            self.touch(name);
        }
        additions
    }

    /// Declares new tools, and records `trigger` as their parent. Returns the event for the tools.
    fn declare_new(&mut self, names: &[ToolName], trigger: &ToolName) -> Option<Event> {
        if names.is_empty() {
            return None;
        }
        let mut prompt_bytes = 0;
        for name in names {
            if self.declare(name) {
                prompt_bytes += self.prompt_bytes(name);
            }
        }
        self.record_lineage(names, trigger);
        Some(Event::ToolsInjected {
            trigger: trigger.clone(),
            names: names.to_vec(),
            definitions: self.definitions(names),
            prompt_bytes,
        })
    }

    /// Removes the marks of lost tools from rebound tools: their objects exist again. Returns the event for the tools.
    fn recover_rebound(&mut self, names: Vec<ToolName>, trigger: &ToolName) -> Option<Event> {
        if names.is_empty() {
            return None;
        }
        let tools = names.iter().filter_map(|name| self.callable_tool(name));
        let ids: Vec<_> = tools.map(|tool| tool.definition.id.clone()).collect();
        for id in &ids {
            self.entities.mark_recovered(id);
        }
        Some(Event::ToolsRebound {
            trigger: trigger.clone(),
            names,
        })
    }

    /// Declares the new definitions of tools from the next request on, and returns the event for the tools. With
    /// [`ToolDelivery::Gateway`], the result describes the new definitions instead.
    fn redefine(&mut self, names: Vec<ToolName>, trigger: &ToolName) -> Option<Event> {
        if names.is_empty() {
            return None;
        }
        names.iter().for_each(|name| self.refresh_definition(name));
        Some(Event::ToolsRedefined {
            trigger: trigger.clone(),
            definitions: self.definitions(&names),
            names,
        })
    }

    /// Replaces the declared definition of a tool by its current definition. With [`ToolDelivery::Gateway`], the declared
    /// definitions do not change within a turn.
    pub(super) fn refresh_definition(&mut self, name: &ToolName) {
        if let Some(tool) = self
            .callable_tool(name)
            .filter(|_| self.delivery != ToolDelivery::Gateway)
        {
            self.declared.redefine(name, tool.definition);
        }
    }

    fn definitions(&self, names: &[ToolName]) -> Vec<ToolDefinition> {
        let tools = names.iter().filter_map(|name| self.callable_tool(name));
        tools.map(|tool| ToolDefinition::clone(&tool.definition)).collect()
    }

    /// Records the tool `trigger` as the parent of new tools.
    pub(super) fn record_lineage(&mut self, names: &[ToolName], trigger: &ToolName) {
        let id_of = |name: &ToolName| self.callable_tool(name).map(|tool| tool.definition.id.clone());
        let Some(parent) = id_of(trigger) else { return };
        let tools: Vec<_> = names.iter().filter_map(id_of).collect();
        let lineage = Arc::make_mut(&mut self.lineage);
        for tool in tools {
            lineage.record(tool, parent.clone());
        }
    }

    /// Returns the number of bytes that a new tool adds to the prompt: the size of its declaration or of its description.
    fn prompt_bytes(&self, name: &ToolName) -> u64 {
        let bytes = self.callable_tool(name).map_or(0, |tool| {
            if self.delivery == ToolDelivery::Gateway && !self.configured.contains(name) {
                return description_line(&tool).len();
            }
            name.as_str().len() + definition_bytes(&tool.definition)
        });
        u64::try_from(bytes).unwrap_or(u64::MAX)
    }

    fn names_of(&self, discovery: &DiscoveredEntity) -> Vec<ToolName> {
        let tools = discovery.tools.iter().filter_map(|id| self.callable.by_id(id));
        tools.map(|tool| tool.name.clone()).collect()
    }
}

fn discovery_event(discovery: &DiscoveredEntity, tools: Vec<ToolName>) -> Event {
    Event::EntityDiscovered {
        kind: discovery.prefix.clone(),
        id: discovery.identity.as_ref().map(|identity| identity.id.clone()),
        binding: discovery.binding,
        tools,
    }
}
