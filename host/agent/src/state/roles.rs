//! The roles of a conversation, and their tools.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::group::ToolGroups;
use crate::toolbox::Toolbox;
use toolwit_core::{AddOutcome, Error, Tool, ToolContext, ToolId};

/// The roles whose tools a conversation has. They are resolved when a turn begins, because sources may need a connection, and may have
/// further tools by then.
pub(crate) struct Roles {
    groups: Arc<ToolGroups>,
    /// The roles of the conversation.
    lasting: Vec<String>,
    /// The tools of these roles when the last turn began.
    known: BTreeSet<ToolId>,
    /// The tools that were added for the roles of the current turn.
    of_turn: Vec<ToolId>,
}

/// The tools of roles that were resolved for a turn.
pub(crate) struct ResolvedRoles {
    /// The tools that stay.
    lasting: Vec<Arc<dyn Tool>>,
    of_turn: Vec<Arc<dyn Tool>>,
}

impl Roles {
    /// Checks the roles of a conversation, without contacting a source.
    ///
    /// # Errors
    /// As [`ToolGroups::check`].
    pub(crate) fn new(groups: Arc<ToolGroups>, roles: Vec<String>) -> Result<Self, Error> {
        roles.iter().try_for_each(|role| groups.check(role))?;
        Ok(Self {
            groups,
            lasting: roles,
            known: BTreeSet::new(),
            of_turn: Vec::new(),
        })
    }

    /// Resolves the roles of the conversation, and those of a turn.
    ///
    /// # Errors
    /// As [`ToolGroups::resolve`].
    pub(crate) async fn resolve(&self, of_turn: &[String], context: &ToolContext) -> Result<ResolvedRoles, Error> {
        let lasting = self.lasting.iter().map(String::as_str);
        let of_turn = of_turn.iter().map(String::as_str);
        Ok(ResolvedRoles {
            lasting: self.groups.tools(lasting, context).await?,
            of_turn: self.groups.tools(of_turn, context).await?,
        })
    }

    /// Adds the tools of roles, and removes those of the previous turn. A tool of the conversation's roles is added only once, so
    /// that it stays removed if it is removed later.
    pub(crate) fn apply(&mut self, resolved: ResolvedRoles, toolbox: &mut Toolbox) {
        for id in self.of_turn.drain(..) {
            toolbox.remove(&id);
        }
        let ids = resolved.lasting.iter().map(|tool| tool.definition().id.clone());
        let known = std::mem::replace(&mut self.known, ids.collect());
        let is_new = |tool: &Arc<dyn Tool>| !known.contains(&tool.definition().id);
        add_missing(resolved.lasting.into_iter().filter(is_new).collect(), toolbox);
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
