//! The scopes that a login requests.

use crate::transport::{AuthorizationServer, Challenge, ProtectedResource};

/// The scope by which a client requests a refresh token.
const OFFLINE_ACCESS: &str = "offline_access";

/// The maximum number of scopes that a login requests.
const SCOPES_MAX: usize = 64;

/// The sources of the scopes of a login.
pub(super) struct ScopeSources<'a> {
    pub(super) configured: &'a [String],
    /// The scopes that the caller of `LoginRequest` adds.
    pub(super) additional: &'a [String],
    /// The scopes of the earlier login at this issuer; empty without an earlier login.
    pub(super) earlier_login: &'a [String],
    /// The challenge with which the server requires a token.
    pub(super) challenge: &'a Challenge,
    /// The metadata of the server, if the server has metadata.
    pub(super) resource: Option<&'a ProtectedResource>,
    pub(super) issuer: &'a AuthorizationServer,
}

impl ScopeSources<'_> {
    /// Returns the scopes to request, in this order:
    ///
    /// 1. the scopes of the earlier login, if there are additional scopes, so that the new tokens keep the earlier scopes,
    /// 2. the configured scopes, or else the scopes of the challenge, or else the scopes in the metadata of the server,
    /// 3. the additional scopes,
    /// 4. `offline_access`, if no scopes are configured and the issuer lists this scope.
    ///
    /// Invalid and repeated scopes, and scopes beyond the maximum number, are left out.
    pub(super) fn requested_scopes(&self) -> Vec<String> {
        let mut scopes: Vec<String> = Vec::new();
        let mut add = |scope: &String| {
            let is_valid = !scope.is_empty() && scope.bytes().all(|byte| byte.is_ascii_graphic());
            if is_valid && !scopes.contains(scope) && scopes.len() < SCOPES_MAX {
                scopes.push(scope.clone());
            }
        };
        if !self.additional.is_empty() {
            self.earlier_login.iter().for_each(&mut add);
        }
        if !self.configured.is_empty() {
            self.configured.iter().for_each(&mut add);
        } else if !self.challenge.scopes.is_empty() {
            self.challenge.scopes.iter().for_each(&mut add);
        } else {
            let listed = self.resource.iter().flat_map(|resource| &resource.scopes);
            listed.for_each(&mut add);
        }
        self.additional.iter().for_each(&mut add);
        if self.configured.is_empty() && self.issuer.lists_scope(OFFLINE_ACCESS) {
            add(&OFFLINE_ACCESS.to_owned());
        }
        scopes
    }
}
