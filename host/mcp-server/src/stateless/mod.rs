//! Requests without a session, for protocol revisions from 2026-07-28. The list of tools of a principal does not depend
//! on earlier calls.
//!
//! The list contains from the start the tools that a session would add: a method of an entity is a fixed tool that
//! takes a handle. Tools behind a facade or a search are called through `call_tool`.

mod annotations;
mod catalog;
mod catalogs;
mod current_sessions;
mod fixed_method;
mod handle_table;
mod handles_in_json;
mod live_session;
mod live_session_counter;
mod live_sessions;
mod meta_tools;
mod stateless_requests;

pub(crate) use stateless_requests::StatelessRequests;
