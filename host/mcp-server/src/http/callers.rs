//! The callers of a server, by their tokens.

use std::sync::Arc;

use http::HeaderMap;
use http::header::AUTHORIZATION;

use super::options::HttpOptions;
use super::rate_limit::RateLimit;
use super::signed_callers::{LimitedRule, SignedCallers};
use crate::pending::PendingRequests;
use crate::principal::Principal;
use crate::token::TokenVerifier;

/// Maximum memory of the requests of all callers that are not answered yet, in bytes.
const PENDING_BYTES_MAX: usize = 256 << 20;

/// The minimum share of this memory for each token and rule, in bytes: enough for a request of the largest size.
const PENDING_BYTES_MIN: usize = 24 << 20;

/// The caller of a request, and its limits.
#[derive(Clone)]
pub(super) struct Caller {
    pub(super) principal: Arc<Principal>,
    pub(super) rate: Arc<RateLimit>,
    pub(super) pending: Arc<PendingRequests>,
}

/// The reason why a request has no caller.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// The request has no bearer token.
    Missing,
    /// The token is not valid, for this reason.
    Invalid(&'static str),
    /// The token lacks at least one of these scopes.
    Scopes(Vec<String>),
    /// The token is valid, but no rule applies to it.
    NoRule,
    /// The token cannot be checked at the moment.
    Unavailable,
}

/// The callers of a server, with their tokens and rules.
pub(super) struct Callers {
    tokens: Vec<(blake3::Hash, Caller)>,
    signed: Option<SignedCallers>,
    /// The caller of requests without a token, if the server has no tokens.
    anonymous: Option<Caller>,
    /// The number of tokens and rules, at least 1.
    group_count: usize,
}

impl Callers {
    /// Creates the callers. Without tokens and rules, `local` is the principal of all requests.
    ///
    /// Each token and rule has the same share of the unanswered requests and of their memory, so that no caller can use
    /// up all of them.
    pub(super) fn new(options: &HttpOptions, local: &Principal) -> Self {
        let group_count = (options.tokens.len() + options.token_rules.len()).max(1);
        let pending_max = (options.connections_max / group_count).max(1);
        let memory_bytes_max = (PENDING_BYTES_MAX / group_count).max(PENDING_BYTES_MIN);
        let pending = || Arc::new(PendingRequests::new(pending_max, memory_bytes_max));
        let default_per_minute = options.requests_per_minute;
        let caller = |principal: &Principal, requests: Option<u32>| Caller {
            principal: Arc::new(principal.clone()),
            rate: Arc::new(RateLimit::per_minute(requests.unwrap_or(default_per_minute))),
            pending: pending(),
        };
        let tokens = options.tokens.iter();
        let tokens = tokens.map(|token| (token.digest(), caller(token.principal(), token.requests_per_minute())));
        let rules = options.token_rules.iter().map(|rule| LimitedRule {
            requests_per_minute: rule.requests_per_minute().unwrap_or(default_per_minute),
            pending: pending(),
            rule: rule.clone(),
        });
        let rules: Vec<LimitedRule> = rules.collect();
        let verifier = options.protected_resource.as_ref().filter(|_| !rules.is_empty());
        let verifier = verifier.map(|resource| TokenVerifier::new(resource.resource.clone(), options.issuers()));
        let has_tokens = !options.tokens.is_empty() || !rules.is_empty();
        Self {
            tokens: tokens.collect(),
            signed: verifier.map(|verifier| SignedCallers::new(verifier, options.required_scopes.clone(), rules)),
            anonymous: (!has_tokens).then(|| caller(local, None)),
            group_count,
        }
    }

    /// Returns the number of tokens and rules, which share the limits of the server equally. At least 1.
    pub(super) fn group_count(&self) -> usize {
        self.group_count
    }

    /// Returns the caller of a request.
    ///
    /// # Errors
    /// The reason why the request has no caller.
    pub(super) async fn caller(&self, headers: &HeaderMap) -> Result<Caller, Refusal> {
        if let Some(anonymous) = &self.anonymous {
            return Ok(anonymous.clone());
        }
        let token = bearer_token(headers).ok_or(Refusal::Missing)?;
        let digest = blake3::hash(token.as_bytes());
        // Every token is compared, in constant time, so that the time reveals nothing about the tokens.
        let token_caller = self.tokens.iter().fold(
            None,
            |matched, (token_digest, caller)| if *token_digest == digest { Some(caller) } else { matched },
        );
        match (token_caller, &self.signed) {
            (Some(caller), _) => Ok(caller.clone()),
            (None, Some(signed)) => signed.caller(token).await,
            (None, None) => Err(Refusal::Invalid("it is unknown")),
        }
    }
}

/// Returns the bearer token of a request. `None` if the request has no header `Authorization`, several of them, or
/// another scheme.
fn bearer_token(headers: &HeaderMap) -> Option<&str> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let (Some(value), None) = (values.next(), values.next()) else {
        return None;
    };
    let (scheme, token) = value.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}
