//! The grants file on disk: reading it, and adding and revoking grants.

use std::collections::HashMap;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde_json::{Value as Json, json};
use toml_edit::{ArrayOfTables, DocumentMut, Item};

use super::directory_record::DirectoryRecord;
use super::error::{GrantsFileError, GrantsFileErrorReason};
use super::format::{NewGrant, unix_nanoseconds, unix_seconds};
use super::rule_changes::{check_directories, reduce_rules};
use super::rule_lookup::find_rule;
use super::use_record::UseRecord;
use super::writable_record::WritableRecord;
use crate::grants::{Grant, GrantRules, GrantScope, Grants, GrantsError};
use toolwit_core::file::{LockedFile, private_options, read_file, sibling};
use toolwit_core::limits::GRANTS_BYTES_MAX;
use toolwit_core::text::sha256;

/// The content that a grants file has before it exists.
const EMPTY_FILE: &str = "version = 1\n";

/// An operator's grants file.
///
/// Adding or revoking a grant keeps the comments and the order of the other grants. A change replaces the file atomically
/// under a lock: a reader sees the old or the new content, and concurrent changes are not lost. Each change is recorded in
/// a log next to the file.
///
/// ```
/// use toolwit_sandbox::{GrantsFile, NewGrant};
/// use toolwit_sandbox::grants::{GrantRules, GrantScope, GrantedVersion, HttpRule};
///
/// # fn example(path: std::path::PathBuf) -> Result<(), Box<dyn std::error::Error>> {
/// let file = GrantsFile::new(path);
/// file.grant(&NewGrant {
///     plugin: "fetch".to_owned(),
///     version: GrantedVersion::Any,
///     scope: GrantScope::Always,
///     rules: GrantRules {
///         http: vec![HttpRule::parse("GET https://api.example.com/v1")?],
///         ..GrantRules::default()
///     },
/// })?;
/// assert_eq!(file.read()?.grants.len(), 1);
/// assert_eq!(file.revoke("fetch")?, 1);
/// # Ok(())
/// # }
/// # let directory = tempfile::tempdir().unwrap();
/// # example(directory.path().join("grants.toml")).unwrap();
/// ```
#[derive(Clone, Debug)]
pub struct GrantsFile {
    path: PathBuf,
}

/// The checked content of a grants file.
#[derive(Clone, Debug)]
pub struct GrantsContent {
    text: String,
    grants: Grants,
}

impl GrantsContent {
    /// Checks the text of a grants file.
    ///
    /// # Errors
    /// If the text is not valid; see [`Grants::parse`].
    pub fn parse(text: String) -> Result<Self, GrantsError> {
        let grants = Grants::parse(text.as_bytes())?;
        Ok(Self { text, grants })
    }

    /// Returns the text.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the grants.
    #[must_use]
    pub fn grants(&self) -> &Grants {
        &self.grants
    }

    /// Returns the SHA-256 of the text, in hex.
    #[must_use]
    pub fn digest(&self) -> String {
        sha256(&self.text)
    }
}

/// A checked change of the grants, which is not written yet.
struct PlannedChange {
    lock: LockedFile,
    /// The new content of the file.
    text: String,
    /// Whether the new content must be written.
    is_changed: bool,
    /// The descriptions of the changed rules.
    changed_rules: Vec<String>,
    log_line: Json,
}

impl GrantsFile {
    /// Creates a handle to the file at `path`. The file need not exist.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// Returns the path of the file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads and checks the file. A file that does not exist grants nothing.
    ///
    /// # Errors
    /// [`GrantsFileErrorReason::Read`] and [`GrantsFileErrorReason::Invalid`].
    pub fn read(&self) -> Result<Grants, GrantsFileError> {
        Ok(self.read_text_and_grants()?.1)
    }

    /// Reads and checks the file, and returns its text with the grants. The file can change at any time, so a program that asks a
    /// person to accept the grants must show and accept the same `GrantsContent`.
    ///
    /// # Errors
    /// Those of [`GrantsFile::read`].
    pub fn content(&self) -> Result<GrantsContent, GrantsFileError> {
        let (text, grants) = self.read_text_and_grants()?;
        Ok(GrantsContent { text, grants })
    }

    /// Replaces the content of the file, which is created if it does not exist.
    ///
    /// # Errors
    /// [`GrantsFileErrorReason::Write`].
    pub fn replace(&self, content: &GrantsContent) -> Result<(), GrantsFileError> {
        let log_line = json!({"time": unix_seconds(), "action": "replace", "digest": content.digest()});
        let write = || {
            let file = LockedFile::acquire(&self.path)?;
            self.write(&file, content.text.as_bytes(), &log_line)
        };
        write().map_err(|error| self.error(GrantsFileErrorReason::Write(error)))
    }

