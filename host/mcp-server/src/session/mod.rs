//! The session of a client, for protocol revisions up to 2025-11-25. Results of calls can change the session's list of
//! tools.

mod client_session;

pub(crate) use client_session::ClientSession;
