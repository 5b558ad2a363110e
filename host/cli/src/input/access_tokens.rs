//! Bearer tokens of a server, and the file that lists them.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use toolwit::{Error, ErrorKind, Phase};
use toolwit_mcp_server::ProtectedResource;

/// Maximum size of a configuration file, in bytes.
const CONFIG_BYTES_MAX: u64 = 256 << 10;

/// Maximum size of a token file, in bytes.
const TOKEN_BYTES_MAX: u64 = 4 << 10;

/// The configuration of an HTTP server.
#[derive(Debug)]
pub(crate) struct ServerFile {
    pub(crate) tokens: Vec<TokenEntry>,
    pub(crate) oauth: Option<ProtectedResource>,
}

/// A token, and what it permits. Paths are relative to the file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TokenEntry {
    pub(crate) name: String,
    pub(crate) file: PathBuf,
    pub(crate) plugins: Option<Vec<String>>,
    pub(crate) grants: Option<PathBuf>,
    pub(crate) requests_per_minute: Option<u32>,
    #[serde(default)]
    pub(crate) context: BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TokensFile {
    #[serde(default)]
    token: Vec<TokenEntry>,
    oauth: Option<OauthFormat>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OauthFormat {
    resource: String,
    authorization_servers: Vec<String>,
    #[serde(default)]
    scopes: Vec<String>,
}

impl ServerFile {
    /// Reads a configuration file.
    pub(crate) fn read(path: &Path) -> Result<Self, Error> {
        let text = read_text(path, CONFIG_BYTES_MAX, "configuration")?;
        let format: TokensFile = toml::from_str(&text).map_err(|error| {
            let problem = error.message().trim();
            let line = error
                .span()
                .map_or(1, |span| text[..span.start.min(text.len())].lines().count().max(1));
            let message = format!(
                "the configuration `{}` is invalid: line {line}: {problem}",
                path.display()
            );
            Error::new(ErrorKind::Configuration, Phase::Registry, message)
                .with_suggestion("`toolwit help serve` shows an example")
        })?;
        let directory = path.parent().unwrap_or(Path::new(""));
        let tokens = format.token.into_iter().map(|mut token| {
            token.file = directory.join(token.file);
            token.grants = token.grants.map(|grants| directory.join(grants));
            token
        });
        Ok(Self {
            tokens: tokens.collect(),
            oauth: format.oauth.map(|oauth| ProtectedResource {
                resource: oauth.resource,
                authorization_servers: oauth.authorization_servers,
                scopes_supported: oauth.scopes,
            }),
        })
    }
}

/// Reads a token. A file that others can read is refused.
pub(crate) fn read_token(path: &Path) -> Result<String, Error> {
    check_private(path)?;
    Ok(read_text(path, TOKEN_BYTES_MAX, "token")?.trim().to_owned())
}

fn read_text(path: &Path, bytes_max: u64, kind: &str) -> Result<String, Error> {
    let failed = |problem: String| {
        let message = format!("the {kind} `{}` cannot be read: {problem}", path.display());
        Error::new(ErrorKind::Configuration, Phase::Registry, message)
    };
    let file = File::open(path).map_err(|error| failed(error.to_string()))?;
    let is_file = file.metadata().is_ok_and(|metadata| metadata.is_file());
    if !is_file {
        return Err(failed("it is not a regular file".to_owned()));
    }
    let mut text = String::new();
    let read = file.take(bytes_max + 1).read_to_string(&mut text);
    read.map_err(|error| failed(error.to_string()))?;
    if u64::try_from(text.len()).unwrap_or(u64::MAX) > bytes_max {
        return Err(failed(format!("it is larger than {bytes_max} bytes")));
    }
    Ok(text)
}

#[cfg(unix)]
fn check_private(path: &Path) -> Result<(), Error> {
    use std::os::unix::fs::PermissionsExt;

    let Ok(metadata) = std::fs::metadata(path) else {
        return Ok(());
    };
    if metadata.permissions().mode() & 0o077 == 0 {
        return Ok(());
    }
    let message = format!("other users can read the token `{}`", path.display());
    Err(
        Error::new(ErrorKind::Configuration, Phase::Registry, message).with_suggestion(format!(
            "run `chmod 600 {}`",
            crate::shell::shell_word(&path.to_string_lossy())
        )),
    )
}

#[cfg(not(unix))]
fn check_private(_path: &Path) -> Result<(), Error> {
    Ok(())
}