    /// Adds a grant at the end of the file, which is created if it does not exist. Returns whether the file changed.
    ///
    /// A permanent grant replaces rules of earlier permanent grants for the same plugin and version: equal rules, and for example
    /// rules for the same guest path. So repeated grants do not accumulate. Used grants of the plugin for one call are removed. A
    /// directory that was replaced since it was granted is accepted.
    ///
    /// # Errors
    /// If the file cannot be read or changed, and [`GrantsFileErrorReason::NotGrantable`] for a rule that no host could
    /// enforce, such as a directory that does not exist. [`Plugin::check_grant`](crate::Plugin::check_grant) also
    /// refuses rules that this host cannot enforce.
    pub fn grant(&self, grant: &NewGrant) -> Result<bool, GrantsFileError> {
        self.grant_in(grant, None)
    }

    /// Adds a grant like [`GrantsFile::grant`], for the plugin in this directory; see [`Grant::directory`].
    ///
    /// # Errors
    /// Those of [`GrantsFile::grant`].
    pub fn grant_in(&self, grant: &NewGrant, directory: Option<&Path>) -> Result<bool, GrantsFileError> {
        let table = grant
            .to_table(unix_nanoseconds(), directory)
            .map_err(|why| self.error(GrantsFileErrorReason::NotGrantable(why)))?;
        let record = DirectoryRecord::new(Some(self.path.clone()));
        let mut directories = HashMap::new();
        let change = self.plan_change("grant", &grant.plugin, |tables, grants| {
            directories = check_directories(&grant.rules, grants, &self.path)?;
            let is_directory_replaced = record
                .has_replaced_directory(&directories)
                .map_err(GrantsFileErrorReason::Read)?;
            let used_identities = UseRecord::of(&self.path).read().map_err(GrantsFileErrorReason::Read)?;
            let is_used_up =
                |earlier: &Grant| earlier.scope == GrantScope::Once && used_identities.contains(&earlier.identity());
            if grant.scope == GrantScope::Always && grant.is_covered_by(grants) && !is_directory_replaced {
                return Ok(Vec::new());
            }
            for (index, earlier) in grants
                .iter()
                .enumerate()
                .rev()
                .filter(|(_, earlier)| earlier.plugin == grant.plugin)
            {
                let mut rules = earlier.rules.clone();
                if is_used_up(earlier) {
                    rules = GrantRules::default();
                } else if grant.can_replace(earlier) {
                    rules.remove_replaced_by(&grant.rules);
                }
                reduce_rules(tables, index, &earlier.rules, &rules)?;
            }
            tables.push(table);
            Ok(grant.rules.describe())
        })?;
        if change.is_changed {
            record
                .accept_replaced(&directories, || self.write_change(&change))
                .map_err(|error| self.error(GrantsFileErrorReason::Write(error)))?;
        }
        Ok(change.is_changed)
    }

    /// Removes all grants of a plugin. Returns the number of removed grants.
    ///
    /// # Errors
    /// If the file cannot be read or changed, and [`GrantsFileErrorReason::NotGranted`] if the plugin has no grant.
    pub fn revoke(&self, plugin: &str) -> Result<usize, GrantsFileError> {
        let mut removed_count = 0;
        self.change("revoke", plugin, |tables, grants| {
            let plugin_grants: Vec<_> = grants.iter().filter(|grant| grant.plugin == plugin).collect();
            removed_count = plugin_grants.len();
            if removed_count == 0 {
                return Err(GrantsFileErrorReason::NotGranted(plugin.to_owned()));
            }
            tables.retain(|table| table.get("plugin").and_then(Item::as_str) != Some(plugin));
            Ok(plugin_grants.iter().flat_map(|grant| grant.rules.describe()).collect())
        })?;
        Ok(removed_count)
    }

    /// Removes one rule from all grants of a plugin. `rule` is the text of the rule as in [`GrantRules::describe`], or its
    /// first words. Returns the full text of the rule.
    ///
    /// A used grant for one call or one conversation that contains the rule is removed with all its rules.
    ///
    /// # Errors
    /// If the file cannot be read or changed, [`GrantsFileErrorReason::NotGranted`] if the plugin has no grant, and
    /// [`GrantsFileErrorReason::NotOneRule`] unless the text identifies exactly one rule.
    pub fn revoke_rule(&self, plugin: &str, rule: &str) -> Result<String, GrantsFileError> {
        let revoked_rules = self.change("revoke", plugin, |tables, grants| {
            let used_identities = UseRecord::of(&self.path).read().map_err(GrantsFileErrorReason::Read)?;
            let revoked_rule = find_rule(grants, plugin, rule)?;
            let plugin_grants = grants.iter().enumerate().filter(|(_, grant)| grant.plugin == plugin);
            for (index, grant) in plugin_grants.rev() {
                let mut rules = grant.rules.clone();
                rules.retain(|description| description != revoked_rule);
                // The identity of a used grant depends on its rules: with fewer rules, the grant would count as unused.
                if rules != grant.rules && used_identities.contains(&grant.identity()) {
                    rules = GrantRules::default();
                }
                reduce_rules(tables, index, &grant.rules, &rules)?;
            }
            Ok(vec![revoked_rule])
        })?;
        Ok(revoked_rules.concat())
    }

