//! A client of the Model Context Protocol: servers as sources of tools.
//!
//! An [`McpServer`] is a [`ToolSource`](toolwit_agent::ToolSource): a conversation, a tool group or a tool search can
//! use its tools. A [`ServerConfig`] describes the server, in code or in a file ([`McpConfig`]). The client starts or
//! contacts the server with the caller's context when the tools are first needed. It does so again after the connection
//! has ended.
//!
//! A server is untrusted. It receives only the values that its configuration lists. By default, a process receives only a
//! few environment variables such as `PATH`. The messages of a server are limited in size, time and number. By default, a
//! tool whose definition changes is withheld.
//!
//! | module | contents |
//! |---|---|
//! | `server` | [`McpServer`] and [`McpServers`] |
//! | `tool` | tools, resources and prompts of a server as tools, and the results of their calls |
//! | `authorization` | [`LoginRequest`] and [`Logout`]: the login of a user in a browser |
//! | `session` | connections: handshake, requests, reconnecting, lists of tools |
//! | `transport` | child processes and HTTP, with limits on their messages |
//! | `login` | the stored tokens of a login, and [`LoginStore`] |
//! | `config` | [`ServerConfig`] and the files in which servers are configured |
//! | `requests` | [`ServerRequests`]: the policy for requests of servers to the client |
//! | `value` | [`SettingValue`] and [`ValueSource`]: texts, secrets, environment variables, values of the context |
//! | `failure` | errors of servers, and [`LoginRequired`] |

mod authorization;
mod config;
mod failure;
mod login;
mod requests;
mod server;
mod session;
mod tool;
mod transport;
mod value;

pub use authorization::{LoginReport, LoginRequest, Logout, PendingLogin, Revocation};
pub use config::{
    ChangedTools, HttpEndpoint, McpConfig, MetaRule, OauthClient, OauthLogin, ProcessEndpoint, RevisionChoice,
    ServerConfig, ServerEndpoint, ToolFilter,
};
pub use failure::LoginRequired;
pub use login::{LoginStore, NoLogins};
pub use requests::{RefuseRequests, ServerAnswer, ServerQuestion, ServerRequests};
pub use server::{McpServer, McpServers, ServerReport};
pub use session::ClientOptions;
pub use transport::AuthorizationServer;
pub use value::{NoValues, SettingValue, ValueSource};
