//! The two kinds of protocol revisions: with sessions, and without.

use rmcp::RoleServer;
use rmcp::model::ProtocolVersion;
use rmcp::service::RequestContext;

/// The kind of protocol revision that a request uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Revision {
    /// Up to 2025-11-25: a session with its own list of tools, which changes.
    Session,
    /// From 2026-07-28: requests without a session, and the same list for all of them.
    Stateless,
}

impl Revision {
    /// Returns the kind of revision that a request uses. A request of 2026-07-28 declares its version itself.
    pub(crate) fn of(context: &RequestContext<RoleServer>) -> Self {
        let declared = context.meta.protocol_version();
        match declared {
            Some(version) if version.as_str() >= ProtocolVersion::V_2026_07_28.as_str() => Self::Stateless,
            _ => Self::Session,
        }
    }
}
