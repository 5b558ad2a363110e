//! The two kinds of protocol revisions: with sessions, and without.

use rmcp::RoleServer;
use rmcp::model::ProtocolVersion;
use rmcp::service::RequestContext;

/// The kind of protocol revision that a request uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Revision {
    /// Up to 2025-11-25: each session has its own list of tools, which can change.
    Session,
    /// From 2026-07-28: requests have no session, and all requests of a principal have the same list of tools.
    Stateless,
}

impl Revision {
    /// Returns the kind of revision that a request uses. From 2026-07-28, each request declares its version.
    pub(crate) fn of(context: &RequestContext<RoleServer>) -> Self {
        let declared = context.meta.protocol_version();
        match declared {
            Some(version) if version.as_str() >= ProtocolVersion::V_2026_07_28.as_str() => Self::Stateless,
            _ => Self::Session,
        }
    }
}
