//! Serves the tools of a [`Toolwit`](toolwit::Toolwit) host to MCP clients, over standard input and output or HTTP.
//!
//! An [`McpServer`] speaks the protocol revisions 2024-11-05 to 2026-07-28. Tools are listed from metadata: nothing is
//! compiled before its first call.
//!
//! ```no_run
//! use toolwit::Toolwit;
//! use toolwit_mcp_server::McpServer;
//!
//! # async fn example(cancel: tokio_util::sync::CancellationToken) -> Result<(), toolwit::Error> {
//! let host = Toolwit::builder().plugins("./tools").build().await?;
//! McpServer::new(host).serve_stdio(cancel).await?;
//! # Ok(())
//! # }
//! ```
//!
//! # Map
//!
//! Each module depends only on those below it.
//!
//! | module | contents |
//! |---|---|
//! | `http` | many clients over HTTP: tokens, limits, health and metrics |
//! | `server` | [`McpServer`], and the requests of a connection |
//! | `stdio` | one client over standard input and output |
//! | `session` | up to 2025-11-25: a session and its changing list of tools |
//! | `stateless` | from 2026-07-28: requests without a session, handles of entities, meta-tools |
//! | `content` | prompts, resources and completion |
//! | `call` | one call: progress, cancellation, messages to the user |
//! | `principal` | a caller and its rights: its host, its tools, the context of its calls |
//! | `tasks` | long calls in the background |
//! | `approval` | asks the user of the client whether a call may run |
//! | `client` | the client of a call: questions to its user and model, its log |
//! | `metrics` | counters of requests and calls |
//! | `open_streams` | the open responses of a session over HTTP |
//! | `pending` | requests that are not answered yet: their number and memory |
//! | `token` | access tokens that an authorization server signs |
//! | `wire` | the forms of the protocol |

mod approval;
mod call;
mod client;
mod content;
mod http;
mod metrics;
mod open_streams;
mod pending;
mod principal;
mod server;
mod session;
mod stateless;
mod stdio;
mod tasks;
mod token;
mod wire;

pub use client::{ClientRequest, LogLevel, McpClient};
pub use content::ServedContent;
pub use http::{AccessToken, HttpListener, HttpOptions, ProtectedResource, TokenRule};
pub use principal::Principal;
pub use server::McpServer;
pub use tasks::TaskSupport;
