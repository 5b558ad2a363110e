//! Conditions that unlock tools.

use std::sync::Arc;

use crate::injection::view::ConversationView;
use toolwit_core::{Artifact, ToolId, ToolSelector};

type Predicate = dyn Fn(&ConversationView<'_>) -> bool + Send + Sync;

/// A condition on a conversation that unlocks a tool.
///
/// A condition refers to a tool by the name under which the model calls it, or by its id. An id also refers to the tool if a
/// facade reveals it or if it has another name. The id of a method, without an entity, refers to this method of every entity.
/// Only successful calls count. Building a conversation fails if a condition refers to a tool that the conversation does not have,
/// unless the reference is [late](ToolSelector::later), for a tool that appears during the conversation.
#[derive(Clone)]
pub struct Unlock(Condition);

#[derive(Clone)]
enum Condition {
    Called(ToolSelector),
    Artifact(String),
    Blackboard(String),
    When { guidance: String, holds: Arc<Predicate> },
    All(Vec<Condition>),
    Any(Vec<Condition>),
}

impl Unlock {
    /// Holds once the tool has been called successfully. With [`ToolSelector::all`], it holds once any tool has been called
    /// successfully.
    #[must_use]
    pub fn by(tool: impl Into<ToolSelector>) -> Self {
        Self(Condition::Called(tool.into()))
    }

    /// Holds once each of the tools has been called successfully.
    #[must_use]
    pub fn by_all<T: Into<ToolSelector>>(tools: impl IntoIterator<Item = T>) -> Self {
        Self(Condition::All(called_conditions(tools)))
    }

    /// Holds once any of the tools has been called successfully. Without tools it never holds, and building a conversation
    /// whose [`Playbook`](super::Playbook) has such a condition fails.
    #[must_use]
    pub fn by_any<T: Into<ToolSelector>>(tools: impl IntoIterator<Item = T>) -> Self {
        Self(Condition::Any(called_conditions(tools)))
    }

    /// Holds once a successful call of this conversation has returned an artifact of the type, given by its full or its
    /// [simple](Artifact::is_a) name.
    #[must_use]
    pub fn by_artifact(kind: impl Into<String>) -> Self {
        Self(Condition::Artifact(kind.into()))
    }

    /// Holds while the blackboard has an object of the type, given by its full or its [simple](Artifact::is_a) name. It does
    /// not matter how the object got there.
    #[must_use]
    pub fn by_blackboard(kind: impl Into<String>) -> Self {
        Self(Condition::Blackboard(kind.into()))
    }

    /// Holds while the predicate `holds` returns `true` for the conversation. While it returns `false`, a call of the locked
    /// tool returns `guidance`. The predicate should depend only on the view, so that the same conversation always unlocks the
    /// same tools.
    #[must_use]
    pub fn when(
        guidance: impl Into<String>,
        holds: impl Fn(&ConversationView<'_>) -> bool + Send + Sync + 'static,
    ) -> Self {
        Self(Condition::When {
            guidance: guidance.into(),
            holds: Arc::new(holds),
        })
    }

    /// Holds while both conditions hold.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self(Condition::All(vec![self.0, other.0]))
    }

    /// Holds while at least one of the conditions holds.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self(Condition::Any(vec![self.0, other.0]))
    }

    /// Returns guidance for the model on how to satisfy the condition, or `None` if it holds.
    #[must_use]
    pub fn guidance(&self, view: &ConversationView<'_>) -> Option<String> {
        self.0.guidance(view)
    }

    /// Returns whether the condition can depend on the earlier calls of the conversation.
    pub(super) fn depends_on_calls(&self) -> bool {
        self.0.depends_on_calls()
    }

    /// Returns whether a part of the condition is a [`by_any`](Self::by_any) without tools, which never holds.
    pub(super) fn has_empty_alternatives(&self) -> bool {
        self.0.has_empty_alternatives()
    }

    /// Returns the tools on whose calls the condition depends.
    pub(super) fn referenced_tools(&self) -> Vec<ToolSelector> {
        self.0.referenced_tools()
    }
}

