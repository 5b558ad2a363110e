//! A granted directory, opened when the grants are read.

use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use super::grantable_directories::GrantableDirectories;
use super::identity::{DirectoryIdentity, RecordedDirectory};
use super::open_files::OpenFiles;
use super::quota::DirectoryQuota;
use crate::grants::DirectoryRule;

/// An open directory of the host. It refers to the same directory even if its path is renamed or replaced by a link.
#[derive(Debug)]
pub(crate) struct OpenDirectory {
    handle: Arc<File>,
    /// The real path, without links, at the time of opening.
    pub(crate) path: PathBuf,
    pub(crate) identity: DirectoryIdentity,
    /// Whether the directory is inside a directory that some grant makes writable, so that a plugin can replace it.
    pub(crate) is_inside_writable_directory: bool,
    /// Whether a link led to the directory.
    pub(crate) has_link: bool,
    /// The path at which the guest sees the directory.
    pub(crate) guest: String,
    pub(crate) quota: Arc<DirectoryQuota>,
    /// The files that guests have open in granted directories.
    files: Arc<OpenFiles>,
}

impl OpenDirectory {
    /// Opens the directory of a rule. `recorded` is the entry for its path in the record of granted directories.
    ///
    /// # Errors
    /// If the directory does not exist, is not a directory or cannot be granted. Also if the directory is not the
    /// recorded one, in two cases: the recorded one was inside a writable directory, or a link leads to the new one. The
    /// link is refused even if it is not inside a writable directory now, because a plugin may have created it while
    /// another grants file, or a grant that was revoked later, allowed the plugin to write there.
    pub(crate) fn open(
        rule: &DirectoryRule,
        grantable: &GrantableDirectories,
        recorded: Option<RecordedDirectory>,
        files: &Arc<OpenFiles>,
    ) -> io::Result<Self> {
        let directory = grantable.resolve(rule)?;
        let is_replaced = |recorded: &RecordedDirectory| !directory.identity.matches_recorded(recorded.identity);
        match recorded.filter(is_replaced) {
            Some(recorded) if recorded.was_inside_writable_directory => {
                return Err(io::Error::other(
                    "the granted directory is no longer at this path, and a plugin could have replaced it; grant it again to use the new directory",
                ));
            }
            Some(_) if directory.has_link => {
                return Err(io::Error::other(
                    "a link leads to another directory than the granted directory; grant it again to use the new directory",
                ));
            }
            _ => {}
        }
        let handle = Arc::new(reopen_for_reading(directory.handle)?);
        let (path, quota_bytes) = (directory.path.clone(), rule.quota_bytes);
        Ok(Self {
            quota: Arc::new(DirectoryQuota::new(handle.clone(), path, quota_bytes, files.clone())),
            handle,
            path: directory.path,
            identity: directory.identity,
            is_inside_writable_directory: directory.is_inside_writable_directory,
            has_link: directory.has_link,
            guest: rule.guest.clone(),
            files: files.clone(),
        })
    }

    /// Checks that the directory of a rule can be granted. Returns its identity.
    ///
    /// # Errors
    /// If the directory does not exist, is not a directory, or cannot be granted.
    pub(crate) fn check(rule: &DirectoryRule, grantable: &GrantableDirectories) -> io::Result<DirectoryIdentity> {
        Ok(grantable.resolve(rule)?.identity)
    }

    /// Returns whether a plugin could make the path lead to a different directory later. A host that starts after such a
    /// change notices it only by the record of granted directories.
    pub(crate) fn must_be_recorded(&self) -> bool {
        self.is_inside_writable_directory || self.has_link
    }

    /// Duplicates the handle of the directory.
    pub(crate) fn handle(&self) -> io::Result<File> {
        self.handle.try_clone()
    }

    /// Returns whether the directory has been removed since it was opened.
    pub(crate) fn is_removed(&self) -> bool {
        is_removed(&self.handle)
    }

    /// Records that a guest opened a file through the directory.
    pub(crate) fn track(&self, file: &Arc<File>) {
        self.files.track(&self.path, file);
    }
}

