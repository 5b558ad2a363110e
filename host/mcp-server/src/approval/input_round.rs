//! One round of a call that may require input.

use std::sync::{Mutex, PoisonError};

use rmcp::model::{ElicitRequest, ElicitResult, InputRequest, InputRequests, InputRequiredResult, InputResponses};

use super::approver::refused;
use super::form::decision;
use super::question_state::{QuestionBinding, QuestionStates};
use toolwit::tool::{Approval, ApprovalRequest};

/// The key of the approval in the requests for input.
const APPROVAL: &str = "approval";

/// The digest of everything that an approval refers to: the tool, its definition, code and rights, and the arguments.
pub(super) type SubjectDigest = [u8; 32];

/// A call of a client that repeats it with the user's answer.
#[derive(Default)]
pub(crate) struct InputRound {
    state: Mutex<RoundState>,
}

#[derive(Default)]
struct RoundState {
    /// The answer that came with the call. It is used once.
    given: Option<(SubjectDigest, Approval)>,
    /// The question with which the call ends.
    asked: Option<(SubjectDigest, ElicitRequest)>,
}

impl InputRound {
    /// Creates the round of a call, with the answer that it brings. The answer counts for the question of the sealed state only.
    ///
    /// # Errors
    /// If the state was not sealed for this call, was used already, or has expired.
    pub(crate) fn begin(
        states: &QuestionStates,
        binding: &QuestionBinding<'_>,
        state: Option<&str>,
        responses: Option<&InputResponses>,
    ) -> Result<Self, &'static str> {
        let Some(state) = state else {
            return Ok(Self::default());
        };
        let answer = responses.and_then(|responses| responses.get(APPROVAL));
        let answer = answer.and_then(|answer| serde_json::from_value::<ElicitResult>(answer.clone()).ok());
        let subject = states.redeem(state, binding)?;
        let given = answer.map(|answer| (subject, decision(&answer)));
        Ok(Self {
            state: Mutex::new(RoundState { given, asked: None }),
        })
    }

    pub(super) fn ask(&self, request: &ApprovalRequest, form: ElicitRequest) -> Approval {
        if !request.callers.is_empty() {
            // The tools around it would run again when the client repeats the call.
            return refused(
                request,
                "another tool calls it, so that its call cannot be repeated after a question",
            );
        }
        let subject = subject_digest(request);
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match state.given.take() {
            Some((answered, approval)) if answered == subject => return approval,
            _ => {}
        }
        state.asked = Some((subject, form));
        Approval::Unanswered {
            reason: "the user is asked first".to_owned(),
        }
    }

    /// Returns the result that asks the user, if the call ended with a question.
    pub(crate) fn question(
        &self,
        states: &QuestionStates,
        binding: &QuestionBinding<'_>,
    ) -> Option<InputRequiredResult> {
        let asked = self.state.lock().unwrap_or_else(PoisonError::into_inner).asked.take();
        let (subject, form) = asked?;
        let sealed = states.seal(&subject, binding)?;
        let requests = InputRequests::from([(APPROVAL.to_owned(), InputRequest::Elicitation(form))]);
        Some(InputRequiredResult::new(Some(requests), Some(sealed)))
    }
}

fn subject_digest(request: &ApprovalRequest) -> SubjectDigest {
    let subject = serde_json::json!([request.tool, request.digest, request.arguments]);
    blake3::hash(subject.to_string().as_bytes()).into()
}
