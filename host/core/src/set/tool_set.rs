//! The tools of a conversation.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use async_trait::async_trait;

use super::name_table::NameTable;
use super::named_tool::{AddOutcome, NamedTool, ToolLookup};
use super::tool_selector::{SelectorMap, ToolSelector, tool_identities};
use crate::{
    Arguments, DecoratedTool, Decorator, Effect, Error, ErrorKind, Phase, Tool, ToolCaller, ToolContext,
    ToolDefinition, ToolDialect, ToolError, ToolId, ToolName, ToolResult, decorator_chain,
};

/// The minimum Jaro–Winkler similarity (0 to 1) at which a name is suggested for an unknown one.
const SIMILARITY_MIN: f64 = 0.7;

/// The tools of one conversation in insertion order, each with a unique name.
///
/// A tool gets its name when it is first added: the first of its candidate names that is free, otherwise one with a hash of its
/// id. The name belongs to this id for the rest of the conversation, even after the tool is removed, so that names in the
/// history remain unambiguous.
///
/// Decorators and exclusions do not belong to a tool object: they apply to every tool that they select, whenever it is added.
/// If an added tool already has a [guard](Decorator::is_guard), this guard also applies to each later tool with the same id.
#[derive(Clone, Default)]
pub struct ToolSet {
    /// The tools by position. Positions are in insertion order, and have gaps where tools were removed.
    tools: BTreeMap<u64, NamedTool>,
    /// The positions of the tools, by name.
    positions: HashMap<ToolName, u64>,
    next_position: u64,
    names: NameTable,
    /// The ids of tools, by each of their other [identities](tool_identities). The ids of removed tools stay in this map.
    ids_by_identity: HashMap<ToolId, BTreeSet<ToolId>>,
    /// The decorators that [`decorate`](Self::decorate) added.
    decorators: SelectorMap<Arc<dyn Decorator>>,
    /// The decorators of single tools: their guards, and those that [`attach`](Self::attach) added.
    decorators_by_id: HashMap<ToolId, Vec<Arc<dyn Decorator>>>,
    excluded: HashSet<ToolId>,
    /// The positions of exclusive facades.
    exclusive_positions: BTreeSet<u64>,
}

/// Adds each tool in turn.
impl FromIterator<Arc<dyn Tool>> for ToolSet {
    fn from_iter<I: IntoIterator<Item = Arc<dyn Tool>>>(tools: I) -> Self {
        let mut set = Self::new();
        for tool in tools {
            set.add(tool);
        }
        set
    }
}

impl ToolSet {
    /// Creates an empty set.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Reserves a name: from now on, [`add`](Self::add) assigns it only to the tool `host#name`.
    pub fn reserve(&mut self, name: ToolName) {
        self.names.reserve(name);
    }

    /// Adds a tool. If a tool with this id exists, its name and position stay, and calls run the new tool.
    pub fn add(&mut self, tool: Arc<dyn Tool>) -> AddOutcome {
        let name = self.names.assign(tool.definition());
        if self.is_excluded(&tool) {
            return AddOutcome::Excluded(name);
        }
        self.insert_or_replace(name, tool)
    }

    /// Restores a tool under the name that it had in an earlier process. Returns `false` if the tool is excluded, is already in
    /// the set or has another name, or if the name belongs to another tool.
    pub fn adopt(&mut self, name: ToolName, tool: Arc<dyn Tool>) -> bool {
        let is_free = !self.positions.contains_key(&name) && !self.is_excluded(&tool);
        let is_adopted = is_free && self.names.claim(name.clone(), tool.definition().id.clone());
        if is_adopted {
            self.insert_or_replace(name, tool);
        }
        is_adopted
    }

    /// Applies a decorator to the selected tools: to those that are present, and to those that are added later.
    pub fn decorate(&mut self, tools: &ToolSelector, decorator: Arc<dyn Decorator>) {
        for named in self.tools.values_mut() {
            if tools.selects(&named.tool, Some(&named.name)) {
                apply(&mut named.tool, &decorator);
            }
        }
        self.decorators.insert(tools, decorator);
    }

