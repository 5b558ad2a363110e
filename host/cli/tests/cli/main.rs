//! End-to-end tests of the `toolwit` command: the real binary, real components, output and exit codes.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod add;
mod approvals;
mod build;
mod call;
mod chat;
#[cfg(unix)]
mod chat_terminal;
mod demo;
mod dev;
mod dynamic;
mod foreign_requests;
mod grant;
mod guests;
mod help;
mod host_files;
mod hostile;
mod hostile_project;
mod inspect;
mod interceptors;
mod interrupt;
mod json;
mod list;
mod mcp;
mod mcp_login;
mod mcp_servers;
mod model_requests;
mod operator;
mod project;
mod replay;
mod resume;
mod roles;
mod run;
mod script;
mod secret;
mod show;
mod support;
mod system;
mod terminal;
mod test_cases;
mod trace;
mod values;
mod vectors;
