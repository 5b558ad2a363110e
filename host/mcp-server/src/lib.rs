//! Serves the tools of a [`Toolwit`](toolwit::Toolwit) host to MCP clients, over standard input and output or HTTP.
//!
//! An [`McpServer`] speaks the protocol revisions 2024-11-05 to 2026-07-28. It lists tools from their metadata, and
//! compiles a plugin only when one of its tools is called.
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
//! Each module depends only on modules below it in this table.
//!
//! | module | contents |
//! |---|---|
//! | `http` | serves many clients over HTTP: tokens, limits, health and metrics |
//! | `server` | [`McpServer`], and the handler of a connection's requests |
//! | `stdio` | serves one client over standard input and output |
//! | `message` | parses the messages of clients |
//! | `session` | for revisions up to 2025-11-25: a session and its changing list of tools |
//! | `stateless` | for revisions from 2026-07-28: requests without a session, handles of entities, `search_tools` and `call_tool` |
//! | `content` | prompts, resources and completion |
//! | `call` | runs one call: progress, cancellation, messages to the user |
//! | `principal` | a caller and its rights: its host, its tools, the context of its calls |
//! | `tasks` | long calls in the background |
//! | `approval` | asks the user of the client whether a call may run |
//! | `client` | sends questions and log messages to the client during a call |
//! | `metrics` | counters of requests and calls |
//! | `open_streams` | counts the open HTTP responses of a session |
//! | `pending` | limits the number and the memory of unanswered requests |
//! | `token` | verifies access tokens that an authorization server signs |
//! | `wire` | converts tools, results and errors to the types of the protocol |

mod approval;
mod call;
mod client;
mod content;
mod http;
mod message;
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

pub use client::{ClientRequest, McpClient};
pub use content::ServedContent;
pub use http::{AccessToken, HttpListener, HttpOptions, ProtectedResource, TokenRule};
pub use principal::Principal;
pub use server::McpServer;
pub use tasks::TaskSupport;
pub use toolwit::tool::LogLevel;
