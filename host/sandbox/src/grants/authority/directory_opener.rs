//! Opening the directories that grants name.

use std::collections::{HashMap, HashSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::grants::directories::{
    DirectoryInode, DirectoryQuota, GrantableDirectories, OpenDirectory, OpenFiles, RecordedDirectory, WritableRoots,
    paths_to,
};
use crate::grants::file::{DirectoryRecord, WritableRecord};
use crate::grants::{AccessMode, DirectoryRule, FilePosition, Grant, GrantRules, UnenforceableRule};
use toolwit_core::{Error, ErrorKind, Phase};

/// A directory rule after the attempt to open its directory.
pub(super) struct OpenedRule {
    /// The path at which the guest sees the directory.
    pub(super) guest: String,
    /// The open directory, or the reason why it is not open.
    pub(super) directory: Result<Arc<OpenDirectory>, RefusedDirectory>,
}

/// A directory that cannot be opened.
pub(super) struct RefusedDirectory {
    pub(super) rule: UnenforceableRule,
    /// The path of a directory that does not exist, and may be created later. `None` if the directory is refused for
    /// another reason.
    missing_path: Option<PathBuf>,
}

impl OpenedRule {
    /// Returns whether opening the directory again would have another result: the open directory was removed, or a
    /// missing directory was created.
    pub(super) fn is_outdated(&self) -> bool {
        match &self.directory {
            Ok(directory) => directory.is_removed(),
            Err(refused) => refused.missing_path.as_deref().is_some_and(Path::exists),
        }
    }
}

/// The host's own files and directories, which cannot be granted as others can.
#[derive(Clone, Debug, Default)]
pub(crate) struct HostPaths {
    /// Files and directories to which no plugin gets access.
    pub(crate) protected: Vec<PathBuf>,
    /// Files and directories of plugins, which can be granted for reading only.
    pub(crate) plugins: Vec<PathBuf>,
    /// Other files and directories that can be granted for reading only.
    pub(crate) read_only: Vec<PathBuf>,
}

/// Opens the directories of grants. Compares them with the directories that were opened earlier, to notice replacements.
pub(super) struct DirectoryOpener {
    /// The directories that can be granted, without the writable directories, which depend on the grants.
    grantable: GrantableDirectories,
    /// The record of the directories that were opened earlier.
    record: DirectoryRecord,
    /// The record of the directories that were writable for a plugin earlier, also under other grants.
    writable_record: WritableRecord,
    /// The files that guests have open in granted directories.
    files: Arc<OpenFiles>,
    /// The quotas of writable directories. Rules with the same directory and the same limit share one quota.
    quotas: HashMap<(DirectoryInode, u64), Arc<DirectoryQuota>>,
}

impl DirectoryOpener {
    /// Creates an opener. By default, the record of writable directories is next to the grants file.
    pub(super) fn new(
        grants_file: Option<PathBuf>,
        host_paths: &HostPaths,
        writable_record: Option<WritableRecord>,
    ) -> Self {
        let real_paths = |paths: &[PathBuf]| paths.iter().flat_map(|path| paths_to(path)).collect();
        Self {
            grantable: GrantableDirectories {
                protected_paths: real_paths(&host_paths.protected),
                plugin_paths: real_paths(&host_paths.plugins),
                read_only_paths: real_paths(&host_paths.read_only),
                writable: WritableRoots::default(),
            },
            writable_record: writable_record.unwrap_or_else(|| WritableRecord::next_to(grants_file.as_deref())),
            record: DirectoryRecord::new(grants_file),
            files: Arc::default(),
            quotas: HashMap::new(),
        }
    }

    /// Checks that the directories of `rules` can be granted in addition to those of `grants`.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`] for the first directory that cannot be granted. The message contains its path.
    pub(super) fn check(&self, rules: &GrantRules, grants: &[Grant]) -> Result<(), Error> {
        let grantable = self.grantable_with(grants, rules);
        let grantable = grantable.map_err(|error| {
            Error::new(ErrorKind::Configuration, Phase::Registry, error.to_string()).with_source(error)
        })?;
        for rule in &rules.files {
            OpenDirectory::check(rule, &grantable).map_err(|error| {
                Error::new(ErrorKind::Configuration, Phase::Registry, refusal_reason(rule, &error)).with_suggestion(
                    "grant another directory; if this one contains files of the host, grant one inside it",
                )
            })?;
        }
        Ok(())
    }

    /// Opens the directories of all grants, and records them. Returns a list for each grant, in the order of its directory
    /// rules. Reads and writes the disk.
    pub(super) fn open(&mut self, grants: &[Grant]) -> Vec<Vec<OpenedRule>> {
        let grantable = self.grantable_with(grants, &GrantRules::default());
        let recorded = self.record.read();
        // A quota keeps its directory open, even after the directory was removed. So unused quotas are dropped.
        self.quotas.retain(|_, quota| Arc::strong_count(quota) > 1);
        let mut to_record = HashMap::new();
        let mut writable = Vec::new();
        let mut opened = Vec::with_capacity(grants.len());
        for grant in grants {
            let rules = grant.rules.files.iter();
            let opened_rules = rules.map(|rule| {
                let directory = self.open_rule(rule, grantable.as_ref(), recorded.as_ref());
                if let Ok(directory) = &directory {
                    let current = RecordedDirectory {
                        identity: directory.identity,
                        was_inside_writable_directory: directory.is_inside_writable_directory,
                    };
                    to_record.insert(rule.host.clone(), current);
                    if rule.access == AccessMode::ReadWrite {
                        writable.push((directory.path.clone(), directory.identity));
                    }
                }
                OpenedRule {
                    guest: rule.guest.clone(),
                    directory: directory.map_err(|error| refuse(rule, grant.position, &grant.plugin, &error)),
                }
            });
            opened.push(opened_rules.collect());
        }
        let quotas: Vec<_> = self.quotas.values().cloned().collect();
        quotas.iter().for_each(|quota| quota.set_outer(&quotas));
        if let Err(error) = self.writable_record.add(&writable) {
            tracing::warn!(%error, "writable directories could not be recorded; do not grant links inside them later");
        }
        if let Ok(recorded) = &recorded {
            // Only new and changed entries are written.
            to_record.retain(|path, current| {
                recorded
                    .get(path)
                    .is_none_or(|earlier| earlier.updated(*current) != *earlier)
            });
            // Without a new record, the host would not notice a replacement of these directories.
            let is_unrecorded = |(path, current): &(&PathBuf, &RecordedDirectory)| {
                recorded.get(*path).is_none_or(|earlier| !earlier.covers(**current))
            };
            let unrecorded = to_record.iter().filter(is_unrecorded);
            let unrecorded: HashSet<_> = unrecorded.map(|(path, _)| path.clone()).collect();
            if let Err(error) = self.record.add(to_record) {
                tracing::warn!(%error, "granted directories could not be recorded");
                close_unrecorded(&mut opened, grants, &unrecorded, &error);
            }
        }
        opened
    }

    fn open_rule(
        &mut self,
        rule: &DirectoryRule,
        grantable: Result<&GrantableDirectories, &io::Error>,
        recorded: Result<&HashMap<PathBuf, RecordedDirectory>, &io::Error>,
    ) -> io::Result<Arc<OpenDirectory>> {
        let unreadable = |error: &io::Error| io::Error::new(error.kind(), error.to_string());
        let (grantable, recorded) = (grantable.map_err(unreadable)?, recorded.map_err(unreadable)?);
        let earlier = recorded.get(&rule.host).copied();
        let mut directory = OpenDirectory::open(rule, grantable, earlier, &self.files)?;
        if rule.access == AccessMode::ReadWrite {
            let quota = self.quotas.entry((directory.identity.inode(), rule.quota_bytes));
            directory.quota = quota.or_insert(directory.quota).clone();
        }
        Ok(Arc::new(directory))
    }

    /// Returns the directories that can be granted while these grants and new rules apply.
    ///
    /// # Errors
    /// If the record of writable directories cannot be read.
    fn grantable_with(&self, grants: &[Grant], new_rules: &GrantRules) -> io::Result<GrantableDirectories> {
        let rules = grants
            .iter()
            .flat_map(|grant| &grant.rules.files)
            .chain(&new_rules.files);
        Ok(GrantableDirectories {
            writable: WritableRoots::of(rules, self.writable_record.read()?),
            ..self.grantable.clone()
        })
    }
}

/// Closes the unrecorded directories that a plugin could replace before the next start of the host, because the host
/// would not notice the replacement. The other directories stay open: no plugin can replace them before a grant makes a
/// directory above them writable. From then on, they must be recorded.
fn close_unrecorded(
    opened: &mut [Vec<OpenedRule>],
    grants: &[Grant],
    unrecorded: &HashSet<PathBuf>,
    error: &io::Error,
) {
    let why = io::Error::new(
        error.kind(),
        format!("it cannot be recorded, so the host would not notice a replacement: {error}"),
    );
    for (grant, opened_rules) in grants.iter().zip(opened) {
        for (rule, opened_rule) in grant.rules.files.iter().zip(opened_rules) {
            let must_be_recorded = opened_rule
                .directory
                .as_ref()
                .is_ok_and(|directory| directory.must_be_recorded());
            if must_be_recorded && unrecorded.contains(&rule.host) {
                opened_rule.directory = Err(RefusedDirectory {
                    // The directory exists; only its record is missing.
                    missing_path: None,
                    ..refuse(rule, grant.position, &grant.plugin, &why)
                });
            }
        }
    }
}

/// Logs that the directory of a rule cannot be opened. Returns the reason, and the path if the directory does not
/// exist.
fn refuse(rule: &DirectoryRule, position: Option<FilePosition>, plugin: &str, error: &io::Error) -> RefusedDirectory {
    let unenforceable = UnenforceableRule {
        position,
        reason: refusal_reason(rule, error),
    };
    tracing::warn!(plugin, %unenforceable, "the rule allows nothing");
    RefusedDirectory {
        rule: unenforceable,
        missing_path: (error.kind() == io::ErrorKind::NotFound).then(|| rule.host.clone()),
    }
}

fn refusal_reason(rule: &DirectoryRule, error: &io::Error) -> String {
    format!("the directory `{}` cannot be granted: {error}", rule.host.display())
}

#[cfg(all(test, unix))]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::fs;

    use super::*;
    use crate::grants::Grants;

    /// Opens the directories of two rules. Returns whether each is open.
    fn open(grants_file: &Path, rules: [(&Path, &str); 2]) -> [bool; 2] {
        let [(first, first_access), (second, second_access)] = rules;
        let text = format!(
            r#"
            version = 1
            [[grant]]
            plugin = "calc"
            any-version = true
            files = [
                {{ host = {first:?}, guest = "/first", access = "{first_access}" }},
                {{ host = {second:?}, guest = "/second", access = "{second_access}" }},
            ]"#
        );
        let grants = Grants::parse(text.as_bytes()).unwrap().grants;
        let opened = DirectoryOpener::new(Some(grants_file.to_owned()), &HostPaths::default(), None).open(&grants);
        let is_open = |index: usize| opened[0][index].directory.is_ok();
        [is_open(0), is_open(1)]
    }

    // attack: L1
    #[test]
    fn a_directory_that_could_be_replaced_is_open_only_if_it_is_recorded() {
        let root = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(root.path()).unwrap();
        let (work, inside, link) = (root.join("work"), root.join("work/inside"), root.join("link"));
        fs::create_dir_all(&inside).unwrap();
        std::os::unix::fs::symlink(&inside, &link).unwrap();
        let nested = [(&*work, "read-write"), (&*inside, "read")];
        let linked = [(&*link, "read"), (&*work, "read")];
        // The record cannot be locked, because its lock file is a directory.
        let unrecordable = root.join("unrecordable.toml");
        fs::create_dir(root.join("unrecordable.toml.lock")).unwrap();
        assert_eq!(open(&unrecordable, nested), [true, false]);
        assert_eq!(open(&unrecordable, linked), [false, true]);
        let recordable = root.join("grants.toml");
        assert_eq!(open(&recordable, nested), [true, true]);
        assert_eq!(open(&recordable, linked), [true, true]);
    }
}
