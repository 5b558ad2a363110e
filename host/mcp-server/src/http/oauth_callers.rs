//! Callers with access tokens that an authorization server has signed (OAuth).

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::time::Instant;

use super::callers::{Caller, Refusal};
use super::rate_limit::RateLimit;
use super::token_rule::{RuleMatch, TokenRule};
use crate::pending::PendingRequests;
use crate::token::{Claims, TokenRefusal, TokenVerifier};

/// Maximum number of subjects with a stored rate limit. Above this number, the subject with the oldest last request is
/// removed.
const SUBJECTS_MAX: usize = 4_096;

/// Resolves signed access tokens to callers, by the configured rules.
pub(super) struct OauthCallers {
    verifier: TokenVerifier,
    required_scopes: Vec<String>,
    rules: Vec<LimitedRule>,
    /// The callers by the hash of their rule, issuer and subject, each with the time of its last request.
    callers_by_subject: Mutex<HashMap<blake3::Hash, (Caller, Instant)>>,
}

/// A token rule with its limits. Each subject of the rule has its own rate limit. All subjects share the limits on pending
/// requests.
pub(super) struct LimitedRule {
    pub(super) rule: TokenRule,
    pub(super) requests_per_minute: u32,
    pub(super) pending: Arc<PendingRequests>,
}

impl OauthCallers {
    pub(super) fn new(verifier: TokenVerifier, required_scopes: Vec<String>, rules: Vec<LimitedRule>) -> Self {
        Self {
            verifier,
            required_scopes,
            rules,
            callers_by_subject: Mutex::default(),
        }
    }

    /// Returns the caller of a token. The caller has the rights of the first rule that applies to the token.
    ///
    /// # Errors
    /// If the token is invalid, its issuer cannot be reached, the token lacks a scope, or no rule applies to the token.
    pub(super) async fn caller(&self, token: &str) -> Result<Caller, Refusal> {
        let claims = self.verifier.verify(token).await.map_err(|refusal| match refusal {
            TokenRefusal::Invalid(why) => Refusal::InvalidToken(why),
            TokenRefusal::Unavailable => Refusal::Unavailable,
        })?;
        let scopes = claims.scopes();
        let is_missing = |scope: &&String| !scopes.contains(scope.as_str());
        if self.required_scopes.iter().any(|scope| is_missing(&scope)) {
            return Err(Refusal::InsufficientScopes(self.required_scopes.clone()));
        }
        let mut missing_scope = None;
        for (rule_index, limited_rule) in self.rules.iter().enumerate() {
            let has_scope = |scope: &str| scopes.contains(scope);
            let rule = &limited_rule.rule;
            match rule.match_token(&claims.sub, claims.client_id(), has_scope) {
                RuleMatch::Applies => return Ok(self.caller_for(rule_index, limited_rule, &claims)),
                RuleMatch::NeedsScope(scope) => missing_scope = missing_scope.or(Some(scope)),
                RuleMatch::DoesNotApply => {}
            }
        }
        Err(match missing_scope {
            Some(scope) => {
                let required = self.required_scopes.iter().cloned();
                Refusal::InsufficientScopes(required.chain([scope.to_owned()]).collect())
            }
            None => Refusal::NoRule,
        })
    }

    /// Returns the caller for the subject of a token. Each subject has its own rate limit.
    fn caller_for(&self, rule_index: usize, limited_rule: &LimitedRule, claims: &Claims) -> Caller {
        // The length shows where the issuer ends, so that two pairs of issuer and subject never have the same text.
        let identity = format!("{rule_index} {} {}{}", claims.iss.len(), claims.iss, claims.sub);
        let identity = blake3::hash(identity.as_bytes());
        let mut callers = self.callers_by_subject.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        if let Some((caller, last_request)) = callers.get_mut(&identity) {
            *last_request = now;
            return caller.clone();
        }
        if callers.len() >= SUBJECTS_MAX {
            let oldest = callers
                .iter()
                .min_by_key(|(_, (_, last_request))| *last_request)
                .map(|(identity, _)| *identity);
            oldest.and_then(|oldest| callers.remove(&oldest));
        }
        let caller = Caller {
            principal: Arc::new(limited_rule.rule.principal().of_subject(&identity.to_hex())),
            rate: Arc::new(RateLimit::per_minute(limited_rule.requests_per_minute)),
            pending: limited_rule.pending.clone(),
        };
        callers.insert(identity, (caller.clone(), now));
        caller
    }
}
