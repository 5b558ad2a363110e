//! Sessions with servers: the handshake, requests with their limits, reconnecting, and the lists of tools.

mod backoff;
mod client_options;
mod connection;
mod handle_schema;
mod handler;
mod handshake;
mod handshake_failure;
mod input;
mod listing;
mod notifications;
mod probe;
mod request;
mod server_session;
mod session_pool;
mod single_flight;
mod task_call;

pub use client_options::ClientOptions;
pub(crate) use connection::Connection;
pub(crate) use handle_schema::{handle_lists, has_root_handle, takes_handle};
pub(crate) use listing::{ListedTool, Listing};
pub(crate) use request::{RequestError, RequestOptions};
pub(crate) use server_session::ServerSession;
pub(crate) use session_pool::SessionPool;
