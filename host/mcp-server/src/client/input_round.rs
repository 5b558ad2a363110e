//! One round of a request that may require input.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rmcp::ErrorData;
use rmcp::model::{ClientCapabilities, InputRequest, InputRequests, InputRequiredResult, InputResponses};
use serde_json::Value;

use super::client_request::fits;
use super::question_state::{QuestionBinding, QuestionSealer, QuestionState};
use crate::wire;

/// The key of the question for an approval in the requests for input.
pub(super) const APPROVAL: &str = "approval";

/// The digest of everything that an approval refers to: the tool, its definition, code and rights, and the arguments.
pub(crate) type CallDigest = [u8; 32];

/// One round of a request, which the client repeats with answers.
#[derive(Default)]
pub(crate) struct InputRound {
    state: Mutex<RoundState>,
}

#[derive(Default)]
struct RoundState {
    /// The user's decision about a call, which came with the request. It is used once.
    decision: Option<(CallDigest, Value)>,
    /// The state of the earlier rounds, which the next round receives.
    question_state: QuestionState,
    /// The requests to the client with which the call ends.
    requests: InputRequests,
    /// The capabilities that the call needs, and the client does not have.
    missing_capabilities: Option<ClientCapabilities>,
}

impl InputRound {
    /// Creates the round of a request, with the answers of the request. An approval applies only to the question of the
    /// sealed state.
    ///
    /// # Errors
    /// If the state was not sealed for this request, was used already, or has expired, or if the principal or its group
    /// has used too many states.
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
        let mut decision = None;
        for (key, answer) in responses.into_iter().flatten() {
            if key != APPROVAL {
                question_state.answers.insert(key.clone(), answer.clone());
            } else if let Some(call_digest) = question_state.asked {
                decision = Some((call_digest, answer.clone()));
            }
        }
        question_state.asked = None;
        let state = RoundState {
            decision,
            question_state,
            ..RoundState::default()
        };
        Ok(Self {
            state: Mutex::new(state),
        })
    }

    /// Takes the user's decision about a call. `None` if the request has no decision, or one about another call.
    pub(crate) fn take_decision(&self, call_digest: &CallDigest) -> Option<Value> {
        let (answered_digest, answer) = self.state().decision.take()?;
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

    /// Adds the question whether a call may run. The request then ends with the question.
    pub(crate) fn ask_approval(&self, call_digest: CallDigest, form: InputRequest) {
        let mut state = self.state();
        state.question_state.asked = Some(call_digest);
        state.requests.insert(APPROVAL.to_owned(), form);
    }

    /// Returns the answers to requests. If an answer is missing or has the wrong form, its request is added to those
    /// with which the call ends. `None` if there is such a request.
    pub(crate) fn ask(&self, requests: BTreeMap<String, InputRequest>) -> Option<BTreeMap<String, Value>> {
        let mut state = self.state();
        let mut answers = BTreeMap::new();
        for (key, request) in requests {
            match state.question_state.answers.get(&key) {
                Some(answer) if fits(&request, answer) => {
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
    pub(crate) fn require(&self, missing: ClientCapabilities) {
        self.state().missing_capabilities = Some(missing);
    }

    /// Returns the result that asks the client, if the call ended with a question.
    ///
    /// # Errors
    /// If the client lacks a capability, the answers of the earlier rounds are too long, or the system has no
    /// randomness.
    pub(crate) fn question(
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