/// Opens a directory again, for reading its entries. The handle from resolving the path may only allow access by path
/// (`O_PATH` on Linux).
#[cfg(unix)]
fn reopen_for_reading(directory: File) -> io::Result<File> {
    use cap_primitives::fs::{OpenOptions, open};
    open(&directory, std::path::Path::new("."), OpenOptions::new().read(true))
}

#[cfg(not(unix))]
#[allow(clippy::unnecessary_wraps, reason = "opening can fail on other platforms")]
fn reopen_for_reading(directory: File) -> io::Result<File> {
    Ok(directory)
}

#[cfg(unix)]
fn is_removed(directory: &File) -> bool {
    use std::os::unix::fs::MetadataExt;
    directory.metadata().is_ok_and(|metadata| metadata.nlink() == 0)
}

/// An open directory cannot be removed on other platforms.
#[cfg(not(unix))]
fn is_removed(_directory: &File) -> bool {
    false
}

#[cfg(all(test, unix))]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::path::Path;

    use super::*;
    use crate::grants::directories::WritableRoots;

    fn rule(host: &Path, access: &str) -> DirectoryRule {
        toml::from_str(&format!("host = {host:?}\nguest = \"/w\"\naccess = \"{access}\"")).unwrap()
    }

    fn open(
        rule: &DirectoryRule,
        grantable: &GrantableDirectories,
        recorded: Option<RecordedDirectory>,
    ) -> io::Result<OpenDirectory> {
        OpenDirectory::open(rule, grantable, recorded, &Arc::default())
    }

    /// Returns the directories that can be granted while all of these rules apply.
    fn grantable(rules: &[DirectoryRule]) -> GrantableDirectories {
        GrantableDirectories {
            writable: WritableRoots::of(rules, Arc::default()),
            ..GrantableDirectories::default()
        }
    }

    // attack: C3
    #[cfg(target_os = "linux")]
    #[test]
    fn kernel_file_systems_cannot_be_granted() {
        for host in ["/proc", "/proc/self", "/dev"] {
            let error = open(&rule(Path::new(host), "read"), &grantable(&[]), None).unwrap_err();
            assert!(error.to_string().contains("processes and devices"), "{host}: {error}");
        }
        open(
            &rule(tempfile::tempdir().unwrap().path(), "read"),
            &grantable(&[]),
            None,
        )
        .unwrap();
    }

    // attack: L1
    #[test]
    fn links_are_followed_only_outside_of_writable_directories() {
        let directory = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(directory.path()).unwrap();
        fs::create_dir_all(root.join("work/in")).unwrap();
        fs::create_dir(root.join("other")).unwrap();
        symlink("work", root.join("link")).unwrap();
        symlink(root.join("other"), root.join("work/absolute")).unwrap();
        symlink("../other", root.join("work/relative")).unwrap();
        symlink("link/../other", root.join("through")).unwrap();
        let writable = grantable(&[rule(&root.join("link"), "read-write")]);
        let opened = open(&rule(&root.join("link/in"), "read"), &writable, None).unwrap();
        assert_eq!(
            (opened.path, opened.is_inside_writable_directory),
            (root.join("work/in"), true)
        );
        for linked_path in ["work/absolute", "work/relative", "link/absolute", "through"] {
            let rule = rule(&root.join(linked_path), "read");
            let error = open(&rule, &writable, None).unwrap_err();
            assert!(
                error.to_string().contains("a plugin can write to"),
                "{linked_path}: {error}"
            );
            let opened = open(&rule, &grantable(&[]), None).unwrap();
            assert_eq!(
                (opened.path, opened.is_inside_writable_directory),
                (root.join("other"), false)
            );
        }
    }

    // attack: L17
    #[test]
    fn a_link_in_a_directory_that_was_writable_on_record_is_not_followed() {
        let directory = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(directory.path()).unwrap();
        for name in ["work/in", "other"] {
            fs::create_dir_all(root.join(name)).unwrap();
        }
        symlink("../other", root.join("work/planted")).unwrap();
        symlink("work", root.join("link")).unwrap();
        let work = open(&rule(&root.join("work"), "read"), &grantable(&[]), None).unwrap();
        let on_record = GrantableDirectories {
            writable: WritableRoots::of([], Arc::new([work.identity])),
            ..GrantableDirectories::default()
        };
        for planted in ["work/planted", "link/planted"] {
            let planted = rule(&root.join(planted), "read");
            let error = open(&planted, &on_record, None).unwrap_err().to_string();
            assert!(error.contains("could write to under another grant"), "{error}");
            assert!(open(&planted, &grantable(&[]), None).is_ok(), "nothing is on record");
        }
        let inside = open(&rule(&root.join("link/in"), "read"), &on_record, None).unwrap();
        assert!(!inside.is_inside_writable_directory, "no plugin can replace it now");
    }

    // attack: L1
    #[test]
    fn writable_directory_behind_a_planted_link_is_not_opened() {
        let directory = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(directory.path()).unwrap();
        fs::create_dir_all(root.join("work")).unwrap();
        fs::create_dir(root.join("other")).unwrap();
        symlink("../other", root.join("work/in")).unwrap();
        let rules = [root.join("work/in"), root.join("work")].map(|host| rule(&host, "read-write"));
        let grantable = grantable(&rules);
        assert!(open(&rules[0], &grantable, None).is_err());
        let outer = open(&rules[1], &grantable, None).unwrap();
        assert!(!outer.is_inside_writable_directory);
        let neighbour = open(&rule(&root.join("other"), "read"), &grantable, None).unwrap();
        assert!(
            !neighbour.is_inside_writable_directory,
            "the link made nothing writable"
        );
    }

    // attack: L2
    #[test]
    fn another_directory_at_the_path_of_a_recorded_one_is_not_opened() {
        let directory = tempfile::tempdir().unwrap();
        let host = directory.path().join("in");
        fs::create_dir(&host).unwrap();
        let opened = open(&rule(&host, "read"), &grantable(&[]), None).unwrap();
        let identity: DirectoryIdentity = opened.identity.to_string().parse().unwrap();
        let recorded = |was_inside_writable_directory| {
            Some(RecordedDirectory {
                identity,
                was_inside_writable_directory,
            })
        };
        assert!(open(&rule(&host, "read"), &grantable(&[]), recorded(true)).is_ok());
        assert!(!opened.is_removed());
        fs::remove_dir(&host).unwrap();
        assert!(opened.is_removed());
        fs::create_dir(&host).unwrap();
        let error = open(&rule(&host, "read"), &grantable(&[]), recorded(true)).unwrap_err();
        assert!(error.to_string().contains("grant it again"), "{error}");
        assert!(
            open(&rule(&host, "read"), &grantable(&[]), recorded(false)).is_ok(),
            "no plugin could replace it"
        );
        fs::rename(&host, directory.path().join("other")).unwrap();
        symlink("other", &host).unwrap();
        let error = open(&rule(&host, "read"), &grantable(&[]), recorded(false)).unwrap_err();
        assert!(error.to_string().contains("a link leads to another"), "{error}");
        assert!(open(&rule(&host, "read"), &grantable(&[]), None).is_ok());
    }

    // attack: L2
    #[test]
    fn a_directory_that_was_replaced_while_no_host_had_it_open_is_not_opened() {
        let directory = tempfile::tempdir().unwrap();
        let host = directory.path().join("in");
        fs::create_dir(&host).unwrap();
        let Ok(birth_time) = fs::metadata(&host).unwrap().created() else {
            return; // The file system does not report birth times.
        };
        let recorded = Some(RecordedDirectory {
            identity: open(&rule(&host, "read"), &grantable(&[]), None).unwrap().identity,
            was_inside_writable_directory: true,
        });
        open(&rule(&host, "read"), &grantable(&[]), recorded).unwrap();
        // The new directory usually has the inode of the old one. Its birth time differs as soon as the clock of the
        // file system advances.
        while fs::metadata(&host).unwrap().created().unwrap() == birth_time {
            fs::remove_dir(&host).unwrap();
            fs::create_dir(&host).unwrap();
        }
        let error = open(&rule(&host, "read"), &grantable(&[]), recorded).unwrap_err();
        assert!(error.to_string().contains("grant it again"), "{error}");
    }
}
