//! One round of a request without a session: the answers of the client, and the further questions.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rmcp::ErrorData;
use rmcp::model::{ClientCapabilities, InputRequest, InputRequests, InputRequiredResult, InputResponses};
use serde_json::Value;

use super::client_request::is_valid_answer;
use super::question_state::{QuestionBinding, QuestionSealer, QuestionState};
use crate::wire;

/// The key of the question for an approval, among the requests for input of a result.
pub(super) const APPROVAL_KEY: &str = "approval";

/// The digest of a call that needs an approval: the tool, its definition, code and grant, and the arguments.
pub(crate) type CallDigest = [u8; 32];

/// One round of a request without a session. If the request has questions to the client, it ends with them. The client
/// then repeats the request with the answers, which begins the next round.
#[derive(Default)]
pub(crate) struct InputRound {
    state: Mutex<RoundState>,
}

#[derive(Default)]
struct RoundState {
    /// The client's answer to the question for an approval, and the call of the question. It is used once.
    approval_answer: Option<(CallDigest, Value)>,
    /// The state from the earlier rounds. It is sealed and sent to the client for the next round.
    question_state: QuestionState,
    /// The requests to the client. If there are any, the call ends with them.
    requests: InputRequests,
    /// The capabilities that the call needs and the client lacks.
    missing_capabilities: Option<ClientCapabilities>,
}

impl InputRound {
    /// Creates the round of a request from its sealed state and its answers. The answer to a question for an approval
    /// counts only if the sealed state contains this question.
    ///
    /// # Errors
    /// If the state was not sealed for this request, was redeemed already, or has expired, or if the principal or its
    /// group has redeemed too many states.
    pub(crate) fn begin(
        sealer: &QuestionSealer,
        binding: &QuestionBinding<'_>,
        sealed: Option<&str>,
        responses: Option<&InputResponses>,
    ) -> Result<Self, &'static str> {
        let mut question_state = match sealed {
            Some(sealed) => sealer.redeem(sealed, binding)?,
            None => QuestionState::default(),
        };
        let mut approval_answer = None;
        for (key, answer) in responses.into_iter().flatten() {
            if key != APPROVAL_KEY {
                question_state.answers.insert(key.clone(), answer.clone());
            } else if let Some(call_digest) = question_state.asked {
                approval_answer = Some((call_digest, answer.clone()));
            }
        }
        question_state.asked = None;
        let state = RoundState {
            approval_answer,
            question_state,
            ..RoundState::default()
        };
        Ok(Self {
            state: Mutex::new(state),
        })
    }

    /// Takes the client's answer to the question for an approval of a call. `None` if the request has no such answer, or
    /// the answer is about another call.
    pub(crate) fn take_approval_answer(&self, call_digest: &CallDigest) -> Option<Value> {
        let (answered_digest, answer) = self.state().approval_answer.take()?;
        (answered_digest == *call_digest).then_some(answer)
    }

    /// Returns whether the call was approved in an earlier round.
    pub(crate) fn is_approved(&self, call_digest: &CallDigest) -> bool {
        self.state().question_state.approved.as_ref() == Some(call_digest)
    }

    /// Remembers the approval of a call for the next rounds of the same request.
    pub(crate) fn approve(&self, call_digest: CallDigest) {
        self.state().question_state.approved = Some(call_digest);
    }

    /// Adds the question for the approval of a call. The request then ends with the question.
    pub(crate) fn ask_approval(&self, call_digest: CallDigest, form: InputRequest) {
        let mut state = self.state();
        state.question_state.asked = Some(call_digest);
        state.requests.insert(APPROVAL_KEY.to_owned(), form);
    }

    /// Returns the answers to all requests. If an answer is missing or has the wrong type, returns `None`, and the call
    /// ends with the unanswered requests.
    pub(crate) fn ask(&self, requests: BTreeMap<String, InputRequest>) -> Option<BTreeMap<String, Value>> {
        let mut state = self.state();
        let mut answers = BTreeMap::new();
        for (key, request) in requests {
            match state.question_state.answers.get(&key) {
                Some(answer) if is_valid_answer(&request, answer) => {
                    answers.insert(key, answer.clone());
                }
                _ => {
                    state.requests.insert(key, request);
                }
            }
        }
        state.requests.is_empty().then_some(answers)
    }

    /// Records the capabilities that the call needs and the client lacks. The request then ends with an error.
    pub(crate) fn set_missing_capabilities(&self, missing: ClientCapabilities) {
        self.state().missing_capabilities = Some(missing);
    }

    /// Returns the result that contains the requests to the client. `None` if there are no requests.
    ///
    /// # Errors
    /// If the client lacks a capability, the answers of the earlier rounds are too long, or the system has no
    /// randomness.
    pub(crate) fn input_required_result(
        &self,
        sealer: &QuestionSealer,
        binding: &QuestionBinding<'_>,
    ) -> Result<Option<InputRequiredResult>, ErrorData> {
        let mut state = self.state();
        if let Some(missing) = state.missing_capabilities.take() {
            return Err(ErrorData::missing_required_client_capability(missing));
        }
        if state.requests.is_empty() {
            return Ok(None);
        }
        let sealed = sealer
            .seal(&state.question_state, binding)
            .map_err(wire::invalid_params)?;
        let requests = std::mem::take(&mut state.requests);
        Ok(Some(InputRequiredResult::new(Some(requests), Some(sealed))))
    }

    fn state(&self) -> MutexGuard<'_, RoundState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
