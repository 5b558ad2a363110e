//! The endpoint of a server: a child process or a URL.

use std::path::PathBuf;

use url::Url;

use super::oauth_client::OauthClient;
use super::oauth_login::OauthLogin;
use crate::value::SettingValue;

/// The endpoint of a server: a child process or a URL.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ServerEndpoint {
    /// A child process, with messages on its standard input and output.
    Process(ProcessEndpoint),
    /// A URL, with messages over HTTP.
    Http(HttpEndpoint),
}

/// The endpoint of a server that runs as a child process.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ProcessEndpoint {
    /// Program: a path, or a name that is looked up in the absolute directories of the `PATH` of the child process.
    pub program: String,
    /// Arguments. Every user of the machine can read them while the process runs.
    pub arguments: Vec<SettingValue>,
    /// Whether arguments may contain secrets and values of the context. Otherwise, the server is not started with them.
    pub has_visible_secrets: bool,
    /// Environment variables. The process has only these variables and the inherited ones.
    pub variables: Vec<(String, SettingValue)>,
    /// Names of environment variables that the process inherits, if the [`ValueSource`](crate::ValueSource) of the host
    /// has them.
    pub inherited: Vec<String>,
    /// Working directory; by default that of the host.
    pub directory: Option<PathBuf>,
}

/// The endpoint of a server over HTTP.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct HttpEndpoint {
    /// The URL of the server.
    pub url: Url,
    /// Headers of every request.
    pub headers: Vec<(String, SettingValue)>,
    /// The bearer token of every request. Callers with different tokens have different connections.
    pub bearer: Option<SettingValue>,
    /// The client that obtains the tokens, if there is no `bearer`.
    pub oauth: Option<Box<OauthClient>>,
    /// The login of a user. Its tokens are used if there is no `bearer`, no `oauth` and no header `authorization`.
    pub login: Box<OauthLogin>,
}
