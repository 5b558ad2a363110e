//! Input of commands: shared options, files, standard input and the environment.

pub(crate) mod call_arguments;
pub(crate) mod configuration;
pub(crate) mod environment;
pub(crate) mod grants;
pub(crate) mod index;
pub(crate) mod interceptors;
pub(crate) mod limits;
pub(crate) mod plugins;
pub(crate) mod project_trust;
pub(crate) mod secrets;
pub(crate) mod store;
pub(crate) mod vectors;
pub(crate) mod wasi;
