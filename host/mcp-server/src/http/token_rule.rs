//! The rules for access tokens that an authorization server signs.

use crate::principal::Principal;

/// A rule by which access tokens of an authorization server authorise a principal. It applies to all tokens, or only to
/// those with a certain subject, client or scope.
///
/// Each subject is a separate caller, with its own sessions, handles and rate limit. The subjects of a rule share the
/// limits on unanswered requests, on the memory of these requests, and on sessions.
#[derive(Clone, Debug)]
pub struct TokenRule {
    principal: Principal,
    subject: Option<String>,
    client: Option<String>,
    scope: Option<String>,
    requests_per_minute: Option<u32>,
}

/// Whether a rule applies to a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RuleMatch<'r> {
    /// The rule applies.
    Applies,
    /// The rule would apply if the token had this scope.
    NeedsScope(&'r str),
    /// The rule is for another subject or client.
    DoesNotApply,
}

impl TokenRule {
    /// Creates a rule for all tokens.
    #[must_use]
    pub fn new(principal: Principal) -> Self {
        Self {
            principal,
            subject: None,
            client: None,
            scope: None,
            requests_per_minute: None,
        }
    }

    /// Restricts the rule to tokens of a subject.
    #[must_use]
    pub fn with_subject(mut self, subject: impl Into<String>) -> Self {
        self.subject = Some(subject.into());
        self
    }

    /// Restricts the rule to tokens that were issued to a client.
    #[must_use]
    pub fn with_client(mut self, client: impl Into<String>) -> Self {
        self.client = Some(client.into());
        self
    }

    /// Restricts the rule to tokens with a scope.
    #[must_use]
    pub fn with_scope(mut self, scope: impl Into<String>) -> Self {
        self.scope = Some(scope.into());
        self
    }

    /// Limits the requests per minute of each subject.
    #[must_use]
    pub fn with_requests_per_minute(mut self, requests: u32) -> Self {
        self.requests_per_minute = Some(requests);
        self
    }

    pub(super) fn principal(&self) -> &Principal {
        &self.principal
    }

    pub(super) fn requests_per_minute(&self) -> Option<u32> {
        self.requests_per_minute
    }

    /// Returns whether the rule applies to a token, or would apply if the token had one more scope.
    pub(super) fn match_token(
        &self,
        subject: &str,
        client: Option<&str>,
        has_scope: impl Fn(&str) -> bool,
    ) -> RuleMatch<'_> {
        let matches_subject = self.subject.as_ref().is_none_or(|required| required == subject);
        let matches_client = self.client.as_ref().is_none_or(|required| client == Some(required));
        match &self.scope {
            _ if !matches_subject || !matches_client => RuleMatch::DoesNotApply,
            Some(scope) if !has_scope(scope) => RuleMatch::NeedsScope(scope),
            _ => RuleMatch::Applies,
        }
    }
}
