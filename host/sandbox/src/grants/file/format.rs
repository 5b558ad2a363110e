//! The TOML format of the grants file: parsing a file, adding a grant, and removing rules.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::Deserialize;
use toml::Spanned;
use toml_edit::{DocumentMut, Item, Table};

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
    directory: Option<PathBuf>,
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
    #[serde(default)]
    ask: bool,
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
    /// For a file that is too large, not plain UTF-8 or not valid TOML; for another version of the format; for a key that is
    /// unknown, repeated or missing; for a value of the wrong type; for an invalid plugin name or digest; and for a rule that
    /// cannot be enforced.
    pub fn parse(bytes: &[u8]) -> Result<Self, GrantsError> {
        let text = plain_text(bytes)?;
        let file: FileFormat = toml::from_str(text).map_err(|error| GrantsError::Rule {
            position: FilePosition::of(text, error.span().map_or(0, |span| span.start)),
            message: error.message().trim_end().replace('\n', "; "),
        })?;
        let invalid = |offset: usize, error: RuleError| GrantsError::Rule {
            position: FilePosition::of(text, offset),
            message: error.to_string(),
        };
        let version = *file.version.get_ref();
        if version != VERSION {
            let message = format!("version {version} is not supported; this host reads version {VERSION}");
            return Err(invalid(file.version.span().start, RuleError::new(message)));
        }
        let mut grants = Vec::with_capacity(file.grant.len());
        for grant in file.grant {
            let offset = grant.span().start;
            let position = FilePosition::of(text, offset);
            grants.push(
                grant
                    .into_inner()
                    .into_grant(position)
                    .map_err(|error| invalid(offset, error))?,
            );
        }
        Ok(Self { grants })
    }
}

/// Decodes the UTF-8 text of a grants file. Refuses a file that is too large, and text that an editor may display differently
/// from how the parser reads it.
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
    /// Checks the grant and converts it.
    fn into_grant(self, position: FilePosition) -> Result<Grant, RuleError> {
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
        let grant = Grant {
            position: Some(position),
            plugin: self.plugin,
            version,
            scope: self.scope,
            issued: self.issued,
            directory: self.directory,
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
                ask: self.ask,
                clock: self.clock,
                random: self.random,
            },
        };
        check_grant(&grant)?;
        Ok(grant)
    }
}

/// Checks the conditions that the types of a grant's rules cannot express.
fn check_grant(grant: &Grant) -> Result<(), RuleError> {
    check_name(&grant.plugin)?;
    let mut guest_paths: Vec<_> = grant.rules.files.iter().map(|rule| &rule.guest).collect();
    guest_paths.sort();
    if let Some(pair) = guest_paths.windows(2).find(|pair| pair[0] == pair[1]) {
        let guest_path = pair[0].escape_debug();
        return Err(RuleError::new(format!("two directories are granted as `{guest_path}`")));
    }
    // A control character could hide or forge a rule when a person reads the rules to accept them.
    let rules = grant.rules.files.iter();
    let paths = rules
        .flat_map(|rule| [rule.host.to_string_lossy(), Cow::from(&rule.guest)])
        .chain(grant.directory.iter().map(|directory| directory.to_string_lossy()));
    let names = grant
        .rules
        .tools
        .iter()
        .chain(&grant.rules.context)
        .chain(grant.rules.config.keys());
    if paths
        .chain(names.map(Cow::from))
        .any(|text| text.chars().any(char::is_control))
    {
        return Err(RuleError::new("a rule contains a control character"));
    }
    #[cfg(not(feature = "network"))]
    if !grant.rules.http.is_empty() {
        return Err(RuleError::new(
            "`http` needs the `network` feature, without which this host was built",
        ));
    }
    Ok(())
}

fn parse_digest(text: &str) -> Result<String, RuleError> {
    let hex = text.strip_prefix("sha256:").unwrap_or(text).to_ascii_lowercase();
    if hex.len() == 64 && hex.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        Ok(hex)
    } else {
        Err(RuleError::new("a digest is `sha256:` and 64 hex digits"))
    }
}

