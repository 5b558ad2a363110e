//! The TOML format of the grants file: parsing a file, and writing one grant.

use std::collections::BTreeMap;

use serde::Deserialize;
use toml::Spanned;
use toml_edit::{DocumentMut, Table};

use crate::grants::{
    AccessMode, ClockRule, DirectoryRule, EnvRule, FilePosition, Grant, GrantRules, GrantScope, GrantedVersion, Grants,
    GrantsError, HttpRule, KeyValueRule, RandomRule, RuleError, SecretRule, check_name,
};
use toolwit_core::limits::GRANTS_BYTES_MAX;

/// The supported version of the format.
const VERSION: i64 = 1;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileFormat {
    version: Spanned<i64>,
    #[serde(default)]
    grant: Vec<Spanned<GrantFormat>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct GrantFormat {
    plugin: String,
    digest: Option<String>,
    any_version: Option<bool>,
    #[serde(default)]
    scope: GrantScope,
    issued: Option<u64>,
    // No `#[serde(flatten)]`: a flattened struct loses the positions of errors.
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
    /// Parses a grants file. A file with one invalid grant is invalid.
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
    /// For a file that is too large, not plain UTF-8 or not valid TOML; for a key that is unknown, repeated or missing; for a
    /// value of the wrong type; and for a rule that cannot be enforced.
    pub fn parse(bytes: &[u8]) -> Result<Self, GrantsError> {
        let text = plain_text(bytes)?;
        let file: FileFormat = toml::from_str(text).map_err(|error| GrantsError::Rule {
            position: FilePosition::of(text, error.span().map_or(0, |span| span.start)),
            message: error.message().trim_end().replace('\n', "; "),
        })?;
        let invalid = |byte: usize, error: RuleError| GrantsError::Rule {
            position: FilePosition::of(text, byte),
            message: error.to_string(),
        };
        let version = *file.version.get_ref();
        if version != VERSION {
            let message = format!("version {version} is not known; this host reads version {VERSION}");
            return Err(invalid(file.version.span().start, RuleError::new(message)));
        }
        let mut grants = Vec::with_capacity(file.grant.len());
        for grant in file.grant {
            let byte = grant.span().start;
            let position = FilePosition::of(text, byte);
            grants.push(
                grant
                    .into_inner()
                    .check(position)
                    .map_err(|error| invalid(byte, error))?,
            );
        }
        Ok(Self { grants })
    }
}

/// Decodes UTF-8 text. Refuses text that an editor displays differently from how the parser reads it.
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
        [0xef, 0xbb, 0xbf, ..] => return Err(GrantsError::NotText("it starts with a byte order mark")),
        _ if bytes.contains(&0) => return Err(GrantsError::NotText("it contains NUL bytes")),
        _ => {}
    }
    std::str::from_utf8(bytes).map_err(|_| GrantsError::NotText("it contains invalid UTF-8"))
}

impl GrantFormat {
    fn check(self, position: FilePosition) -> Result<Grant, RuleError> {
        check_name(&self.plugin)?;
        let version = match (self.digest, self.any_version) {
            (Some(digest), None | Some(false)) => GrantedVersion::Digest(parse_digest(&digest)?),
            (None, Some(true)) => GrantedVersion::Any,
            (Some(_), Some(true)) => {
                return Err(RuleError::new("`digest` and `any-version = true` exclude each other"));
            }
            (None, _) => {
                return Err(RuleError::new("a grant needs a `digest` or `any-version = true`"));
            }
        };
        let mut guests: Vec<_> = self.files.iter().map(|rule| &rule.guest).collect();
        guests.sort();
        if let Some(pair) = guests.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(RuleError::new(format!("two directories are granted as `{}`", pair[0])));
        }
        #[cfg(not(feature = "network"))]
        if !self.http.is_empty() {
            return Err(RuleError::new(
                "`http` needs the `network` feature, without which this host was built",
            ));
        }
        Ok(Grant {
            position,
            plugin: self.plugin,
            version,
            scope: self.scope,
            issued: self.issued,
            rules: GrantRules {
                http: self.http,
                files: self.files,
                env: self.env,
                secrets: self.secrets,
                config: self.config,
                keyvalue: self.keyvalue,
                tools: self.tools,
                context: self.context,
                blackboard: self.blackboard,
                clock: self.clock,
                random: self.random,
            },
        })
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

/// A grant that is about to be added to a file.
#[derive(Clone, Debug, PartialEq)]
pub struct NewGrant {
    /// The name of the plugin.
    pub plugin: String,
    /// The version of the plugin to which the grant applies.
    pub version: GrantedVersion,
    /// The duration of the grant.
    pub scope: GrantScope,
    /// The rules.
    pub rules: GrantRules,
}

impl NewGrant {
    /// Writes the grant as a table of the file. `now` is in seconds since 1970.
    pub(super) fn to_table(&self, now: u64) -> Result<Table, String> {
        let mut table = Table::new();
        table["plugin"] = toml_edit::value(&self.plugin);
        match &self.version {
            GrantedVersion::Digest(digest) => table["digest"] = toml_edit::value(format!("sha256:{digest}")),
            GrantedVersion::Any => table["any-version"] = toml_edit::value(true),
        }
        if self.scope != GrantScope::Always {
            table["scope"] = toml_edit::value(self.scope.to_string());
            table["issued"] = toml_edit::value(i64::try_from(now).unwrap_or(i64::MAX));
        }
        let rules = toml::to_string(&self.rules).map_err(|error| error.to_string())?;
        let rules: DocumentMut = rules.parse().map_err(|error: toml_edit::TomlError| error.to_string())?;
        for (key, item) in rules.iter() {
            let mut item = item.clone();
            // Converts tables to inline values, so that each key is one line of the grant.
            item.make_value();
            if let Some(value) = item.as_value_mut() {
                value.decor_mut().clear();
            }
            table[key] = item;
        }
        Ok(table)
    }
}
