//! The sealed state of the questions of a request. The client sends the state back with the answers.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::time::Instant;

use super::input_round::CallDigest;
use super::redeemed_states::{NONCE_BYTES, RedeemedStates};
use toolwit::Arguments;

/// Time after which a sealed state expires: the maximum time between a question and its answer.
const STATE_TTL: Duration = Duration::from_secs(10 * 60);

/// The length of a seal in bytes. A seal is a keyed BLAKE3 hash.
const SEAL_BYTES: usize = 32;

/// Maximum size of a state as JSON, in bytes. The answers are its largest part.
const STATE_BYTES_MAX: usize = 256 << 10;

const INVALID: &str = "`requestState` is invalid for this request; repeat the request without it";
const EXPIRED: &str = "`requestState` has expired; repeat the request without it";
const CANNOT_SEAL: &str = "the server cannot seal the state of a question";

/// The state of a request between its rounds. The client can read the sealed state, but cannot change it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct QuestionState {
    /// The call that the question asks the user to approve.
    pub(super) asked: Option<CallDigest>,
    /// The call that the user approved in an earlier round.
    pub(super) approved: Option<CallDigest>,
    /// The answers of earlier rounds.
    pub(super) answers: BTreeMap<String, Value>,
}

/// Seals states, and redeems each sealed state once. Only this process has the key: after a restart, earlier states are
/// invalid.
pub(crate) struct QuestionSealer {
    /// `None` if the system has no randomness. No state can then be sealed or redeemed.
    key: Option<[u8; 32]>,
    start: Instant,
    /// The states that were redeemed. Their times of expiry are in milliseconds since `start`.
    redeemed: Mutex<RedeemedStates>,
}

/// The request to which a state is bound by its seal. A request of another principal, for another tool or prompt, or
/// with other arguments cannot use the state.
pub(crate) struct QuestionBinding<'b> {
    pub(crate) principal: &'b str,
    /// The group of the principal, for the limit on redeemed states. It is not part of the seal.
    pub(crate) group: &'b str,
    /// The name of the tool, or `prompts/get` and the name of the prompt.
    pub(crate) tool: &'b str,
    pub(crate) arguments: &'b Arguments,
}

impl fmt::Debug for QuestionSealer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QuestionSealer").finish_non_exhaustive()
    }
}

impl Default for QuestionSealer {
    fn default() -> Self {
        Self {
            key: random_bytes(),
            start: Instant::now(),
            redeemed: Mutex::default(),
        }
    }
}