/// A grant that an operator adds to a file, or an application to its host.
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
    /// Returns whether earlier grants contain all rules of this grant. Compares only permanent grants for the same plugin and
    /// version.
    pub(super) fn is_covered_by(&self, grants: &[Grant]) -> bool {
        let mut missing_rules = self.rules.clone();
        for grant in grants.iter().filter(|grant| self.can_replace(grant)) {
            missing_rules.remove_equal(&grant.rules);
        }
        missing_rules == GrantRules::default()
    }

    /// Returns whether this grant can replace rules of an earlier one: both are permanent, and for the same plugin and version.
    pub(super) fn can_replace(&self, earlier: &Grant) -> bool {
        let are_permanent = self.scope == GrantScope::Always && earlier.scope == GrantScope::Always;
        are_permanent && earlier.plugin == self.plugin && earlier.version == self.version
    }

    /// Creates the [`Grant`] of an application, which has no position in a file.
    ///
    /// # Errors
    /// For a name that no plugin can have, an invalid digest, and rules that would be invalid in a grants file.
    pub(crate) fn into_grant(self) -> Result<Grant, RuleError> {
        let grant = Grant {
            position: None,
            plugin: self.plugin,
            version: match self.version {
                GrantedVersion::Digest(digest) => GrantedVersion::Digest(parse_digest(&digest)?),
                GrantedVersion::Any => GrantedVersion::Any,
            },
            scope: self.scope,
            issued: Some(unix_nanoseconds()),
            directory: None,
            rules: self.rules,
        };
        check_grant(&grant)?;
        Ok(grant)
    }

    /// Converts the grant to a table of the file. `directory` is that of the plugin, if it is known. `issued` is in nanoseconds since 1970, and is omitted from a permanent grant,
    /// which is never used up.
    pub(super) fn to_table(&self, issued: u64, directory: Option<&Path>) -> Result<Table, String> {
        let mut table = Table::new();
        table["plugin"] = toml_edit::value(&self.plugin);
        match &self.version {
            GrantedVersion::Digest(digest) => table["digest"] = toml_edit::value(format!("sha256:{digest}")),
            GrantedVersion::Any => table["any-version"] = toml_edit::value(true),
        }
        if self.scope != GrantScope::Always {
            table["scope"] = toml_edit::value(self.scope.to_string());
            table["issued"] = toml_edit::value(i64::try_from(issued).unwrap_or(i64::MAX));
        }
        if let Some(directory) = directory.and_then(Path::to_str) {
            table["directory"] = toml_edit::value(directory);
        }
        for (key, item) in table_items(&self.rules)? {
            table[&key] = item;
        }
        Ok(table)
    }
}

/// Removes the rules that are in `before` but not in `after` from a table of the file. Keys without a removed rule keep their
/// text.
pub(super) fn remove_rules(table: &mut Table, before: &GrantRules, after: &GrantRules) -> Result<(), String> {
    let after = table_items(after)?;
    for (key, item) in table_items(before)? {
        match after.iter().find(|(after_key, _)| *after_key == key) {
            None => {
                table.remove(&key);
            }
            Some((_, remaining)) if remaining.to_string() != item.to_string() => table[&key] = remaining.clone(),
            Some(_) => {}
        }
    }
    Ok(())
}

/// Converts rules to the items of a grant's table, with one item for each kind of rule. An item has a key, such as `http`, and
/// an inline value.
fn table_items(rules: &GrantRules) -> Result<Vec<(String, Item)>, String> {
    let text = toml::to_string(rules).map_err(|error| error.to_string())?;
    let document: DocumentMut = text.parse().map_err(|error: toml_edit::TomlError| error.to_string())?;
    let to_inline = |(key, item): (&str, &Item)| {
        let mut item = item.clone();
        // Converts tables to inline values, so that each item is one line of the file.
        item.make_value();
        if let Some(value) = item.as_value_mut() {
            value.decor_mut().clear();
        }
        (key.to_owned(), item)
    };
    Ok(document.iter().map(to_inline).collect())
}

/// Returns the seconds since 1970.
pub(super) fn unix_seconds() -> u64 {
    time_since_1970().as_secs()
}

/// Returns the nanoseconds since 1970. With only the seconds, equal grants of the same second would have the same identity.
pub(super) fn unix_nanoseconds() -> u64 {
    u64::try_from(time_since_1970().as_nanos()).unwrap_or(u64::MAX)
}

fn time_since_1970() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}
