//! Selection of tools by their identity.

use std::collections::HashMap;
use std::sync::Arc;

use crate::{Tool, ToolId, ToolName, decorator_chain};

/// Selects tools of a conversation by name or id, however the tools enter the conversation.
///
/// A text with a `#` is an id; any other text is a name. A selector selects a tool if its text is the name of the tool in the
/// conversation, or the id or the preferred name of a layer of the tool's [decorator chain](decorator_chain). For example, the
/// facade `db` reveals the tool `native#query` as `native#db/query`, whose chain has the layer `native#query`. So
/// `native#query` selects both. The id of a method selects this method of every entity of its type.
///
/// ```
/// use toolwit_core::ToolSelector;
///
/// let by_name = ToolSelector::from("send_mail");
/// let method = ToolSelector::later("crm/shop:crm/customers#[method]customer.delete");
/// assert!(method.is_late() && !by_name.is_late());
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ToolSelector {
    /// `None` selects all tools.
    text: Option<String>,
    is_late: bool,
}

impl ToolSelector {
    /// Selects every tool.
    #[must_use]
    pub fn all() -> Self {
        Self {
            text: None,
            is_late: false,
        }
    }

    /// Selects a tool that may not be known when the conversation is built: a method of an entity, a tool that a facade creates
    /// from its arguments, or a tool that a search finds by name.
    #[must_use]
    pub fn later(tool: impl Into<String>) -> Self {
        Self {
            text: Some(tool.into()),
            is_late: true,
        }
    }

    /// Returns whether the tool may first appear during the conversation.
    #[must_use]
    pub fn is_late(&self) -> bool {
        self.is_late
    }

    /// Returns the name or id; `None` if the selector selects every tool.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        self.text.as_deref()
    }

    /// Returns whether the selector selects a tool. `name` is the name of the tool in the conversation, if it has one.
    #[must_use]
    pub fn selects(&self, tool: &Arc<dyn Tool>, name: Option<&ToolName>) -> bool {
        self.key().is_none_or(|key| keys(tool, name).contains(&key))
    }

    /// Returns the text that must be among the keys of a selected tool; `None` if every tool is selected.
    fn key(&self) -> Option<String> {
        let text = self.text.as_ref()?;
        Some(if text.contains('#') {
            ToolId::from_text(text).unbound().as_str().to_owned()
        } else {
            text.clone()
        })
    }
}

impl From<&str> for ToolSelector {
    fn from(tool: &str) -> Self {
        Self::from(tool.to_owned())
    }
}

impl From<String> for ToolSelector {
    fn from(tool: String) -> Self {
        Self {
            text: Some(tool),
            is_late: false,
        }
    }
}

impl From<&ToolId> for ToolSelector {
    fn from(tool: &ToolId) -> Self {
        Self::from(tool.as_str())
    }
}

impl From<ToolId> for ToolSelector {
    fn from(tool: ToolId) -> Self {
        Self::from(&tool)
    }
}

/// Returns the texts that select a tool: its names, and its ids without an entity.
fn keys(tool: &Arc<dyn Tool>, name: Option<&ToolName>) -> Vec<String> {
    let mut keys: Vec<_> = name.map(ToString::to_string).into_iter().collect();
    for layer in decorator_chain(tool) {
        let definition = layer.definition();
        keys.push(definition.id.unbound().as_str().to_owned());
        keys.push(definition.name().to_owned());
    }
    keys
}

/// Returns the ids of all layers of a tool's decorator chain. For a method that is bound to an entity, the id of the
/// unbound method is included too.
#[must_use]
pub fn tool_identities(tool: &Arc<dyn Tool>) -> Vec<ToolId> {
    let mut identities = Vec::new();
    for layer in decorator_chain(tool) {
        let id = &layer.definition().id;
        for id in [id.clone(), id.unbound()] {
            if !identities.contains(&id) {
                identities.push(id);
            }
        }
    }
    identities
}

/// Values by selector. The time of a lookup does not depend on the number of selectors.
#[derive(Clone, Debug)]
pub struct SelectorMap<T> {
    values: Vec<T>,
    /// Positions of the values, by the text that selects them; `None` selects every tool.
    positions: HashMap<Option<String>, Vec<usize>>,
}

impl<T> Default for SelectorMap<T> {
    fn default() -> Self {
        Self {
            values: Vec::new(),
            positions: HashMap::new(),
        }
    }
}

impl<T> SelectorMap<T> {
    /// Adds a value for the selected tools.
    pub fn insert(&mut self, tools: &ToolSelector, value: T) {
        self.positions.entry(tools.key()).or_default().push(self.values.len());
        self.values.push(value);
    }

    /// Returns the values for a tool, in the order of insertion. `name` is the name of the tool in the conversation, if
    /// it has one.
    pub fn get(&self, tool: &Arc<dyn Tool>, name: Option<&ToolName>) -> Vec<&T> {
        if self.values.is_empty() {
            return Vec::new();
        }
        let keys = keys(tool, name).into_iter().map(Some).chain([None]);
        let mut positions: Vec<_> = keys.filter_map(|key| self.positions.get(&key)).flatten().collect();
        positions.sort_unstable();
        positions.dedup();
        positions.into_iter().map(|&position| &self.values[position]).collect()
    }

    /// Returns whether there are no values.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }
}