impl QuestionSealer {
    /// Returns the sealed form of a state: a nonce, the time of expiry, the state as JSON, and the seal, in base64.
    ///
    /// # Errors
    /// If the state is too long, or the system has no randomness.
    pub(super) fn seal(&self, state: &QuestionState, binding: &QuestionBinding<'_>) -> Result<String, &'static str> {
        let nonce: [u8; NONCE_BYTES] = random_bytes().ok_or(CANNOT_SEAL)?;
        let payload = serde_json::to_vec(state).map_err(|_| CANNOT_SEAL)?;
        if payload.len() > STATE_BYTES_MAX {
            return Err("the answers of the client are too long");
        }
        let mut content = nonce.to_vec();
        content.extend((self.now() + millis(STATE_TTL)).to_be_bytes());
        content.extend(payload);
        let seal = self.seal_of(&content, binding).ok_or(CANNOT_SEAL)?;
        content.extend(seal.as_bytes());
        Ok(URL_SAFE_NO_PAD.encode(content))
    }

    /// Checks the seal of a state, and returns the state. Each sealed state can be redeemed once.
    ///
    /// # Errors
    /// If the state was not sealed by this process for this request, was redeemed already, or has expired, or if the
    /// principal or its group has redeemed too many states.
    pub(super) fn redeem(&self, sealed: &str, binding: &QuestionBinding<'_>) -> Result<QuestionState, &'static str> {
        let bytes = URL_SAFE_NO_PAD.decode(sealed).map_err(|_| INVALID)?;
        let (content, seal) = bytes.split_last_chunk::<SEAL_BYTES>().ok_or(INVALID)?;
        let expected = self.seal_of(content, binding).ok_or(INVALID)?;
        // The comparison of hashes takes constant time, so that it does not reveal how much of a forged seal is correct.
        if expected != *seal {
            return Err(INVALID);
        }
        let (nonce, expiry_and_payload) = content.split_first_chunk::<NONCE_BYTES>().ok_or(INVALID)?;
        let (expiry, payload) = expiry_and_payload.split_first_chunk::<8>().ok_or(INVALID)?;
        let state = serde_json::from_slice(payload).map_err(|_| INVALID)?;
        let (expiry, now) = (u64::from_be_bytes(*expiry), self.now());
        if expiry <= now {
            return Err(EXPIRED);
        }
        let caller = (binding.group, binding.principal);
        self.redeemed().insert(caller, *nonce, expiry, now)?;
        Ok(state)
    }

    /// Sets the number of groups of principals. The groups share the maximum number of redeemed states equally.
    pub(crate) fn share_among(&self, groups: usize) {
        self.redeemed().share_among(groups);
    }

    /// Forgets the redeemed states that have expired.
    pub(crate) fn expire(&self) {
        let now = self.now();
        self.redeemed().expire(now);
    }

    fn redeemed(&self) -> MutexGuard<'_, RedeemedStates> {
        self.redeemed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn seal_of(&self, content: &[u8], binding: &QuestionBinding<'_>) -> Option<blake3::Hash> {
        let mut hasher = blake3::Hasher::new_keyed(self.key.as_ref()?);
        hasher.update(content);
        let arguments = sorted(&Value::Object(binding.arguments.clone())).to_string();
        for part in [binding.principal, binding.tool, &arguments] {
            hasher.update(&(part.len() as u64).to_be_bytes());
            hasher.update(part.as_bytes());
        }
        Some(hasher.finalize())
    }

    fn now(&self) -> u64 {
        millis(self.start.elapsed())
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// Returns a value with sorted keys, because a client may repeat its arguments in another order.
fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let mut keys: Vec<_> = fields.keys().collect();
            keys.sort_unstable();
            keys.into_iter()
                .map(|key| (key.clone(), sorted(&fields[key])))
                .collect()
        }
        Value::Array(items) => items.iter().map(sorted).collect(),
        scalar => scalar.clone(),
    }
}

fn random_bytes<const N: usize>() -> Option<[u8; N]> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes)
        .inspect_err(|error| tracing::error!(%error, "the system has no randomness for the state of a question"))
        .ok()?;
    Some(bytes)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::json;

    use super::*;

    fn asked_state() -> QuestionState {
        QuestionState {
            asked: Some([7; 32]),
            ..QuestionState::default()
        }
    }

    fn arguments(value: Value) -> Arguments {
        value.as_object().cloned().unwrap()
    }

    #[test]
    fn state_is_redeemed_once_and_for_its_own_call_only() {
        let (sealer, call_arguments) = (
            QuestionSealer::default(),
            arguments(json!({"a": 1, "b": {"c": 2, "d": 3}})),
        );
        let binding = |principal, tool, arguments| QuestionBinding {
            principal,
            group: "all",
            tool,
            arguments,
        };
        let sealed = sealer
            .seal(&asked_state(), &binding("ann", "pay", &call_arguments))
            .unwrap();
        let other_arguments = arguments(json!({"a": 2}));
        assert!(
            sealer.redeem(&sealed, &binding("bob", "pay", &call_arguments)).is_err(),
            "another principal"
        );
        assert!(
            sealer.redeem(&sealed, &binding("ann", "get", &call_arguments)).is_err(),
            "another tool"
        );
        assert!(
            sealer
                .redeem(&sealed, &binding("ann", "pay", &other_arguments))
                .is_err(),
            "other arguments"
        );
        let other_sealer = QuestionSealer::default();
        assert!(
            other_sealer
                .redeem(&sealed, &binding("ann", "pay", &call_arguments))
                .is_err(),
            "another key"
        );
        let reordered = arguments(json!({"b": {"d": 3, "c": 2}, "a": 1}));
        assert_eq!(
            sealer.redeem(&sealed, &binding("ann", "pay", &reordered)),
            Ok(asked_state())
        );
        assert!(
            sealer.redeem(&sealed, &binding("ann", "pay", &call_arguments)).is_err(),
            "a second time"
        );
    }

    #[test]
    fn forged_states_are_refused() {
        let (sealer, call_arguments) = (QuestionSealer::default(), Arguments::new());
        let binding = QuestionBinding {
            principal: "ann",
            group: "ann",
            tool: "pay",
            arguments: &call_arguments,
        };
        let sealed = sealer.seal(&asked_state(), &binding).unwrap();
        let bytes = URL_SAFE_NO_PAD.decode(&sealed).unwrap();
        for index in 0..bytes.len() {
            let mut forged = bytes.clone();
            forged[index] ^= 1;
            assert!(
                sealer.redeem(&URL_SAFE_NO_PAD.encode(forged), &binding).is_err(),
                "byte {index}"
            );
        }
        for text in ["", "x", "!", &sealed[..40]] {
            assert!(sealer.redeem(text, &binding).is_err(), "{text}");
        }
        assert_eq!(
            sealer.redeem(&sealed, &binding),
            Ok(asked_state()),
            "a refused state does not count as redeemed"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn state_expires() {
        let (sealer, call_arguments) = (QuestionSealer::default(), Arguments::new());
        let binding = QuestionBinding {
            principal: "ann",
            group: "ann",
            tool: "pay",
            arguments: &call_arguments,
        };
        let sealed = sealer.seal(&asked_state(), &binding).unwrap();
        tokio::time::advance(STATE_TTL).await;
        assert!(sealer.redeem(&sealed, &binding).is_err());
    }
}
