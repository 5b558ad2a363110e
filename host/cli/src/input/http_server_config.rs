//! The configuration file of an HTTP server: bearer tokens, and rules for the access tokens of OAuth.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::host_files;
use toolwit::tool::file::{read_private_text_file, read_text_file};
use toolwit::{Error, ErrorKind, Phase};
use toolwit_mcp_server::ProtectedResource;

/// Maximum size of a configuration file, in bytes.
const CONFIG_BYTES_MAX: u64 = 256 << 10;

/// Maximum size of a token file, in bytes.
const TOKEN_BYTES_MAX: u64 = 4 << 10;

/// The configuration of an HTTP server.
#[derive(Debug)]
pub(crate) struct HttpServerConfig {
    pub(crate) tokens: Vec<TokenEntry>,
    pub(crate) oauth: Option<OauthEntry>,
}

/// A table `[[token]]`: the file with a bearer token, and the rights of the caller that sends the token.
#[derive(Debug)]
pub(crate) struct TokenEntry {
    /// The path of the file.
    pub(crate) file: PathBuf,
    pub(crate) rights: CallerRights,
}

/// The table `[oauth]`: the authorization servers, and the rights of callers with access tokens of these servers.
#[derive(Debug)]
pub(crate) struct OauthEntry {
    pub(crate) resource: ProtectedResource,
    /// The scopes that each access token must have.
    pub(crate) required_scopes: Vec<String>,
    pub(crate) rules: Vec<RuleEntry>,
}

/// A table `[[oauth.rule]]`: the subject, client and scope that an access token must have, and the rights of its
/// caller.
#[derive(Debug)]
pub(crate) struct RuleEntry {
    pub(crate) subject: Option<String>,
    pub(crate) client: Option<String>,
    pub(crate) scope: Option<String>,
    pub(crate) rights: CallerRights,
}

/// The rights of a caller.
#[derive(Debug)]
pub(crate) struct CallerRights {
    /// The name of the caller.
    pub(crate) name: String,
    /// The plugins that the caller may use. `None` for all plugins.
    pub(crate) plugins: Option<Vec<String>>,
    /// The path of the grants file that applies to the caller's calls. `None` for the grants file of the server. A
    /// relative path in the configuration is resolved against the directory of the configuration file.
    pub(crate) grants: Option<PathBuf>,
    pub(crate) requests_per_minute: Option<u32>,
    /// The values in the context of the caller's calls.
    pub(crate) context: BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct HttpServerConfigFormat {
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

/// A table `[[token]]` or `[[oauth.rule]]`. A token must have a file. A rule may have a subject, a client and a scope.
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

impl HttpServerConfig {
    /// Reads a configuration file.
    /// Its files become files of the host, to which no plugin gets access.
    pub(crate) fn read(path: &Path) -> Result<Self, Error> {
        host_files::require_not_written_by_plugin(path)?;
        let text = read_text_file(path, CONFIG_BYTES_MAX).map_err(|error| read_error(path, "configuration", &error))?;
        let format: HttpServerConfigFormat = toml::from_str(&text).map_err(|error| {
            let problem = error.message().trim();
            let line = error
                .span()
                .map_or(1, |span| text[..span.start.min(text.len())].matches('\n').count() + 1);
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
        let config = Self {
            tokens: tokens.collect::<Result<_, _>>().map_err(invalid)?,
            oauth: oauth.transpose().map_err(invalid)?,
        };
        config.files().for_each(host_files::add);
        Ok(config)
    }
}

impl HttpServerConfig {
    /// Returns the files with the tokens and the grants of all callers.
    fn files(&self) -> impl Iterator<Item = &Path> {
        let rules = self
            .oauth
            .iter()
            .flat_map(|oauth| &oauth.rules)
            .map(|rule| &rule.rights);
        let rights = self.tokens.iter().map(|token| &token.rights).chain(rules);
        let grants = rights.filter_map(|rights| rights.grants.as_deref());
        self.tokens.iter().map(|token| token.file.as_path()).chain(grants)
    }
}

/// Reads a bearer token. A file that other users can read or write, or that a plugin could write, is an error.
pub(crate) fn read_token(path: &Path) -> Result<String, Error> {
    host_files::require_not_written_by_plugin(path)?;
    let text = read_private_text_file(path, TOKEN_BYTES_MAX).map_err(|error| {
        // If other users can access the file, the error does not come from the operating system and has no error
        // number. If the operating system denies the access, the error has its number.
        let is_open_to_others = error.kind() == std::io::ErrorKind::PermissionDenied && error.raw_os_error().is_none();
        if !is_open_to_others {
            return read_error(path, "token", &error);
        }
        let message = format!("other users can read or write the token `{}`", path.display());
        let command = format!("chmod 600 {}", crate::shell::shell_word(&path.to_string_lossy()));
        Error::new(ErrorKind::Configuration, Phase::Registry, message).with_suggestion(format!("run `{command}`"))
    })?;
    Ok(text.trim().to_owned())
}

fn read_error(path: &Path, subject: &str, error: &std::io::Error) -> Error {
    let message = format!("the {subject} `{}` cannot be read: {error}", path.display());
    Error::new(ErrorKind::Configuration, Phase::Registry, message)
}

#[cfg(all(test, unix))]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_token_is_read_from_a_private_file_only() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("token");
        let set_mode = |mode| std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        std::fs::write(&path, "the-token\n").unwrap();
        set_mode(0o600);
        assert_eq!(read_token(&path).unwrap(), "the-token");
        set_mode(0o640);
        let error = read_token(&path).unwrap_err();
        assert!(error.message.contains("other users can read or write"), "{error}");
        assert!(error.suggestion.as_ref().unwrap().starts_with("run `chmod 600 "));
        // The permissions of the file that a link leads to are checked.
        let link = directory.path().join("link");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert!(read_token(&link).is_err());
        std::fs::remove_file(&path).unwrap();
        let error = read_token(&link).unwrap_err();
        assert!(error.message.contains("cannot be read"), "{error}");
        assert!(
            std::process::Command::new("mkfifo")
                .arg(&path)
                .status()
                .unwrap()
                .success()
        );
        set_mode(0o600);
        let error = read_token(&path).unwrap_err();
        assert!(
            error.message.contains("not a regular file"),
            "a pipe is refused without blocking: {error}"
        );
    }
}
