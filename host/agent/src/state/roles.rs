//! The roles of a conversation, and their tools.

use std::sync::Arc;

use crate::group::ToolGroups;
use crate::toolbox::Toolbox;
use toolwit_core::{AddOutcome, Error, Tool, ToolContext, ToolId};

/// The roles whose tools a conversation has. They are resolved at the first turn, because sources may need a connection.
pub(crate) struct Roles {
    groups: Arc<ToolGroups>,
    /// The roles of the conversation whose tools it does not have yet.
    pending: Vec<String>,
    /// The tools that were added for the roles of the current turn.
    of_turn: Vec<ToolId>,
}

/// The tools of roles that were resolved for a turn.
pub(crate) struct ResolvedRoles {
    /// The tools that stay, by role.
    lasting: Vec<(String, Vec<Arc<dyn Tool>>)>,
    of_turn: Vec<Arc<dyn Tool>>,
}

impl Roles {
    /// Checks the roles of a conversation. Nothing is contacted.
    ///
    /// # Errors
    /// As [`ToolGroups::check`].
    pub(crate) fn new(groups: Arc<ToolGroups>, roles: Vec<String>) -> Result<Self, Error> {
        roles.iter().try_for_each(|role| groups.check(role))?;
        Ok(Self {
            groups,
            pending: roles,
            of_turn: Vec::new(),
        })
    }

    /// Resolves the pending roles, and those of a turn.
    ///
    /// # Errors
    /// As [`ToolGroups::resolve`].
    pub(crate) async fn resolve(&self, of_turn: &[String], context: &ToolContext) -> Result<ResolvedRoles, Error> {
        let mut lasting = Vec::new();
        for role in &self.pending {
            lasting.push((role.clone(), self.groups.resolve(role, context).await?.tools));
        }
        let of_turn = of_turn.iter().map(String::as_str);
        Ok(ResolvedRoles {
            lasting,
            of_turn: self.groups.tools(of_turn, context).await?,
        })
    }

    /// Adds the tools of roles, and removes those of the previous turn. A role without tools stays pending, because its
    /// source may be reachable in the next turn.
    pub(crate) fn apply(&mut self, resolved: ResolvedRoles, toolbox: &mut Toolbox) {
        for id in self.of_turn.drain(..) {
            toolbox.remove(&id);
        }
        self.pending.clear();
        for (role, tools) in resolved.lasting {
            if tools.is_empty() {
                self.pending.push(role);
            }
            add_missing(tools, toolbox);
        }
        self.of_turn = add_missing(resolved.of_turn, toolbox);
    }
}

/// Adds the tools that a conversation does not have, and returns their ids.
fn add_missing(tools: Vec<Arc<dyn Tool>>, toolbox: &mut Toolbox) -> Vec<ToolId> {
    let mut added = Vec::new();
    for tool in tools {
        let id = tool.definition().id.clone();
        if toolbox.callable().by_id(&id).is_none() && !matches!(toolbox.add_fixed(tool), AddOutcome::Excluded(_)) {
            added.push(id);
        }
    }
    added
}