    /// Applies a decorator to the tool with this id, now and whenever it is added again.
    pub fn attach(&mut self, id: &ToolId, decorator: &Arc<dyn Decorator>) {
        let position = self.position(id);
        if let Some(named) = position.and_then(|position| self.tools.get_mut(&position)) {
            apply(&mut named.tool, decorator);
        }
        store_once(&mut self.decorators_by_id, id, decorator);
    }

    /// Returns a tool with the decorators that it would have in the set, under the name that it has or would get.
    #[must_use]
    pub fn decorated(&self, mut tool: Arc<dyn Tool>) -> Arc<dyn Tool> {
        let id = tool.definition().id.clone();
        let name = self.names.choose(tool.definition(), &HashSet::new());
        let by_selector = self.decorators.get(&tool, Some(&name));
        let by_id = |id| self.decorators_by_id.get(id).into_iter().flatten();
        // The guards of a method also apply to the tool that binds the method to an entity.
        let method_id = id.unbound();
        let method_guards = by_id(&method_id).filter(|decorator| decorator.is_guard());
        for decorator in by_selector.into_iter().chain(by_id(&id)).chain(method_guards) {
            apply(&mut tool, decorator);
        }
        tool
    }

    /// Returns the guards of a tool, the innermost first. The guards of a removed tool are kept, because they also apply to the
    /// entities in a result that arrives after the removal.
    #[must_use]
    pub fn guards(&self, id: &ToolId) -> Vec<Arc<dyn Decorator>> {
        match self.by_id(id) {
            Some(named) => guards_of(&named.tool),
            None => {
                let decorators = self.decorators_by_id.get(id).into_iter().flatten();
                decorators.filter(|decorator| decorator.is_guard()).cloned().collect()
            }
        }
    }

    /// Removes a tool. Returns its name, which still belongs to the id, or `None` if the set has no tool with this id.
    pub fn remove(&mut self, id: &ToolId) -> Option<ToolName> {
        let name = self.names.name_of(id)?;
        let position = self.positions.remove(name)?;
        self.exclusive_positions.remove(&position);
        let removed = self.tools.remove(&position)?;
        for guard in guards_of(&removed.tool) {
            store_once(&mut self.decorators_by_id, id, &guard);
        }
        Some(removed.name)
    }

    /// Removes the tools that have this id among their [identities](tool_identities). No tool with this identity can be added
    /// until the id is [admitted](Self::admit). Returns the names of the removed tools.
    pub fn exclude(&mut self, id: &ToolId) -> Vec<ToolName> {
        self.excluded.insert(id.clone());
        let other_ids: Vec<_> = self.ids_by_identity.get(id).into_iter().flatten().cloned().collect();
        let mut names: Vec<_> = [id]
            .into_iter()
            .chain(&other_ids)
            .filter_map(|id| self.remove(id))
            .collect();
        names.sort();
        names
    }

    /// Ends the exclusion of an id. Returns whether it was excluded.
    pub fn admit(&mut self, id: &ToolId) -> bool {
        self.excluded.remove(id)
    }

    /// Returns the ids that are [excluded](Self::exclude).
    pub fn excluded(&self) -> impl Iterator<Item = &ToolId> {
        self.excluded.iter()
    }

    /// Returns whether a tool cannot be added because it is [excluded](Self::exclude).
    #[must_use]
    pub fn is_excluded(&self, tool: &Arc<dyn Tool>) -> bool {
        !self.excluded.is_empty() && tool_identities(tool).iter().any(|id| self.excluded.contains(id))
    }

