//! The live tools of a conversation.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use indexmap::IndexMap;

use crate::{Tool, ToolDefinition, ToolId, ToolName};

/// How similar a name must be to be suggested for an unknown one (Jaro–Winkler, 0 to 1).
const SIMILARITY_MIN: f64 = 0.7;

/// A tool as a conversation knows it: under one name that never changes.
#[derive(Clone)]
pub struct NamedTool {
    /// The name that the model sees.
    pub name: ToolName,
    /// What the model was told; it stays byte for byte when another instance is bound.
    pub definition: Arc<ToolDefinition>,
    /// What runs.
    pub tool: Arc<dyn Tool>,
}

/// What adding a tool did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AddOutcome {
    /// The tool is new, or back, under this name.
    New(ToolName),
    /// The identity was there; the name and the definition stay, the new tool runs from now on.
    Rebound(ToolName),
}

impl AddOutcome {
    /// Returns the tool's name.
    #[must_use]
    pub fn name(&self) -> &ToolName {
        match self {
            Self::New(name) | Self::Rebound(name) => name,
        }
    }
}

/// What a name stands for.
#[derive(Clone)]
pub enum ToolLookup {
    /// A tool that can be called.
    Found(NamedTool),
    /// A tool that was removed from this conversation.
    Removed(ToolId),
    /// Nothing; these names are the nearest, the best one first.
    Unknown(Vec<ToolName>),
}

/// The tools of one conversation, in the order in which they came, each under a name of its own.
///
/// A name is given when a tool is first added: the first of its candidates that is free, else one with a hash of its
/// identity. It belongs to that identity for the rest of the conversation, also after the tool was removed, so that what
/// the history says stays true.
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
    /// Makes an empty set.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Keeps a name from ever being given to a tool, except to `host#name` itself.
    pub fn reserve(&mut self, name: ToolName) {
        self.reserved.insert(name);
    }

    /// Adds a tool. The same identity again keeps name and definition, and runs the new tool from now on.
    pub fn add(&mut self, tool: Arc<dyn Tool>) -> AddOutcome {
        let name = self.assign(tool.definition());
        if let Some(there) = self.tools.get_mut(&name) {
            there.tool = tool;
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

    /// Takes a tool back under the name and with the definition that it had in an earlier process, unless something is there.
    pub fn adopt(&mut self, name: ToolName, definition: ToolDefinition, tool: Arc<dyn Tool>) -> bool {
        let id = definition.id.clone();
        let is_anothers = self.owners.get(&name).is_some_and(|owner| *owner != id);
        let has_another = self.names.get(&id).is_some_and(|own| *own != name);
        if is_anothers || has_another || self.tools.contains_key(&name) {
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

    /// Removes a tool; its name stays its own. Returns the name when the tool was there.
    pub fn remove(&mut self, id: &ToolId) -> Option<ToolName> {
        let name = self.names.get(id)?;
        self.tools.shift_remove(name).map(|tool| tool.name)
    }

    /// Says what a name stands for.
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

    /// Tells whether a tool of this identity is or was there.
    #[must_use]
    pub fn was_ever(&self, id: &ToolId) -> bool {
        self.names.contains_key(id)
    }

    /// Returns the tool with this identity.
    #[must_use]
    pub fn by_id(&self, id: &ToolId) -> Option<&NamedTool> {
        self.tools.get(self.names.get(id)?)
    }

    /// Returns the tools in the order in which they were added.
    pub fn iter(&self) -> impl Iterator<Item = &NamedTool> {
        self.tools.values()
    }

    /// Returns how many tools there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.tools.len()
    }

    /// Tells whether there is no tool.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.tools.is_empty()
    }

    /// Returns a line for each tool: ``- `name` - description``.
    #[must_use]
    pub fn summaries(&self) -> Vec<String> {
        self.iter()
            .map(|tool| format!("- `{}` - {}", tool.name, tool.definition.description))
            .collect()
    }

    /// Returns the names most like this one, at most three, the best one first.
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

    /// Returns the name that belongs to an identity, and gives one when there is none.
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

    /// Makes a name from the hash of the identity; hashes again in the unlikely case that even this one is taken.
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
        let mut definition =
            ToolDefinition::new(ToolId::native(id), names[0], "says its id", json!({"type": "object"}));
        for name in &names[1..] {
            definition = definition.or_named(*name);
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
    fn clashing_tools_get_names_of_their_own() {
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
    fn a_name_stays_with_its_identity_after_removal() {
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
    fn a_reserved_name_is_given_to_the_host_only() {
        let mut set = ToolSet::new();
        set.reserve(ToolName::parse("search_tools").unwrap());
        assert_ne!(
            set.add(tool("plugin", &["search_tools"])).name().as_str(),
            "search_tools"
        );
    }

    // accept: 8, attack: E7
    #[test]
    fn an_unknown_name_brings_the_nearest_ones() {
        let mut set = ToolSet::new();
        set.add(tool("a", &["search_customer"]));
        set.add(tool("b", &["evaluate"]));
        let ToolLookup::Unknown(nearest) = set.look_up("serch_customers") else {
            panic!("it is not there")
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
