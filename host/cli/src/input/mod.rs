//! Input of commands: shared options, files, standard input and the environment.

pub(crate) mod access;
pub(crate) mod access_tokens;
pub(crate) mod approvals;
pub(crate) mod budget;
pub(crate) mod call_arguments;
pub(crate) mod configuration;
pub(crate) mod environment;
pub(crate) mod exposure;
pub(crate) mod grants;
pub(crate) mod index;
pub(crate) mod interceptors;
pub(crate) mod limits;
mod logins;
pub(crate) mod mcp;
pub(crate) mod model_options;
pub(crate) mod plugins;
pub(crate) mod project_servers;
pub(crate) mod project_trust;
pub(crate) mod secrets;
pub(crate) mod served_host;
mod servers_file;
pub(crate) mod sessions;
pub(crate) mod store;
pub(crate) mod vectors;
pub(crate) mod wasi;
