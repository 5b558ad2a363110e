//! Bearer tokens of a server, and the file that lists them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use toolwit::tool::file::read_text_file;
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
    pub(crate) oauth: Option<OauthEntry>,
}

/// A token, and the rights of its caller.
#[derive(Debug)]
pub(crate) struct TokenEntry {
    pub(crate) file: PathBuf,
    pub(crate) rights: CallerRights,
}

/// The authorization servers, and the rights of the callers with their access tokens.
#[derive(Debug)]
pub(crate) struct OauthEntry {
    pub(crate) resource: ProtectedResource,
    pub(crate) required_scopes: Vec<String>,
    pub(crate) rules: Vec<RuleEntry>,
}

/// A rule for access tokens: their subject, client or scope, and the rights of their callers.
#[derive(Debug)]
pub(crate) struct RuleEntry {
    pub(crate) subject: Option<String>,
    pub(crate) client: Option<String>,
    pub(crate) scope: Option<String>,
    pub(crate) rights: CallerRights,
}

/// The rights of a caller. Relative paths of the file are resolved against its directory.
#[derive(Debug)]
pub(crate) struct CallerRights {
    pub(crate) name: String,
    pub(crate) plugins: Option<Vec<String>>,
    pub(crate) grants: Option<PathBuf>,
    pub(crate) requests_per_minute: Option<u32>,
    pub(crate) context: BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TokensFile {
    #[serde(default)]
    token: Vec<CallerFormat>,
    oauth: Option<OauthFormat>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OauthFormat {
    resource: String,
    authorization_servers: Vec<String>,
    #[serde(default)]
    scopes: Vec<String>,
    #[serde(default)]
    required_scopes: Vec<String>,
    #[serde(default)]
    rule: Vec<CallerFormat>,
}

/// A token or a rule. A token has a file, and a rule may have a subject, a client and a scope.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CallerFormat {
    name: String,
    file: Option<PathBuf>,
    subject: Option<String>,
    client: Option<String>,
    scope: Option<String>,
    plugins: Option<Vec<String>>,
    grants: Option<PathBuf>,
    requests_per_minute: Option<u32>,
    #[serde(default)]
    context: BTreeMap<String, String>,
}

impl CallerFormat {
    fn into_token(self, directory: &Path) -> Result<TokenEntry, String> {
        if self.subject.is_some() || self.client.is_some() || self.scope.is_some() {
            let name = &self.name;
            return Err(format!(
                "the token `{name}` has a subject, a client or a scope, which only `[[oauth.rule]]` has"
            ));
        }
        let file = self
            .file
            .as_ref()
            .ok_or_else(|| format!("the token `{}` has no `file`", self.name))?;
        Ok(TokenEntry {
            file: directory.join(file),
            rights: self.into_rights(directory),
        })
    }

    fn into_rule(mut self, directory: &Path) -> Result<RuleEntry, String> {
        if self.file.is_some() {
            return Err(format!(
                "the rule `{}` has a `file`, which only `[[token]]` has",
                self.name
            ));
        }
        Ok(RuleEntry {
            subject: self.subject.take(),
            client: self.client.take(),
            scope: self.scope.take(),
            rights: self.into_rights(directory),
        })
    }

    fn into_rights(self, directory: &Path) -> CallerRights {
        CallerRights {
            name: self.name,
            plugins: self.plugins,
            grants: self.grants.map(|grants| directory.join(grants)),
            requests_per_minute: self.requests_per_minute,
            context: self.context,
        }
    }
}

impl OauthFormat {
    fn into_entry(self, directory: &Path) -> Result<OauthEntry, String> {
        let rules = self.rule.into_iter().map(|rule| rule.into_rule(directory));
        Ok(OauthEntry {
            resource: ProtectedResource {
                resource: self.resource,
                authorization_servers: self.authorization_servers,
                scopes_supported: self.scopes,
            },
            required_scopes: self.required_scopes,
            rules: rules.collect::<Result<_, _>>()?,
        })
    }
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
        let invalid = |problem: String| {
            let message = format!("the configuration `{}` is invalid: {problem}", path.display());
            Error::new(ErrorKind::Configuration, Phase::Registry, message)
        };
        let directory = path.parent().unwrap_or(Path::new(""));
        let tokens = format.token.into_iter().map(|token| token.into_token(directory));
        let oauth = format.oauth.map(|oauth| oauth.into_entry(directory));
        Ok(Self {
            tokens: tokens.collect::<Result<_, _>>().map_err(invalid)?,
            oauth: oauth.transpose().map_err(invalid)?,
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
    read_text_file(path, bytes_max).map_err(|error| failed(error.to_string()))
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
