//! The session of a client, for protocol revisions up to 2025-11-25. Results can change its list of tools.

mod client_session;

pub(crate) use client_session::ClientSession;
