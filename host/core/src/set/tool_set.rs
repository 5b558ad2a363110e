//! The tools of a conversation.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use indexmap::IndexMap;

use crate::{Tool, ToolDefinition, ToolId, ToolName};

/// Minimum Jaro–Winkler similarity (0 to 1) at which a name is suggested for an unknown one.
const SIMILARITY_MIN: f64 = 0.7;

/// A tool of a conversation with its name, which never changes.
#[derive(Clone)]
pub struct NamedTool {
    /// The name that the model sees.
    pub name: ToolName,
    /// The definition that the model received. It does not change when another instance is bound.
    pub definition: Arc<ToolDefinition>,
    /// The tool that runs.
    pub tool: Arc<dyn Tool>,
}

/// The outcome of adding a tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AddOutcome {
    /// The tool was added, or added again after it was removed.
    New(ToolName),
    /// A tool with this id existed. Its name and definition stay, and calls run the new tool.
    Rebound(ToolName),
}

impl AddOutcome {
    /// Returns the name of the tool.
    #[must_use]
    pub fn name(&self) -> &ToolName {
        match self {
            Self::New(name) | Self::Rebound(name) => name,
        }
    }
}

/// The outcome of looking up a name.
#[derive(Clone)]
pub enum ToolLookup {
    /// A tool that can be called.
    Found(NamedTool),
    /// The tool was removed from the conversation.
    Removed(ToolId),
    /// The name is unknown. These are the most similar names, best first.
    Unknown(Vec<ToolName>),
}

/// The tools of one conversation in insertion order, each with a unique name.
///
/// A tool gets its name when it is first added: the first of its candidate names that is free, otherwise one with a hash of its
/// id. The name stays reserved for this id for the rest of the conversation, also after the tool is removed, so that names in the
/// history remain unambiguous.
#[derive(Clone, Default)]
pub struct ToolSet {
    tools: IndexMap<ToolName, NamedTool>,
    names: HashMap<ToolId, ToolName>,
    owners: HashMap<ToolName, ToolId>,
    reserved: HashSet<ToolName>,
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

    /// Reserves a name for the tool `host#name`.
    pub fn reserve(&mut self, name: ToolName) {
        self.reserved.insert(name);
    }

    /// Adds a tool. If a tool with this id exists, its name and definition stay, and calls run the new tool.
    pub fn add(&mut self, tool: Arc<dyn Tool>) -> AddOutcome {
        let name = self.assign(tool.definition());
        if let Some(present) = self.tools.get_mut(&name) {
            present.tool = tool;
            return AddOutcome::Rebound(name);
        }
        let definition = Arc::new(tool.definition().clone());
        self.tools.insert(
            name.clone(),
            NamedTool {
                name: name.clone(),
                definition,
                tool,
            },
        );
        AddOutcome::New(name)
    }

    /// Restores a tool with the name and definition that it had in an earlier process. Returns `false` and changes nothing if
    /// the name or the id is taken.
    pub fn adopt(&mut self, name: ToolName, definition: ToolDefinition, tool: Arc<dyn Tool>) -> bool {
        let id = definition.id.clone();
        let is_name_taken = self.owners.get(&name).is_some_and(|owner| *owner != id);
        let has_other_name = self.names.get(&id).is_some_and(|own| *own != name);
        if is_name_taken || has_other_name || self.tools.contains_key(&name) {
            return false;
        }
        self.names.insert(id.clone(), name.clone());
        self.owners.insert(name.clone(), id);
        let definition = Arc::new(definition);
        let named = NamedTool {
            name: name.clone(),
            definition,
            tool,
        };
        self.tools.insert(name, named);
        true
    }

    /// Removes a tool and returns its name, which stays reserved.
    pub fn remove(&mut self, id: &ToolId) -> Option<ToolName> {
        let name = self.names.get(id)?;
        self.tools.shift_remove(name).map(|tool| tool.name)
    }

    /// Looks up a name.
    #[must_use]
    pub fn look_up(&self, name: &str) -> ToolLookup {
        let Some(parsed) = ToolName::parse(name) else {
            return ToolLookup::Unknown(self.nearest(name));
        };
        match (self.tools.get(&parsed), self.owners.get(&parsed)) {
            (Some(tool), _) => ToolLookup::Found(tool.clone()),
            (None, Some(id)) => ToolLookup::Removed(id.clone()),
            (None, None) => ToolLookup::Unknown(self.nearest(name)),
        }
    }

    /// Returns whether a tool with this id was added before. It may have been removed since.
    #[must_use]
    pub fn was_added(&self, id: &ToolId) -> bool {
        self.names.contains_key(id)
    }

    /// Returns the tool with this id.
    #[must_use]
    pub fn by_id(&self, id: &ToolId) -> Option<&NamedTool> {
        self.tools.get(self.names.get(id)?)
    }

