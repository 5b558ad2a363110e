//! The calls that the calls of a run make, themselves or through calls of their own.

use serde::{Deserialize, Serialize};

use crate::event::{Event, RecordedStart, TraceEntry};
use toolwit_core::{Arguments, Effect, EffectClass, ToolId};

/// A call that began inside an [unresolved call](super::UnresolvedCall): a tool, or an agent that a tool runs, made it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ChildCall {
    /// The id of the call.
    pub id: String,
    /// The id of the call that made it: of the unresolved call, or of another one of its children.
    pub parent: String,
    /// The id of the tool.
    pub tool: ToolId,
    /// The arguments, without secrets.
    pub arguments: Arguments,
    /// The effect class at the start of the call; `None` if an earlier version recorded the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effect: Option<Effect>,
    /// The rules of the grant that the call could use.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub grant: Vec<String>,
    /// Whether the call failed; `None` if the call did not end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_error: Option<bool>,
}

impl ChildCall {
    fn new((id, parent): (String, String), tool: &ToolId, start: Option<&RecordedStart>) -> Self {
        Self {
            id,
            parent,
            tool: tool.clone(),
            arguments: start.map(|start| start.arguments.clone()).unwrap_or_default(),
            effect: start.map(|start| start.effect),
            grant: start.map(|start| start.grant.clone()).unwrap_or_default(),
            is_error: None,
        }
    }

    /// Returns whether the call can have changed something: its class is not `read`, or is not known.
    #[must_use]
    pub fn can_have_effect(&self) -> bool {
        self.effect.is_none_or(|effect| effect.class != EffectClass::Read)
    }

    /// Returns whether the call may be made a second time if the call `root`, in which it began, runs again. It may if it
    /// changes nothing, or if it is idempotent and will have the same key. The calls of an agent have other keys then, because
    /// its model chooses their ids.
    pub(super) fn may_be_repeated(&self, root: &str) -> bool {
        let has_stable_id = || self.id.strip_prefix(root).is_some_and(|rest| rest.starts_with('/'));
        match self.effect.map(|effect| effect.class) {
            Some(EffectClass::Write) => false,
            Some(EffectClass::Idempotent) => has_stable_id(),
            Some(EffectClass::Read) | None => true,
        }
    }
}

/// The calls that the calls of one run have made, in the order of their starts.
#[derive(Default)]
pub(super) struct ChildCalls(Vec<ChildCall>);

impl ChildCalls {
    /// Returns the calls of the last run in these entries. If a call runs again, its earlier children are omitted.
    pub(super) fn of(entries: &[TraceEntry]) -> Self {
        let mut calls = Self::default();
        entries.iter().for_each(|entry| calls.apply(entry));
        calls
    }

    fn apply(&mut self, entry: &TraceEntry) {
        let agent_call = entry.origin.parent_call.as_ref();
        match (&entry.event, agent_call) {
            (Event::TurnStarted { .. }, None) => self.0.clear(),
            (Event::ToolStarted { id, .. }, None) => {
                let earlier = self.descendants(id);
                self.0.retain(|call| !earlier.iter().any(|child| child.id == call.id));
            }
            (Event::ToolStarted { id, tool, start, .. }, Some(parent)) => {
                self.begin(ChildCall::new((id.clone(), parent.clone()), tool, start.as_deref()));
            }
            (Event::ToolReturned { id, outcome }, Some(_)) => self.end(id, outcome.is_error),
            (Event::ToolFinished { id, is_error, .. }, Some(_)) => self.end(id, *is_error),
            (Event::NestedCallStarted(call), _) => {
                self.begin(ChildCall::new(call.ids(), &call.tool, call.start.as_ref()));
            }
            (Event::NestedCallFinished(call), _) => self.end(&call.ids().0, call.is_error),
            _ => {}
        }
    }

    fn begin(&mut self, call: ChildCall) {
        self.0.retain(|earlier| earlier.id != call.id);
        self.0.push(call);
    }

    fn end(&mut self, id: &str, is_error: bool) {
        if let Some(call) = self.0.iter_mut().find(|call| call.id == id) {
            call.is_error = Some(is_error);
        }
    }

    /// Returns the calls that a call made, itself or through its children, in the order of their starts.
    pub(super) fn descendants(&self, id: &str) -> Vec<ChildCall> {
        let mut found: Vec<ChildCall> = Vec::new();
        for call in &self.0 {
            if call.parent == id || found.iter().any(|earlier| earlier.id == call.parent) {
                found.push(call.clone());
            }
        }
        found
    }
}
