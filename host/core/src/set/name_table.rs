//! The names of the tools of a set.

use std::collections::{HashMap, HashSet};

use crate::{ToolDefinition, ToolId, ToolName};

/// The names that were assigned to tools. An assigned name belongs to the id of its tool, even after the tool is removed.
#[derive(Clone, Default)]
pub(super) struct NameTable {
    names: HashMap<ToolId, ToolName>,
    owners: HashMap<ToolName, ToolId>,
    /// The names that [`assign`](Self::assign) gives only to tools of the host.
    reserved: HashSet<ToolName>,
}

impl NameTable {
    /// Reserves a name: from now on, [`assign`](Self::assign) gives it only to the tool `host#name`.
    pub(super) fn reserve(&mut self, name: ToolName) {
        self.reserved.insert(name);
    }

    /// Returns the name that was assigned to an id.
    pub(super) fn name_of(&self, id: &ToolId) -> Option<&ToolName> {
        self.names.get(id)
    }

    /// Returns the table's own copy of an id, if a name was assigned to the id.
    pub(super) fn stored_id(&self, id: &ToolId) -> Option<&ToolId> {
        self.names.get_key_value(id).map(|(id, _)| id)
    }

    /// Returns the id to which a name was assigned, even if the tool with this id was removed.
    pub(super) fn owner_of(&self, name: &ToolName) -> Option<&ToolId> {
        self.owners.get(name)
    }

    /// Returns the name of a tool. Assigns a name if the tool has none.
    pub(super) fn assign(&mut self, definition: &ToolDefinition) -> ToolName {
        let name = self.choose(definition, &HashSet::new());
        self.claim(name.clone(), definition.id.clone());
        name
    }

    /// Assigns a name to an id. Returns `false` if the name belongs to another id, or the id has another name.
    pub(super) fn claim(&mut self, name: ToolName, id: ToolId) -> bool {
        let is_taken = self.owners.get(&name).is_some_and(|owner| *owner != id);
        let has_other_name = self.names.get(&id).is_some_and(|assigned| *assigned != name);
        if is_taken || has_other_name {
            return false;
        }
        self.names.insert(id.clone(), name.clone());
        self.owners.insert(name, id);
        true
    }

    /// Returns the name that a tool has, or that it would get if the names in `taken` were assigned to other tools.
    pub(super) fn choose(&self, definition: &ToolDefinition, taken: &HashSet<ToolName>) -> ToolName {
        let id = &definition.id;
        if let Some(name) = self.names.get(id) {
            return name.clone();
        }
        let is_free = |name: &ToolName| {
            let is_reserved_for_host = self.reserved.contains(name) && *id != ToolId::host(name.as_str());
            !is_reserved_for_host && !self.owners.contains_key(name) && !taken.contains(name)
        };
        let mut candidates = definition.names.iter().filter_map(|name| ToolName::sanitised(name));
        candidates
            .find(is_free)
            .unwrap_or_else(|| hashed_name(definition, is_free))
    }
}

/// Returns a free name with a hash of the id. If the first such name is taken, which is unlikely, hashes a longer text.
fn hashed_name(definition: &ToolDefinition, is_free: impl Fn(&ToolName) -> bool) -> ToolName {
    let mut identity = definition.id.as_str().to_owned();
    loop {
        let name = ToolName::hashed(definition.name(), &identity);
        if is_free(&name) {
            return name;
        }
        identity.push('+');
    }
}