    /// Returns the tools in insertion order.
    pub fn iter(&self) -> impl Iterator<Item = &NamedTool> {
        self.tools.values()
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

    /// Returns the most similar names, at most three, best first.
    #[must_use]
    pub fn nearest(&self, name: &str) -> Vec<ToolName> {
        let shortened: String = name.chars().take(crate::NAME_BYTES_MAX * 2).collect();
        let mut scored: Vec<_> = self
            .tools
            .keys()
            .map(|known| (strsim::jaro_winkler(&shortened, known.as_str()), known))
            .filter(|(score, _)| *score >= SIMILARITY_MIN)
            .collect();
        scored.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(b.1)));
        scored.into_iter().take(3).map(|(_, name)| name.clone()).collect()
    }

    /// Returns the name of a tool, and assigns one on first use.
    fn assign(&mut self, definition: &ToolDefinition) -> ToolName {
        if let Some(name) = self.names.get(&definition.id) {
            return name.clone();
        }
        let id = &definition.id;
        let name = definition
            .names
            .iter()
            .filter_map(|candidate| ToolName::sanitised(candidate))
            .find(|candidate| self.is_free(candidate, id))
            .unwrap_or_else(|| self.hashed(definition));
        self.names.insert(id.clone(), name.clone());
        self.owners.insert(name.clone(), id.clone());
        name
    }

    fn is_free(&self, name: &ToolName, id: &ToolId) -> bool {
        let reserved = self.reserved.contains(name) && *id != ToolId::host(name.as_str());
        !reserved && !self.owners.contains_key(name)
    }

    /// Returns a name with a hash of the id. Hashes again in the unlikely case that this name is taken.
    fn hashed(&self, definition: &ToolDefinition) -> ToolName {
        let mut identity = definition.id.as_str().to_owned();
        loop {
            let name = ToolName::hashed(definition.name(), &identity);
            if self.is_free(&name, &definition.id) {
                return name;
            }
            identity.push('+');
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{NativeTool, ToolResult};

    fn tool(id: &str, names: &[&str]) -> Arc<dyn Tool> {
        let mut definition = ToolDefinition::new(
            ToolId::native(id),
            names[0],
            "returns its id",
            json!({"type": "object"}),
        );
        for name in &names[1..] {
            definition = definition.with_fallback_name(*name);
        }
        let answer = id.to_owned();
        Arc::new(
            NativeTool::from_definition(definition, move |_, _| {
                let answer = answer.clone();
                async move { Ok(ToolResult::text(answer)) }
            })
            .unwrap(),
        )
    }

    // attack: A11, attack: A12, accept: 113
    #[test]
    fn tools_with_the_same_name_get_distinct_names() {
        let mut set = ToolSet::new();
        let first = set.add(tool("a-b", &["a-b", "calc_a-b"]));
        let second = set.add(tool("other", &["a-b", "calc_a-b"]));
        let third = set.add(tool("third", &["a-b", "calc_a-b"]));
        assert_eq!(first.name().as_str(), "a-b");
        assert_eq!(second.name().as_str(), "calc_a-b");
        assert_eq!(
            third.name().as_str(),
            format!("a-b_{}", crate::text::short_hash("native#third"))
        );
        assert_eq!(set.len(), 3);
    }

    #[test]
    fn name_stays_reserved_after_removal() {
        let mut set = ToolSet::new();
        set.add(tool("x", &["look"]));
        set.remove(&ToolId::native("x"));
        assert!(matches!(set.look_up("look"), ToolLookup::Removed(_)));
        assert_ne!(set.add(tool("y", &["look"])).name().as_str(), "look");
        assert_eq!(
            set.add(tool("x", &["look"])),
            AddOutcome::New(ToolName::parse("look").unwrap())
        );
    }

    // accept: 114
    #[test]
    fn reserved_name_is_assigned_to_the_host_only() {
        let mut set = ToolSet::new();
        set.reserve(ToolName::parse("search_tools").unwrap());
        assert_ne!(
            set.add(tool("plugin", &["search_tools"])).name().as_str(),
            "search_tools"
        );
    }

    // accept: 8, attack: E7
    #[test]
    fn unknown_name_returns_similar_ones() {
        let mut set = ToolSet::new();
        set.add(tool("a", &["search_customer"]));
        set.add(tool("b", &["evaluate"]));
        let ToolLookup::Unknown(nearest) = set.look_up("serch_customers") else {
            panic!("an unknown name was found")
        };
        assert_eq!(
            nearest.iter().map(ToolName::as_str).collect::<Vec<_>>(),
            ["search_customer"]
        );
        for name in ["", &"x".repeat(65), "é", "a\nb"] {
            assert!(matches!(set.look_up(name), ToolLookup::Unknown(_)), "{name:?}");
        }
    }
}
