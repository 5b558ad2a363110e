//! The operator's file: what is granted to whom.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use toml::Spanned;

use super::directory_rule::{AccessMode, DirectoryRule};
use super::error::{FilePosition, GrantsError, RuleError};
use super::http_rule::HttpRule;
use super::secret_rule::{SecretRule, check_name, check_variable};
use toolwit_core::limits::ByteCount;

/// The largest file of grants. A hundred plugins with ten rules each take a tenth of it.
pub const GRANTS_BYTES_MAX: u64 = 1 << 20;

/// The version of the format.
const VERSION: i64 = 1;

/// Everything that is granted to anybody.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Grants {
    /// The grants, in the order of the file.
    pub grants: Vec<Grant>,
}

/// What one plugin may do.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Grant {
    /// Where it stands in the file.
    pub position: FilePosition,
    /// The plugin's name.
    pub plugin: String,
    /// For which content of it.
    pub version: GrantedVersion,
    /// For how long.
    pub scope: GrantScope,
    /// When it was given, in seconds since 1970: tells a grant that was given again from one that was used up.
    pub issued: Option<u64>,
    /// What.
    pub rules: GrantRules,
}

/// What a grant allows.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct GrantRules {
    /// Requests.
    pub http: Vec<HttpRule>,
    /// Directories.
    pub files: Vec<DirectoryRule>,
    /// Environment variables.
    pub env: Vec<EnvRule>,
    /// Secrets.
    pub secrets: Vec<SecretRule>,
    /// Settings, as `wasi:config` gives them.
    pub config: BTreeMap<String, String>,
    /// Its own key–value store.
    pub keyvalue: Option<KeyValueRule>,
    /// Tools that it may call, by their ids.
    pub tools: Vec<String>,
    /// Keys of a call's context that it may read.
    pub context: Vec<String>,
    /// What it may do with the objects that the tools of a conversation share.
    pub blackboard: Option<AccessMode>,
    /// What its clocks show.
    pub clock: Option<ClockRule>,
    /// What its random bytes are.
    pub random: Option<RandomRule>,
}

/// The content of a plugin that a grant is for.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum GrantedVersion {
    /// The component with this SHA-256, in lower-case hex.
    Digest(String),
    /// Whatever answers under the name. Whoever can replace the file has the grant.
    Any,
}

/// How long a grant lasts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum GrantScope {
    /// One call of the plugin.
    Once,
    /// The first conversation that uses it, until that ends.
    Session,
    /// Until it is revoked.
    #[default]
    Always,
}

impl fmt::Display for GrantScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Once => "once",
            Self::Session => "session",
            Self::Always => "always",
        })
    }
}

/// An environment variable of the guest.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "RawEnvRule")]
#[non_exhaustive]
pub struct EnvRule {
    /// Its name.
    pub name: String,
    /// Its value; the host's variable of the same name when there is none.
    pub value: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawEnvRule {
    name: String,
    value: Option<String>,
}

impl TryFrom<RawEnvRule> for EnvRule {
    type Error = RuleError;

    fn try_from(raw: RawEnvRule) -> Result<Self, RuleError> {
        check_variable(&raw.name)?;
        if raw.value.as_ref().is_some_and(|value| value.contains('\0')) {
            return Err(RuleError::new("a variable's value cannot hold NUL"));
        }
        Ok(Self {
            name: raw.name,
            value: raw.value,
        })
    }
}

/// The bounds of a plugin's key–value store.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "RawKeyValueRule")]
#[non_exhaustive]
pub struct KeyValueRule {
    /// The most bytes of all keys and values.
    pub quota_bytes: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawKeyValueRule {
    quota: String,
}

impl TryFrom<RawKeyValueRule> for KeyValueRule {
    type Error = RuleError;

