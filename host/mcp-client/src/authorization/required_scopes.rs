//! The scopes that a login requests.

use crate::transport::{AuthorizationServer, Challenge, ProtectedResource};

/// The scope by which a client requests a refresh token.
const OFFLINE_ACCESS: &str = "offline_access";

/// The maximum number of scopes that a login requests.
const SCOPES_MAX: usize = 64;

/// The sources of the scopes of a login.
pub(super) struct ScopeSources<'a> {
    /// The configured scopes.
    pub(super) configured: &'a [String],
    /// The scopes that the caller adds.
    pub(super) added: &'a [String],
    /// The scopes of the earlier login at this issuer.
    pub(super) earlier: &'a [String],
    pub(super) challenge: &'a Challenge,
    pub(super) resource: Option<&'a ProtectedResource>,
    pub(super) issuer: &'a AuthorizationServer,
}

impl ScopeSources<'_> {
    /// Returns the scopes to request: the configured ones, or else those of the challenge, or else those in the
    /// metadata of the server; then the added ones. If scopes are added, those of the earlier login come first, so that
    /// the new tokens keep them. Without configured scopes, `offline_access` is added if the issuer lists it. Invalid
    /// scopes, and those beyond the maximum, are left out.
    pub(super) fn scopes(&self) -> Vec<String> {
        let mut scopes: Vec<String> = Vec::new();
        let mut add = |scope: &String| {
            let is_scope = !scope.is_empty() && scope.bytes().all(|byte| byte.is_ascii_graphic());
            if is_scope && !scopes.contains(scope) && scopes.len() < SCOPES_MAX {
                scopes.push(scope.clone());
            }
        };
        if !self.added.is_empty() {
            self.earlier.iter().for_each(&mut add);
        }
        if !self.configured.is_empty() {
            self.configured.iter().for_each(&mut add);
        } else if !self.challenge.scopes.is_empty() {
            self.challenge.scopes.iter().for_each(&mut add);
        } else {
            let listed = self.resource.iter().flat_map(|resource| &resource.scopes);
            listed.for_each(&mut add);
        }
        self.added.iter().for_each(&mut add);
        if self.configured.is_empty() && self.issuer.lists_scope(OFFLINE_ACCESS) {
            add(&OFFLINE_ACCESS.to_owned());
        }
        scopes
    }
}