    /// Checks the records next to the file: those of used grants, of granted directories and of writable directories.
    ///
    /// # Errors
    /// [`GrantsFileErrorReason::Read`] if a record cannot be read or is damaged. Rules that depend on it allow nothing then.
    pub fn check_records(&self) -> Result<(), GrantsFileError> {
        let path = Some(self.path.clone());
        let read = UseRecord::of(&self.path)
            .read()
            .and_then(|_| DirectoryRecord::new(path).read())
            .and_then(|_| WritableRecord::next_to(Some(&self.path)).read());
        read.map(drop)
            .map_err(|error| self.error(GrantsFileErrorReason::Read(error)))
    }

    /// Returns whether a grant for one call, or for one conversation, has been used.
    ///
    /// # Errors
    /// [`GrantsFileErrorReason::Read`].
    pub fn is_used(&self, grant: &Grant) -> Result<bool, GrantsFileError> {
        match UseRecord::of(&self.path).read() {
            Ok(identities) => Ok(identities.contains(&grant.identity())),
            Err(error) => Err(self.error(GrantsFileErrorReason::Read(error))),
        }
    }

    /// Changes the grants under the lock. `edit` and this function return the descriptions of the changed rules.
    fn change(
        &self,
        action: &str,
        plugin: &str,
        edit: impl FnOnce(&mut ArrayOfTables, &[Grant]) -> Result<Vec<String>, GrantsFileErrorReason>,
    ) -> Result<Vec<String>, GrantsFileError> {
        let change = self.plan_change(action, plugin, edit)?;
        if change.is_changed {
            let written = self.write_change(&change);
            written.map_err(|error| self.error(GrantsFileErrorReason::Write(error)))?;
        }
        Ok(change.changed_rules)
    }

    /// Acquires the lock, and computes and checks a change of the grants. Does not change the file. `edit` changes the tables of
    /// the grants, and returns the descriptions of the changed rules.
    fn plan_change(
        &self,
        action: &str,
        plugin: &str,
        edit: impl FnOnce(&mut ArrayOfTables, &[Grant]) -> Result<Vec<String>, GrantsFileErrorReason>,
    ) -> Result<PlannedChange, GrantsFileError> {
        let lock = LockedFile::acquire(&self.path).map_err(|error| self.error(GrantsFileErrorReason::Write(error)))?;
        let (text, grants) = self.read_text_and_grants()?;
        let mut document: DocumentMut = text.parse().map_err(|error: toml_edit::TomlError| {
            self.error(GrantsFileErrorReason::NotGrantable(error.to_string()))
        })?;
        let tables = document
            .entry("grant")
            .or_insert_with(|| Item::ArrayOfTables(ArrayOfTables::new()))
            .as_array_of_tables_mut()
            .ok_or_else(|| self.error(GrantsFileErrorReason::InlineGrants))?;
        let table_count = tables.len();
        let changed_rules = edit(tables, &grants.grants).map_err(|reason| self.error(reason))?;
        // A grant without rules can be removed too.
        let is_changed = !changed_rules.is_empty() || tables.len() < table_count;
        let text = document.to_string();
        if is_changed {
            Grants::parse(text.as_bytes())
                .map_err(|error| self.error(GrantsFileErrorReason::NotGrantable(error.to_string())))?;
        }
        Ok(PlannedChange {
            lock,
            text,
            log_line: json!({"time": unix_seconds(), "action": action, "plugin": plugin, "what": changed_rules}),
            is_changed,
            changed_rules,
        })
    }

    fn write_change(&self, change: &PlannedChange) -> io::Result<()> {
        self.write(&change.lock, change.text.as_bytes(), &change.log_line)
    }

    /// Replaces the file and appends a line to the log. If the line cannot be written, restores the earlier content of the file.
    fn write(&self, file: &LockedFile, content: &[u8], log_line: &Json) -> io::Result<()> {
        let mut log = private_options()
            .create(true)
            .append(true)
            .open(sibling(&self.path, ".log"))?;
        let earlier_content = match fs::read(&self.path) {
            Ok(content) => Some(content),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        file.replace(content)?;
        let log_result = log
            .write_all(format!("{log_line}\n").as_bytes())
            .and_then(|()| log.sync_data());
        log_result.inspect_err(|_| {
            let _ = match &earlier_content {
                Some(earlier_content) => file.replace(earlier_content),
                None => fs::remove_file(&self.path),
            };
        })
    }

    fn read_text_and_grants(&self) -> Result<(String, Grants), GrantsFileError> {
        let bytes = match read_file(&self.path, GRANTS_BYTES_MAX) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => EMPTY_FILE.as_bytes().to_vec(),
            Err(error) => return Err(self.error(GrantsFileErrorReason::Read(error))),
        };
        let grants = Grants::parse(&bytes).map_err(|error| self.error(GrantsFileErrorReason::Invalid(error)))?;
        Ok((String::from_utf8_lossy(&bytes).into_owned(), grants))
    }

    fn error(&self, reason: GrantsFileErrorReason) -> GrantsFileError {
        GrantsFileError {
            path: self.path.clone(),
            reason,
        }
    }
}
