//! The sealed states that clients have redeemed. They are remembered, so that no state is redeemed twice.

use std::collections::HashMap;

/// Maximum number of states that are remembered. The groups of principals share this number equally. Each token and each
/// token rule is a group.
const REDEEMED_MAX: usize = 100_000;

/// Maximum number of remembered states of one principal, such as a subject of a token rule.
const REDEEMED_PER_PRINCIPAL_MAX: usize = 10_000;

/// The length of the random nonce that identifies a state.
pub(super) const NONCE_BYTES: usize = 16;

const USED: &str = "`requestState` was used already or has expired; repeat the request without it";
const TOO_MANY: &str = "you have too many answered questions; repeat the request later without `requestState`";

/// The nonces of the redeemed states of a principal, with the times at which the states expire.
type Nonces = HashMap<[u8; NONCE_BYTES], u64>;

/// The redeemed states, by their nonces. A principal or a group that has reached its limit cannot redeem further states.
pub(super) struct RedeemedStates {
    /// The nonces, by group and principal.
    groups: HashMap<String, HashMap<String, Nonces>>,
    /// Maximum number of states of one group.
    group_max: usize,
}

impl Default for RedeemedStates {
    fn default() -> Self {
        Self {
            groups: HashMap::new(),
            group_max: REDEEMED_MAX,
        }
    }
}

impl RedeemedStates {
    /// Sets the number of groups that share the maximum number of states equally.
    pub(super) fn share_among(&mut self, groups: usize) {
        self.group_max = (REDEEMED_MAX / groups.max(1)).max(1);
    }

    /// Remembers a state until it expires.
    ///
    /// # Errors
    /// If the state was redeemed already, or too many states of the principal or its group are remembered.
    pub(super) fn insert(
        &mut self,
        (group, principal): (&str, &str),
        nonce: [u8; NONCE_BYTES],
        expiry: u64,
        now: u64,
    ) -> Result<(), &'static str> {
        let group = self.groups.entry(group.to_owned()).or_default();
        if group.values().map(Nonces::len).sum::<usize>() >= self.group_max {
            remove_expired(group, now);
        }
        let states_in_group: usize = group.values().map(Nonces::len).sum();
        let nonces = group.entry(principal.to_owned()).or_default();
        if nonces.len() >= REDEEMED_PER_PRINCIPAL_MAX {
            nonces.retain(|_, expiry| *expiry > now);
        }
        if nonces.contains_key(&nonce) {
            return Err(USED);
        }
        if states_in_group >= self.group_max || nonces.len() >= REDEEMED_PER_PRINCIPAL_MAX {
            return Err(TOO_MANY);
        }
        nonces.insert(nonce, expiry);
        Ok(())
    }

    /// Removes the states that have expired.
    pub(super) fn expire(&mut self, now: u64) {
        self.groups.retain(|_, group| {
            remove_expired(group, now);
            !group.is_empty()
        });
    }
}

fn remove_expired(group: &mut HashMap<String, Nonces>, now: u64) {
    group.retain(|_, nonces| {
        nonces.retain(|_, expiry| *expiry > now);
        !nonces.is_empty()
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nonce(number: usize) -> [u8; NONCE_BYTES] {
        (number as u128).to_be_bytes()
    }

    // attack: G12
    #[test]
    fn a_principal_or_rule_cannot_use_up_the_redeemed_states_of_others() {
        let mut redeemed = RedeemedStates::default();
        redeemed.share_among(5);
        let mut redeem = |group, principal, number, now| redeemed.insert((group, principal), nonce(number), 100, now);
        for number in 0..REDEEMED_PER_PRINCIPAL_MAX {
            assert_eq!(redeem("rule", "rule#ada", number, 0), Ok(()));
        }
        let next = REDEEMED_PER_PRINCIPAL_MAX;
        assert_eq!(redeem("rule", "rule#ada", next, 0), Err(TOO_MANY));
        assert_eq!(
            redeem("rule", "rule#ada", 0, 0),
            Err(USED),
            "a state is never redeemed twice"
        );
        for number in 0..next {
            assert_eq!(redeem("rule", "rule#bob", number, 0), Ok(()));
        }
        assert_eq!(
            redeem("rule", "rule#eve", 0, 0),
            Err(TOO_MANY),
            "the share of the rule is used up"
        );
        assert_eq!(redeem("token", "token", 0, 0), Ok(()));
        assert_eq!(
            redeem("rule", "rule#ada", next, 100),
            Ok(()),
            "the earlier states have expired"
        );
    }

    #[test]
    fn expired_states_and_their_principals_are_forgotten() {
        let mut redeemed = RedeemedStates::default();
        let caller = ("ann", "ann");
        assert_eq!(redeemed.insert(caller, nonce(1), 100, 0), Ok(()));
        redeemed.expire(99);
        assert_eq!(redeemed.insert(caller, nonce(1), 100, 99), Err(USED));
        redeemed.expire(100);
        assert!(redeemed.groups.is_empty());
    }
}