    /// Looks up a name.
    #[must_use]
    pub fn look_up(&self, name: &str) -> ToolLookup {
        let Some(parsed) = ToolName::parse(name) else {
            return ToolLookup::Unknown(self.nearest(name));
        };
        let position = self.positions.get(&parsed);
        let present_tool = position.and_then(|position| self.tools.get(position));
        match (present_tool, self.names.owner_of(&parsed)) {
            (Some(tool), _) => ToolLookup::Found(tool.clone()),
            (None, Some(id)) => ToolLookup::Removed(id.clone()),
            (None, None) => ToolLookup::Unknown(self.nearest(name)),
        }
    }

    /// Returns whether a tool with this id has ever been added or is excluded.
    #[must_use]
    pub fn was_added_or_excluded(&self, id: &ToolId) -> bool {
        self.names.name_of(id).is_some() || self.excluded.contains(id)
    }

    /// Returns the tool with this id, if the set has it.
    #[must_use]
    pub fn by_id(&self, id: &ToolId) -> Option<&NamedTool> {
        self.tools.get(&self.position(id)?)
    }

    /// Returns the ids of the tools, present or removed, that have this id among their [identities](tool_identities): the id
    /// itself, and the ids of tools that decorate or bind the tool with this id.
    pub fn ids_with_identity(&self, id: &ToolId) -> impl Iterator<Item = &ToolId> {
        let exact_id = self.names.stored_id(id).into_iter();
        exact_id.chain(self.ids_by_identity.get(id).into_iter().flatten())
    }

    /// Returns the names that tools have, or would get if they were added in this order.
    #[must_use]
    pub fn names_after_adding(&self, tools: &[Arc<dyn Tool>]) -> Vec<ToolName> {
        let mut taken = HashSet::new();
        let mut names = Vec::with_capacity(tools.len());
        for tool in tools {
            let name = self.names.choose(tool.definition(), &taken);
            taken.insert(name.clone());
            names.push(name);
        }
        names
    }

    /// Returns the tools in insertion order.
    pub fn iter(&self) -> impl Iterator<Item = &NamedTool> {
        self.tools.values()
    }

    /// Returns the facades that are [exclusive](crate::ToolFacade::is_exclusive), in insertion order.
    pub fn exclusive_facades(&self) -> impl Iterator<Item = &NamedTool> {
        self.exclusive_positions
            .iter()
            .filter_map(|position| self.tools.get(position))
    }

    /// Returns the number of tools.
    #[must_use]
    pub fn len(&self) -> usize {
        self.tools.len()
    }

    /// Returns whether the set has no tools.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.tools.is_empty()
    }

    /// Returns a summary of each tool: ``- `name` - description``.
    #[must_use]
    pub fn summaries(&self) -> Vec<String> {
        self.iter()
            .map(|tool| format!("- `{}` - {}", tool.name, tool.definition.description))
            .collect()
    }

    /// Returns the definitions of the tools in the format of a provider, in insertion order.
    #[must_use]
    pub fn definitions(&self, dialect: ToolDialect) -> Vec<serde_json::Value> {
        self.iter()
            .map(|tool| dialect.definition(&tool.name, &tool.definition))
            .collect()
    }

    /// Returns the tool names that are most similar to an unknown name: at most three, best first. Returns an empty list if no
    /// name is similar enough.
    #[must_use]
    pub fn nearest(&self, name: &str) -> Vec<ToolName> {
        let shortened: String = name.chars().take(crate::limits::NAME_BYTES_MAX * 2).collect();
        let mut scored: Vec<_> = self
            .iter()
            .map(|tool| (strsim::jaro_winkler(&shortened, tool.name.as_str()), &tool.name))
            .filter(|(score, _)| *score >= SIMILARITY_MIN)
            .collect();
        scored.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(b.1)));
        scored.into_iter().take(3).map(|(_, name)| name.clone()).collect()
    }

    fn position(&self, id: &ToolId) -> Option<u64> {
        self.positions.get(self.names.name_of(id)?).copied()
    }

    /// Adds or replaces a tool under its name, with the decorators that apply to it.
    fn insert_or_replace(&mut self, name: ToolName, tool: Arc<dyn Tool>) -> AddOutcome {
        let id = tool.definition().id.clone();
        for identity in tool_identities(&tool).into_iter().filter(|identity| *identity != id) {
            self.ids_by_identity.entry(identity).or_default().insert(id.clone());
        }
        for guard in guards_of(&tool) {
            store_once(&mut self.decorators_by_id, &id, &guard);
        }
        let tool = self.decorated(tool);
        let position = *self.positions.entry(name.clone()).or_insert(self.next_position);
        if tool.facade().is_some_and(|facade| facade.is_exclusive()) {
            self.exclusive_positions.insert(position);
        } else {
            self.exclusive_positions.remove(&position);
        }
        let Some(existing) = self.tools.get_mut(&position) else {
            self.next_position += 1;
            let definition = Arc::new(tool.definition().clone());
            self.tools.insert(
                position,
                NamedTool {
                    name: name.clone(),
                    definition,
                    tool,
                },
            );
            return AddOutcome::New(name);
        };
        existing.tool = tool;
        if have_same_interface(&existing.definition, existing.tool.definition()) {
            return AddOutcome::Rebound(name);
        }
        existing.definition = Arc::new(existing.tool.definition().clone());
        AddOutcome::Redefined(name)
    }
}

