//! Up to 2025-11-25: a session, whose list of tools changes with its results.

mod client_session;

pub(crate) use client_session::ClientSession;