    fn try_from(raw: RawKeyValueRule) -> Result<Self, RuleError> {
        let quota: ByteCount = raw
            .quota
            .parse()
            .map_err(|error: toolwit_core::limits::UnitError| RuleError::new(error.to_string()))?;
        Ok(Self { quota_bytes: quota.0 })
    }
}

/// What a guest's clocks show.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[non_exhaustive]
pub enum ClockRule {
    /// The time.
    Real,
    /// This moment, in seconds since 1970, for ever; the monotonic clock stands still too.
    Frozen(u64),
}

/// What a guest's random bytes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[non_exhaustive]
pub enum RandomRule {
    /// True randomness.
    Real,
    /// The same bytes for the same seed in every instance.
    Frozen(u64),
}

/// The file as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawGrants {
    version: Spanned<i64>,
    #[serde(default)]
    grant: Vec<Spanned<RawGrant>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct RawGrant {
    plugin: String,
    digest: Option<String>,
    any_version: Option<bool>,
    #[serde(default)]
    scope: GrantScope,
    issued: Option<u64>,
    #[serde(default)]
    http: Vec<HttpRule>,
    #[serde(default)]
    files: Vec<DirectoryRule>,
    #[serde(default)]
    env: Vec<EnvRule>,
    #[serde(default)]
    secrets: Vec<SecretRule>,
    #[serde(default)]
    config: BTreeMap<String, String>,
    keyvalue: Option<KeyValueRule>,
    #[serde(default)]
    tools: Vec<String>,
    #[serde(default)]
    context: Vec<String>,
    blackboard: Option<AccessMode>,
    clock: Option<ClockRule>,
    random: Option<RandomRule>,
}

impl Grants {
    /// Reads a file of grants. It holds as a whole or not at all.
    ///
    /// ```
    /// use toolwit_sandbox::grants::Grants;
    ///
    /// let text = r#"
    /// version = 1
    ///
    /// [[grant]]
    /// plugin = "fetch"
    /// any-version = true
    /// http = [{ host = "api.example.com", path = "/v1" }]
    /// "#;
    /// assert_eq!(Grants::parse(text.as_bytes()).unwrap().grants.len(), 1);
    ///
    /// let error = Grants::parse(b"version = 1\npermisions = []").unwrap_err();
    /// assert!(error.to_string().starts_with("line 2, column 1: unknown field `permisions`"), "{error}");
    /// ```
    ///
    /// # Errors
    /// For a file that is too large, no plain UTF-8, or no valid TOML; for a key that is not known, written twice or
    /// missing; for a value of another type, and for a rule that could not be enforced.
    pub fn parse(bytes: &[u8]) -> Result<Self, GrantsError> {
        let text = plain_text(bytes)?;
        let raw: RawGrants = toml::from_str(text).map_err(|error| GrantsError::Rule {
            position: FilePosition::of(text, error.span().map_or(0, |span| span.start)),
            message: error.message().trim_end().replace('\n', "; "),
        })?;
        let at = |byte: usize, error: RuleError| GrantsError::Rule {
            position: FilePosition::of(text, byte),
            message: error.to_string(),
        };
        if *raw.version.get_ref() != VERSION {
            let message = format!(
                "version {} is not known; this host reads version {VERSION}",
                raw.version.get_ref()
            );
            return Err(at(raw.version.span().start, RuleError::new(message)));
        }
        let mut grants = Vec::with_capacity(raw.grant.len());
        for raw in raw.grant {
            let byte = raw.span().start;
            grants.push(Grant::check(raw.into_inner(), FilePosition::of(text, byte)).map_err(|error| at(byte, error))?);
        }
        Ok(Self { grants })
    }
}

/// Refuses what an editor or a mishap left there, instead of reading something else than a person sees.
fn plain_text(bytes: &[u8]) -> Result<&str, GrantsError> {
    let size = bytes.len() as u64;
    if size > GRANTS_BYTES_MAX {
        return Err(GrantsError::TooLarge {
            bytes: size,
            bytes_max: GRANTS_BYTES_MAX,
        });
    }
    match bytes {
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => return Err(GrantsError::NotText("it is UTF-16")),
        [0xef, 0xbb, 0xbf, ..] => return Err(GrantsError::NotText("it begins with a byte order mark")),
        _ if bytes.contains(&0) => return Err(GrantsError::NotText("it holds NUL bytes")),
        _ => {}
    }
    std::str::from_utf8(bytes).map_err(|_| GrantsError::NotText("it holds bytes that are no UTF-8"))
}

impl Grant {
    fn check(raw: RawGrant, position: FilePosition) -> Result<Self, RuleError> {
        check_name(&raw.plugin)?;
        let version = match (raw.digest, raw.any_version) {
            (Some(digest), None | Some(false)) => GrantedVersion::Digest(parse_digest(&digest)?),
            (None, Some(true)) => GrantedVersion::Any,
            (Some(_), Some(true)) => {
                return Err(RuleError::new("`digest` and `any-version = true` exclude each other"));
            }
            (None, _) => {
                return Err(RuleError::new(
                    "a grant is for one `digest`, or for `any-version = true`: `toolwit grant` writes the digest",
                ));
            }
        };
        let mut guests: Vec<_> = raw.files.iter().map(|rule| &rule.guest).collect();
        guests.sort();
        if let Some(twice) = guests.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(RuleError::new(format!("two directories are granted as `{}`", twice[0])));
        }
        #[cfg(not(feature = "network"))]
        if !raw.http.is_empty() {
            return Err(RuleError::new(
                "this host was built without the `network` feature, and reaches no host",
            ));
        }
        let rules = GrantRules {
            http: raw.http,
            files: raw.files,
            env: raw.env,
            secrets: raw.secrets,
            config: raw.config,
            keyvalue: raw.keyvalue,
            tools: raw.tools,
            context: raw.context,
            blackboard: raw.blackboard,
            clock: raw.clock,
            random: raw.random,
        };
        Ok(Self {
            position,
            plugin: raw.plugin,
            version,
            scope: raw.scope,
            issued: raw.issued,
            rules,
        })
    }

    /// Tells it from all others, wherever it stands in its file: a digest of what it says.
    #[must_use]
    pub fn identity(&self) -> String {
        use sha2::{Digest, Sha256};
        let said = format!(
            "{:?}",
            (&self.plugin, &self.version, self.scope, self.issued, &self.rules)
        );
        Sha256::digest(said).iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Tells whether it is for this component.
    #[must_use]
    pub fn is_for(&self, plugin: &str, digest: &str) -> bool {
        self.plugin == plugin
            && match &self.version {
                GrantedVersion::Any => true,
                GrantedVersion::Digest(granted) => granted == digest,
            }
    }
}

fn parse_digest(text: &str) -> Result<String, RuleError> {
    let hex = text.strip_prefix("sha256:").unwrap_or(text).to_ascii_lowercase();
    if hex.len() == 64 && hex.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        Ok(hex)
    } else {
        Err(RuleError::new("a digest is `sha256:` and 64 hex digits"))
    }
}