/// Returns the guards in the decorator chain of a tool, the innermost first.
fn guards_of(tool: &Arc<dyn Tool>) -> Vec<Arc<dyn Decorator>> {
    let decorators = decorator_chain(tool).filter_map(|layer| layer.decorator());
    let mut guards: Vec<_> = decorators.filter(|decorator| decorator.is_guard()).cloned().collect();
    guards.reverse();
    guards
}

/// Adds a decorator to the stored decorators of the tool with this id, unless it is already among them.
fn store_once(stored: &mut HashMap<ToolId, Vec<Arc<dyn Decorator>>>, id: &ToolId, decorator: &Arc<dyn Decorator>) {
    let decorators = stored.entry(id.clone()).or_default();
    if !decorators.iter().any(|other| Arc::ptr_eq(other, decorator)) {
        decorators.push(decorator.clone());
    }
}

/// Applies a decorator to a tool, unless the tool already has this decorator.
pub(super) fn apply(tool: &mut Arc<dyn Tool>, decorator: &Arc<dyn Decorator>) {
    let has_decorator =
        |layer: &Arc<dyn Tool>| layer.decorator().is_some_and(|applied| Arc::ptr_eq(applied, decorator));
    if !decorator_chain(tool).any(has_decorator) {
        *tool = Arc::new(DecoratedTool::new(tool.clone(), decorator.clone()));
    }
}

/// Returns whether two definitions of a tool have the same description and schemas.
fn have_same_interface(a: &ToolDefinition, b: &ToolDefinition) -> bool {
    a.description == b.description && a.input_schema == b.input_schema && a.output_schema == b.output_schema
}

/// Calls tools by their ids. The names in the conversation have no effect.
#[async_trait]
impl ToolCaller for ToolSet {
    async fn call_tool(&self, id: &str, arguments: Arguments, context: &ToolContext) -> Result<ToolResult, ToolError> {
        let Some(named) = self.by_id(&ToolId::from_text(id)) else {
            let message = format!("there is no tool `{}`", id.chars().take(200).collect::<String>());
            return Err(ToolError::Model(Error::new(
                ErrorKind::UnknownTool,
                Phase::Validate,
                message,
            )));
        };
        named.tool.call(arguments, context).await
    }

    async fn effect_of(&self, id: &str, context: &ToolContext) -> Option<Effect> {
        let named = self.by_id(&ToolId::from_text(id))?;
        Some(named.tool.access(&Arguments::new(), context).await.effect)
    }
}

#[cfg(test)]
mod tests;
