//! Requests for approval, and the answers to them.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::pattern::ArgumentPattern;
use crate::text::sha256;
use crate::{Arguments, CallAccess, ToolDefinition, ToolId};

/// The request for the approval of a call. It contains everything that the approver needs for a decision.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ApprovalRequest {
    /// The [id](super::StartingCall::id) of the call.
    pub id: String,
    /// The id of the tool.
    pub tool: ToolId,
    /// The preferred name of the tool, for display.
    pub name: String,
    /// The arguments of the call, after [lossless repairs](crate::parse_arguments) of their text. Secrets of the plugin are
    /// redacted.
    pub arguments: Arguments,
    /// The effect class of the call, and the grant that it would use.
    pub access: CallAccess,
    /// The tools inside which the call is made, the outermost first. Empty for a call of the conversation's own model.
    pub callers: Vec<ToolId>,
    /// The JSON Schema of the arguments.
    pub input_schema: Arc<Value>,
    /// A digest of the tool's definition, code, effect class and grant. A remembered answer is valid for this digest only.
    pub digest: String,
    /// The reason why the edited arguments of the previous answer were not accepted. `None` if the previous answer was not an
    /// edit, or if this is the first request.
    pub rejected_edit: Option<String>,
    /// The number of further calls that wait until a [sequential](super::Approver::is_sequential) approver has answered
    /// this request.
    pub waiting: usize,
}

impl ApprovalRequest {
    /// Creates the request for a call without callers. [`Approvals`](super::Approvals) creates the requests of a
    /// conversation.
    #[must_use]
    pub fn new(id: impl Into<String>, definition: &ToolDefinition, arguments: Arguments, access: CallAccess) -> Self {
        Self {
            id: id.into(),
            tool: definition.id.clone(),
            name: definition.name().to_owned(),
            arguments,
            input_schema: definition.input_schema.clone(),
            digest: approval_digest(definition, &access),
            access,
            callers: Vec::new(),
            rejected_edit: None,
            waiting: 0,
        }
    }
}

/// Returns a digest of everything to which an approval is bound, except for the arguments.
pub(super) fn approval_digest(definition: &ToolDefinition, access: &CallAccess) -> String {
    let content = serde_json::json!([definition.digest(), access.code_digest, access.effect, access.grant]);
    sha256(&content.to_string())
}

/// The decision of an approver about a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Approval {
    /// The call may run.
    Approved,
    /// The call may run with these arguments instead. If they cannot be used, for example because they do not match the schema
    /// or the policy does not allow them, the approver receives another request.
    Edited {
        /// The arguments.
        arguments: Arguments,
    },
    /// The call must not run.
    Denied {
        /// The reason, which the model receives.
        reason: String,
    },
    /// No person or service gave an answer. The call does not run.
    Unanswered {
        /// The reason, which the model receives.
        reason: String,
    },
}

/// The calls for which an answer is valid.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum ApprovalScope {
    /// This call only.
    #[default]
    Call,
    /// All calls of the tool in this run.
    Run,
    /// All calls of the tool in this conversation.
    Session,
    /// All calls of the tool with exactly these arguments, also in later conversations.
    #[serde(rename = "arguments")]
    ExactArguments(Arguments),
    /// All calls of the tool with matching arguments, also in later conversations.
    MatchingArguments(ArgumentPattern),
    /// All calls of the tool, also in later conversations.
    Tool,
}

/// A decision with its scope.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ApprovalAnswer {
    /// The decision.
    pub approval: Approval,
    /// The calls for which the decision is valid. An edit is valid for one call only.
    pub scope: ApprovalScope,
    /// The duration after which a remembered answer expires; `None` if it does not expire.
    pub valid_for: Option<Duration>,
}

impl ApprovalAnswer {
    /// Sets the scope.
    #[must_use]
    pub fn with_scope(mut self, scope: ApprovalScope) -> Self {
        self.scope = scope;
        self
    }

    /// Sets the duration after which the answer expires.
    #[must_use]
    pub fn with_validity(mut self, valid_for: Duration) -> Self {
        self.valid_for = Some(valid_for);
        self
    }
}

/// Creates an answer that is valid for one call.
impl From<Approval> for ApprovalAnswer {
    fn from(approval: Approval) -> Self {
        Self {
            approval,
            scope: ApprovalScope::Call,
            valid_for: None,
        }
    }
}

/// The kind of a decision about a call, for logs and events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum ApprovalDecision {
    /// The call runs.
    Approved,
    /// The call runs with other arguments.
    Edited,
    /// The call does not run.
    Denied,
    /// No person or service gave an answer, so the call does not run.
    Unanswered,
    /// The call was cancelled while it waited.
    Cancelled,
}

/// The source of a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum ApprovalBasis {
    /// The approver, such as a person. Also used if the call is cancelled before the approver answers, or if there is no
    /// approver.
    Approver,
    /// An answer that was stored for this question, for example by another process.
    Stored,
    /// An answer that was remembered for further calls.
    Memory,
    /// The policy.
    Policy,
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn stored_arguments_of_earlier_versions_are_exact() {
        let stored = json!({"approval": "approved", "scope": {"arguments": {"path": "*"}}, "valid_for": null});
        let answer: ApprovalAnswer = serde_json::from_value(stored).unwrap();
        let arguments = Arguments::from_iter([("path".to_owned(), json!("*"))]);
        assert_eq!(answer.scope, ApprovalScope::ExactArguments(arguments));
    }
}