fn called_conditions<T: Into<ToolSelector>>(tools: impl IntoIterator<Item = T>) -> Vec<Condition> {
    tools.into_iter().map(|tool| Condition::Called(tool.into())).collect()
}

impl Condition {
    /// Returns guidance for the model on how to satisfy the condition, or `None` if it holds.
    fn guidance(&self, view: &ConversationView<'_>) -> Option<String> {
        match self {
            Self::All(conditions) => {
                let steps: Vec<_> = conditions
                    .iter()
                    .filter_map(|condition| condition.guidance(view))
                    .collect();
                (!steps.is_empty()).then(|| steps.join(", and "))
            }
            Self::Any(conditions) if conditions.is_empty() => Some("no call makes it available".to_owned()),
            Self::Any(conditions) => {
                let steps: Option<Vec<_>> = conditions.iter().map(|condition| condition.guidance(view)).collect();
                steps.map(|steps| steps.join(", or "))
            }
            Self::Called(tool) => (!was_called(tool, view)).then(|| format!("call {} first", name_of(tool, view))),
            Self::Artifact(kind) => (!was_returned(kind, view)).then(|| format!("a tool must return a `{kind}` first")),
            Self::Blackboard(kind) => {
                let has_object = view.context().blackboard().is_ok_and(|board| board.count(kind) > 0);
                (!has_object).then(|| format!("there must be a `{kind}` on the blackboard first"))
            }
            Self::When { guidance, holds } => (!holds(view)).then(|| guidance.clone()),
        }
    }

    fn referenced_tools(&self) -> Vec<ToolSelector> {
        match self {
            Self::Called(tool) => vec![tool.clone()],
            Self::All(conditions) | Self::Any(conditions) => {
                conditions.iter().flat_map(Self::referenced_tools).collect()
            }
            Self::Artifact(_) | Self::Blackboard(_) | Self::When { .. } => Vec::new(),
        }
    }

    fn has_empty_alternatives(&self) -> bool {
        match self {
            Self::Any(conditions) if conditions.is_empty() => true,
            Self::All(conditions) | Self::Any(conditions) => conditions.iter().any(Self::has_empty_alternatives),
            Self::Called(_) | Self::Artifact(_) | Self::Blackboard(_) | Self::When { .. } => false,
        }
    }

    fn depends_on_calls(&self) -> bool {
        match self {
            Self::All(conditions) | Self::Any(conditions) => conditions.iter().any(Self::depends_on_calls),
            Self::Called(_) | Self::Artifact(_) | Self::When { .. } => true,
            Self::Blackboard(_) => false,
        }
    }
}

/// Returns whether a call of the selected tool succeeded. A selector without an id or a name selects every tool.
fn was_called(tool: &ToolSelector, view: &ConversationView<'_>) -> bool {
    match tool.text() {
        Some(id) if id.contains('#') => view.calls().has_succeeded(&ToolId::from_text(id)),
        Some(name) => view.calls().has_succeeded_as(name),
        None => view.calls().succeeded().next().is_some(),
    }
}

/// Returns whether a successful call returned an artifact of this type.
fn was_returned(kind: &str, view: &ConversationView<'_>) -> bool {
    let mut kinds = view.calls().artifact_kinds();
    kinds.any(|artifact_kind| Artifact::new(artifact_kind, serde_json::Value::Null).is_a(kind))
}

/// Returns the name of the selected tool in the conversation, in backticks. If the conversation does not have the tool, returns
/// the text of the selector. Returns `a tool` for the selector of all tools.
fn name_of(tool: &ToolSelector, view: &ConversationView<'_>) -> String {
    let Some(text) = tool.text() else {
        return "a tool".to_owned();
    };
    let id = ToolId::from_text(text);
    let mut ids = view.tools().ids_with_identity(&id);
    let present = ids.find_map(|id| view.tools().by_id(id));
    present.map_or_else(|| format!("`{text}`"), |named| format!("`{}`", named.name))
}
