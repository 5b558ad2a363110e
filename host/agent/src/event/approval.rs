//! Approvals of calls in events.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use toolwit_core::{
    ApprovalBasis, ApprovalDecision, ApprovalRequest, Arguments, Effect, InputValidator, RememberedAnswer,
    ToolDefinition, ToolId,
};

/// A request for an approval, in the form that traces and journals record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RecordedApprovalRequest {
    /// The id of the request: the id of the model's call; for a nested call, followed by `/` and the number of the
    /// nested call.
    pub id: String,
    /// The name of the tool, for display.
    pub name: String,
    /// The id of the tool.
    pub tool: ToolId,
    /// The arguments with which the call would run, without the secrets of its plugin.
    pub arguments: Arguments,
    /// The effect class of the call, with its source.
    pub effect: Effect,
    /// The rules of the grant that the call would use.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub grant: Vec<String>,
    /// The tools that make the call, if it is a nested call: each calls the next one, and the last one makes the call.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub callers: Vec<ToolId>,
    /// The digest of the tool's definition, code, effect class and grant.
    pub digest: String,
    /// The reason why the arguments that the approver edited in its previous answer were not accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rejected_edit: Option<String>,
    /// The JSON Schema of the arguments; `None` in requests that earlier versions recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_schema: Option<Value>,
}

impl RecordedApprovalRequest {
    /// Checks that arguments can replace those of the call.
    ///
    /// # Errors
    /// The reason why they do not match the schema of the tool.
    pub fn check_edit(&self, arguments: &Arguments) -> Result<(), String> {
        let Some(schema) = &self.input_schema else {
            return Ok(());
        };
        let definition = ToolDefinition::new(self.tool.clone(), self.name.as_str(), "", schema.clone());
        // The run checks the arguments again. There, the schema of a native tool can have more than this validator accepts.
        let Ok(validator) = InputValidator::of_untrusted(&definition) else {
            return Ok(());
        };
        let checked = validator.check(arguments.clone());
        checked.map(drop).map_err(|error| error.report().message.clone())
    }

    /// Returns whether another request is equal. A request of an earlier version has no schema, which the digest covers.
    pub(crate) fn is_equal(&self, other: &Self) -> bool {
        let without_schema = |request: &Self| Self {
            input_schema: None,
            ..request.clone()
        };
        without_schema(self) == without_schema(other)
    }
}

impl From<&ApprovalRequest> for RecordedApprovalRequest {
    fn from(request: &ApprovalRequest) -> Self {
        Self {
            id: request.id.clone(),
            name: request.name.clone(),
            tool: request.tool.clone(),
            arguments: request.arguments.clone(),
            effect: request.access.effect,
            grant: request.access.grant.clone(),
            callers: request.callers.clone(),
            digest: request.digest.clone(),
            rejected_edit: request.rejected_edit.clone(),
            input_schema: Some((*request.input_schema).clone()),
        }
    }
}

/// A decision on an approval request, in the form that traces and journals record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RecordedApprovalDecision {
    /// The id of the request.
    pub id: String,
    /// The id of the tool.
    pub tool: ToolId,
    /// The decision.
    pub decision: ApprovalDecision,
    /// The basis of the decision: the approver, a stored or remembered answer, or the policy.
    pub basis: ApprovalBasis,
    /// The reason of a denial.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The arguments of an edit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Arguments>,
    /// The answer that is valid for further calls.
    #[serde(rename = "remembered", default, skip_serializing_if = "Option::is_none")]
    pub remembered_answer: Option<RememberedAnswer>,
}
