//! Requests without a session, for protocol revisions from 2026-07-28. Calls do not change the list of tools of a
//! principal.
//!
//! A session would add the methods of an entity to the list when a call returns the entity. Here, the list contains the
//! methods of all types of entities from the start: as tools that take the handle of an entity. Tools that are not listed,
//! but revealed by a facade or a search, are called through `call_tool`.

mod annotations;
mod catalog;
mod catalogs;
mod current_sessions;
mod handle_method;
mod handle_table;
mod handles_in_json;
mod live_session;
mod live_session_counter;
mod live_sessions;
mod meta_tools;
mod session_calls;
mod stateless_requests;

pub(crate) use live_session::LiveSession;
pub(crate) use session_calls::SessionCall;
pub(crate) use stateless_requests::StatelessRequests;
