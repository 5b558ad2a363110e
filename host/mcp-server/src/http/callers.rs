//! Finds the caller of a request by its token.

use std::sync::Arc;

use http::HeaderMap;
use http::header::AUTHORIZATION;

use super::connections::Connections;
use super::oauth_callers::{LimitedRule, OauthCallers};
use super::options::HttpOptions;
use super::rate_limit::RateLimit;
use crate::pending::PendingRequests;
use crate::principal::Principal;
use crate::token::TokenVerifier;

/// The memory for unanswered requests and unread answers, in bytes. Each token and rule has an equal share.
const PENDING_BYTES_MAX: usize = 256 << 20;

/// The minimum share of a token or rule in [`PENDING_BYTES_MAX`], in bytes. It is large enough for the largest request. With
/// many tokens and rules, the sum of the shares exceeds `PENDING_BYTES_MAX`.
const PENDING_BYTES_MIN: usize = 24 << 20;

/// The caller of a request, and its limits.
#[derive(Clone)]
pub(super) struct Caller {
    pub(super) principal: Arc<Principal>,
    pub(super) rate: Arc<RateLimit>,
    /// The unanswered requests of the token or rule. All subjects of a rule share them.
    pub(super) pending: Arc<PendingRequests>,
}

/// The reason why a request has no caller.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// The request has no bearer token.
    NoToken,
    /// The token is not valid, for this reason.
    InvalidToken(&'static str),
    /// The token lacks at least one of these required scopes.
    InsufficientScopes(Vec<String>),
    /// The token is valid, but no rule applies to it.
    NoRule,
    /// The token cannot be checked at the moment.
    Unavailable,
}

/// The callers of a server, by their tokens and by the token rules.
pub(super) struct Callers {
    /// The callers with configured tokens, by the digests of the tokens.
    tokens: Vec<(blake3::Hash, Caller)>,
    /// The callers with access tokens of an authorization server. `None` if the server has no token rules.
    oauth_callers: Option<OauthCallers>,
    /// The caller of requests without a token, if the server has no tokens.
    anonymous: Option<Caller>,
    /// The number of tokens and rules, at least 1.
    group_count: usize,
}

impl Callers {
    /// Creates the callers. If the server has no tokens and rules, `local_principal` is the principal of all requests.
    ///
    /// Each token and rule has an equal share of the limits on the number and the memory of unanswered requests, so that
    /// no caller can exhaust these limits for the others.
    pub(super) fn new(options: &HttpOptions, local_principal: &Principal) -> Self {
        let group_count = (options.tokens.len() + options.token_rules.len()).max(1);
        // A connection with an unanswered request is not replaced. Clients without a known token need some connections, too.
        let connections_max = options.connections_max;
        let admitted_max = connections_max.saturating_sub(Connections::unadmitted_max(connections_max));
        let pending_max = (admitted_max / group_count).max(1);
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
            oauth_callers: verifier.map(|verifier| OauthCallers::new(verifier, options.required_scopes.clone(), rules)),
            anonymous: (!has_tokens).then(|| caller(local_principal, None)),
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
        let token = bearer_token(headers).ok_or(Refusal::NoToken)?;
        let digest = blake3::hash(token.as_bytes());
        // The digest is compared with every token in constant time, so that the time reveals nothing about the tokens.
        let token_caller = self.tokens.iter().fold(
            None,
            |matched, (token_digest, caller)| if *token_digest == digest { Some(caller) } else { matched },
        );
        match (token_caller, &self.oauth_callers) {
            (Some(caller), _) => Ok(caller.clone()),
            (None, Some(oauth_callers)) => oauth_callers.caller(token).await,
            (None, None) => Err(Refusal::InvalidToken("it is unknown")),
        }
    }
}

/// Returns the bearer token of a request. `None` if the request does not have exactly one `Authorization` header, or the
/// scheme of the header is not `Bearer`.
fn bearer_token(headers: &HeaderMap) -> Option<&str> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let (Some(value), None) = (values.next(), values.next()) else {
        return None;
    };
    let (scheme, token) = value.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}
