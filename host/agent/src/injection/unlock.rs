//! Conditions that unlock tools.

use std::sync::Arc;

use super::view::ConversationView;
use toolwit_core::{Artifact, ToolName};

type Predicate = dyn Fn(&ConversationView<'_>) -> bool + Send + Sync;

/// A condition on what has happened in a conversation.
///
/// Tools are named as the model calls them, or by their ids; a call counts when it succeeded.
#[derive(Clone)]
pub struct Unlock(Condition);

#[derive(Clone)]
enum Condition {
    Called(String),
    Artifact(String),
    Blackboard(String),
    When { what: String, holds: Arc<Predicate> },
    All(Vec<Condition>),
    Any(Vec<Condition>),
}

impl Unlock {
    /// Holds once the tool was called.
    #[must_use]
    pub fn by(tool: impl Into<String>) -> Self {
        Self(Condition::Called(tool.into()))
    }

    /// Holds once each of the tools was called.
    #[must_use]
    pub fn by_all<T: Into<String>>(tools: impl IntoIterator<Item = T>) -> Self {
        Self(Condition::All(called(tools)))
    }

    /// Holds once any of the tools was called.
    #[must_use]
    pub fn by_any<T: Into<String>>(tools: impl IntoIterator<Item = T>) -> Self {
        Self(Condition::Any(called(tools)))
    }

    /// Holds once a call of this conversation handed over an artifact of the type, named in full or simply.
    #[must_use]
    pub fn by_artifact(kind: impl Into<String>) -> Self {
        Self(Condition::Artifact(kind.into()))
    }

    /// Holds while an object of the type, named in full or simply, lies on the blackboard, whoever put it there.
    #[must_use]
    pub fn by_blackboard(kind: impl Into<String>) -> Self {
        Self(Condition::Blackboard(kind.into()))
    }

    /// Holds while a function of the conversation says so; `what` tells the model what it waits for. The function should look
    /// at nothing else, so that the same conversation always unlocks the same tools.
    #[must_use]
    pub fn when(
        what: impl Into<String>,
        holds: impl Fn(&ConversationView<'_>) -> bool + Send + Sync + 'static,
    ) -> Self {
        Self(Condition::When {
            what: what.into(),
            holds: Arc::new(holds),
        })
    }

    /// Holds when both hold.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self(Condition::All(vec![self.0, other.0]))
    }

    /// Holds when either holds.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self(Condition::Any(vec![self.0, other.0]))
    }

    /// Says what is missing, in words for the model; `None` when the condition holds.
    #[must_use]
    pub fn missing(&self, view: &ConversationView<'_>) -> Option<String> {
        self.0.missing(view)
    }
}

fn called<T: Into<String>>(tools: impl IntoIterator<Item = T>) -> Vec<Condition> {
    tools.into_iter().map(|tool| Condition::Called(tool.into())).collect()
}

impl Condition {
    fn missing(&self, view: &ConversationView<'_>) -> Option<String> {
        match self {
            Self::All(parts) => {
                let missing: Vec<_> = parts.iter().filter_map(|part| part.missing(view)).collect();
                (!missing.is_empty()).then(|| missing.join(", and "))
            }
            Self::Any(parts) => {
                let missing: Option<Vec<_>> = parts.iter().map(|part| part.missing(view)).collect();
                missing.map(|missing| missing.join(", or "))
            }
            _ if self.holds(view) => None,
            Self::Called(tool) => Some(format!("call `{}` first", name_of(tool, view))),
            Self::Artifact(kind) => Some(format!("a tool must hand over a `{kind}` first")),
            Self::Blackboard(kind) => Some(format!("there must be a `{kind}` on the blackboard first")),
            Self::When { what, .. } => Some(what.clone()),
        }
    }

    fn holds(&self, view: &ConversationView<'_>) -> bool {
        match self {
            Self::All(parts) => parts.iter().all(|part| part.holds(view)),
            Self::Any(parts) => parts.iter().any(|part| part.holds(view)),
            Self::Called(tool) => {
                let is_it = |name: &ToolName, id: &str| name.as_str() == tool || id == tool;
                let mut succeeded = view.calls().succeeded();
                succeeded.any(|call| is_it(&call.name, call.tool.as_str()))
            }
            Self::Artifact(kind) => {
                let mut kinds = view.calls().succeeded().flat_map(|call| &call.artifacts);
                kinds.any(|of| Artifact::new(of, serde_json::Value::Null).is_a(kind))
            }
            Self::Blackboard(kind) => view.context().blackboard().is_ok_and(|board| board.count(kind) > 0),
            Self::When { holds, .. } => holds(view),
        }
    }
}

/// The name by which the model knows a tool, which may be named by its id.
fn name_of<'t>(tool: &'t str, view: &ConversationView<'t>) -> &'t str {
    let named = view.tools().iter().find(|named| named.definition.id.as_str() == tool);
    named.map_or(tool, |named| named.name.as_str())
}
