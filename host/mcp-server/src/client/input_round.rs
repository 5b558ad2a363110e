//! One round of a request that may require input.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rmcp::ErrorData;
use rmcp::model::{ClientCapabilities, InputRequest, InputRequests, InputRequiredResult, InputResponses};
use serde_json::Value;

use super::client_request::fits;
use super::question_state::{QuestionBinding, QuestionState, QuestionStates};
use crate::wire;

/// The key of the approval in the requests for input.
pub(super) const APPROVAL: &str = "approval";

/// The digest of everything that an approval refers to: the tool, its definition, code and rights, and the arguments.
pub(crate) type SubjectDigest = [u8; 32];

/// One round of a request, which the client repeats with answers.
#[derive(Default)]
pub(crate) struct InputRound {
    state: Mutex<RoundState>,
}

#[derive(Default)]
struct RoundState {
    /// The answer about a call, which came with the request. It is used once.
    decision: Option<(SubjectDigest, Value)>,
    /// The state of the earlier rounds, which the next one continues.
    carried: QuestionState,
    /// The requests with which the call ends.
    asked: InputRequests,
    /// The capabilities that the call needs, and the client does not have.
    missing: Option<ClientCapabilities>,
}

impl InputRound {
    /// Creates the round of a request, with the answers of the request. An approval applies only to the question of the
    /// sealed state.
    ///
    /// # Errors
    /// If the state was not sealed for this request, was used already, or has expired.
    pub(crate) fn begin(
        states: &QuestionStates,
        binding: &QuestionBinding<'_>,
        sealed: Option<&str>,
        responses: Option<&InputResponses>,
    ) -> Result<Self, &'static str> {
        let mut carried = match sealed {
            Some(sealed) => states.redeem(sealed, binding)?,
            None => QuestionState::default(),
        };
        let mut decision = None;
        for (key, answer) in responses.into_iter().flatten() {
            if key != APPROVAL {
                carried.answers.insert(key.clone(), answer.clone());
            } else if let Some(subject) = carried.asked {
                decision = Some((subject, answer.clone()));
            }
        }
        carried.asked = None;
        let state = RoundState {
            decision,
            carried,
            ..RoundState::default()
        };
        Ok(Self {
            state: Mutex::new(state),
        })
    }

    /// Returns the user's answer about a call; `None` if it did not come with the request.
    pub(crate) fn decision(&self, subject: &SubjectDigest) -> Option<Value> {
        let (answered, answer) = self.state().decision.take()?;
        (answered == *subject).then_some(answer)
    }

    /// Returns whether the call was approved in an earlier round.
    pub(crate) fn is_approved(&self, subject: &SubjectDigest) -> bool {
        self.state().carried.approved.as_ref() == Some(subject)
    }

    /// Remembers the approval of a call for the next rounds of the same request.
    pub(crate) fn approve(&self, subject: SubjectDigest) {
        self.state().carried.approved = Some(subject);
    }

    /// Ends the call with a question about it.
    pub(crate) fn ask_approval(&self, subject: SubjectDigest, form: InputRequest) {
        let mut state = self.state();
        state.carried.asked = Some(subject);
        state.asked.insert(APPROVAL.to_owned(), form);
    }

    /// Returns the answers to requests. `None` if one is missing or has the wrong form: then the call ends with the requests that have
    /// no answer.
    pub(crate) fn ask(&self, requests: BTreeMap<String, InputRequest>) -> Option<BTreeMap<String, Value>> {
        let mut state = self.state();
        let mut answers = BTreeMap::new();
        for (key, request) in requests {
            match state.carried.answers.get(&key) {
                Some(answer) if fits(&request, answer) => {
                    answers.insert(key, answer.clone());
                }
                _ => {
                    state.asked.insert(key, request);
                }
            }
        }
        state.asked.is_empty().then_some(answers)
    }

    /// Ends the call because the client lacks capabilities.
    pub(crate) fn require(&self, missing: ClientCapabilities) {
        self.state().missing = Some(missing);
    }

    /// Returns the result that asks the client, if the call ended with a question.
    ///
    /// # Errors
    /// If the client lacks a capability, or the answers of the earlier rounds are too long.
    pub(crate) fn question(
        &self,
        states: &QuestionStates,
        binding: &QuestionBinding<'_>,
    ) -> Result<Option<InputRequiredResult>, ErrorData> {
        let mut state = self.state();
        if let Some(missing) = state.missing.take() {
            return Err(ErrorData::missing_required_client_capability(missing));
        }
        if state.asked.is_empty() {
            return Ok(None);
        }
        let sealed = states.seal(&state.carried, binding).map_err(wire::invalid_params)?;
        let asked = std::mem::take(&mut state.asked);
        Ok(Some(InputRequiredResult::new(Some(asked), Some(sealed))))
    }

    fn state(&self) -> MutexGuard<'_, RoundState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
