//! The roles of a conversation, and their tools. A role is the name of a tool group.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::group::ToolGroups;
use crate::toolbox::Toolbox;
use toolwit_core::{AddOutcome, Caller, Error, Tool, ToolContext, ToolId};

/// The roles whose tools a conversation has. The roles are resolved each time a turn begins, because their tools may
/// come from a source that needs a connection and whose tools may change.
pub(crate) struct Roles {
    groups: Arc<ToolGroups>,
    /// The roles of the conversation, which every turn has.
    conversation_roles: Vec<String>,
    /// The ids of the tools that the conversation's roles had when the last turn began.
    earlier_tools: BTreeSet<ToolId>,
    /// The ids of the tools that the conversation's roles added. A tool of a role that the conversation had from elsewhere is
    /// not among them.
    added_tools: BTreeSet<ToolId>,
    /// The caller for whom the roles were resolved last.
    caller: Option<Caller>,
    /// The ids of the tools that were added only for the current turn.
    turn_tools: Vec<ToolId>,
}

/// The tools of roles that were resolved for a turn.
pub(crate) struct ResolvedRoles {
    /// The tools of the conversation's roles.
    conversation_tools: Vec<Arc<dyn Tool>>,
    /// The tools of the turn's roles, which are removed when the next turn begins.
    turn_tools: Vec<Arc<dyn Tool>>,
}

impl Roles {
    /// Creates the roles of a conversation. Checks that the roles exist, without contacting a source.
    ///
    /// # Errors
    /// As [`ToolGroups::check`].
    pub(crate) fn new(groups: Arc<ToolGroups>, roles: Vec<String>) -> Result<Self, Error> {
        roles.iter().try_for_each(|role| groups.check(role))?;
        Ok(Self {
            groups,
            conversation_roles: roles,
            earlier_tools: BTreeSet::new(),
            added_tools: BTreeSet::new(),
            caller: None,
            turn_tools: Vec::new(),
        })
    }

    /// Resolves the roles of the conversation, and those of a turn.
    ///
    /// # Errors
    /// As [`ToolGroups::resolve`].
    pub(crate) async fn resolve(&self, turn_roles: &[String], context: &ToolContext) -> Result<ResolvedRoles, Error> {
        let conversation_roles = self.conversation_roles.iter().map(String::as_str);
        let turn_roles = turn_roles.iter().map(String::as_str);
        Ok(ResolvedRoles {
            conversation_tools: self.groups.tools(conversation_roles, context).await?,
            turn_tools: self.groups.tools(turn_roles, context).await?,
        })
    }

    /// Removes the tools that were added only for the previous turn, and adds the tools of resolved roles. A tool that
    /// the conversation's roles had in the previous turn is not added again, because the conversation may have removed it
    /// since.
    ///
    /// If the previous turn had another caller, the tools of the conversation's roles are replaced by those of this caller, and
    /// the tools that this caller does not have leave.
    pub(crate) fn apply(&mut self, resolved: ResolvedRoles, caller: &Caller, toolbox: &mut Toolbox) {
        for id in self.turn_tools.drain(..) {
            toolbox.remove(&id);
        }
        let tools = resolved.conversation_tools;
        let ids: BTreeSet<_> = tools.iter().map(|tool| tool.definition().id.clone()).collect();
        if self
            .caller
            .replace(caller.clone())
            .is_some_and(|earlier| earlier != *caller)
        {
            self.replace_tools(&tools, &ids, toolbox);
        }
        let earlier = std::mem::replace(&mut self.earlier_tools, ids);
        let is_new = |tool: &Arc<dyn Tool>| !earlier.contains(&tool.definition().id);
        self.added_tools
            .extend(add_missing(tools.into_iter().filter(is_new).collect(), toolbox));
        self.turn_tools = add_missing(resolved.turn_tools, toolbox);
    }

    /// Replaces the tools that the conversation's roles added for the earlier caller by those of another caller.
    fn replace_tools(&mut self, tools: &[Arc<dyn Tool>], ids: &BTreeSet<ToolId>, toolbox: &mut Toolbox) {
        let added = std::mem::take(&mut self.added_tools);
        let present = added.into_iter().filter(|id| toolbox.callable().by_id(id).is_some());
        let (kept, gone): (BTreeSet<_>, BTreeSet<_>) = present.partition(|id| ids.contains(id));
        for id in gone {
            toolbox.remove(&id);
        }
        for tool in tools.iter().filter(|tool| kept.contains(&tool.definition().id)) {
            toolbox.add_configured(tool.clone());
        }
        self.added_tools = kept;
    }
}

/// Adds the tools that a conversation neither has nor excludes, and returns their ids.
fn add_missing(tools: Vec<Arc<dyn Tool>>, toolbox: &mut Toolbox) -> Vec<ToolId> {
    let mut added = Vec::new();
    for tool in tools {
        let id = tool.definition().id.clone();
        if toolbox.callable().by_id(&id).is_none() && !matches!(toolbox.add_configured(tool), AddOutcome::Excluded(_)) {
            added.push(id);
        }
    }
    added
}
