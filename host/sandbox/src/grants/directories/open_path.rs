//! Resolving the path of a granted directory, one name at a time.

use std::fs::File;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use cap_primitives::ambient_authority;
use cap_primitives::fs::{FollowSymlinks, open_ambient_dir, open_dir_nofollow, read_link_contents, stat};

use super::grantable_directories::{WritableRoots, real_path};
use super::identity::DirectoryIdentity;

/// The maximum number of links in a path, as on Linux.
const LINKS_MAX: usize = 40;

/// An open directory on the way to a granted directory, or the granted directory itself.
pub(super) struct ResolvedDirectory {
    pub(super) handle: File,
    /// The real path, without links.
    pub(super) path: PathBuf,
    pub(super) identity: DirectoryIdentity,
    /// Whether the directory is inside a directory that some grant makes writable, at any depth.
    pub(super) is_inside_writable_directory: bool,
    /// Whether a link was followed to reach the directory. Set only for the last directory of a path.
    pub(super) has_link: bool,
    /// Whether a plugin can write to this directory: a grant makes this directory or one that contains it writable.
    is_writable: bool,
    /// Whether a plugin could write to this directory under a grant on record.
    was_writable: bool,
}

/// Opens the directory at an absolute path.
///
/// Links are followed, except inside a directory that some grant makes or made writable. There, a plugin chooses or chose
/// where a link leads.
///
/// # Errors
/// If the path does not exist, is not a directory or has too many links, and for a link inside or through a directory
/// that is or was writable.
pub(super) fn open_path(path: &Path, writable: &WritableRoots) -> io::Result<ResolvedDirectory> {
    let mut walk = PathWalk {
        directories: vec![ResolvedDirectory::root_of(path, writable)?],
        names: Vec::new(),
        link_count: 0,
    };
    walk.push_names(path);
    while let Some(name) = walk.names.pop() {
        walk.step(&name, writable)?;
    }
    let directory = walk.directories.pop();
    let mut directory = directory.ok_or_else(|| io::Error::other("the path has no root"))?;
    directory.has_link = walk.link_count > 0;
    Ok(directory)
}

/// Returns the real path of the directory of a file, if a recorded directory is or contains it. A link at the path of the file
/// is followed.
///
/// # Errors
/// As [`open_path`], except that a directory that does not exist is no error.
pub(crate) fn writable_directory_of(file: &Path, recorded: Arc<[DirectoryIdentity]>) -> io::Result<Option<PathBuf>> {
    let roots = WritableRoots::of([], recorded);
    let mut file = std::path::absolute(file)?;
    for _ in 0..LINKS_MAX {
        let (Some(parent), Some(name)) = (file.parent(), file.file_name()) else {
            return Ok(None);
        };
        let directory = match open_path(parent, &roots) {
            Ok(directory) => directory,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        if directory.was_writable {
            return Ok(Some(directory.path));
        }
        match read_link_contents(&directory.handle, Path::new(name)) {
            Ok(target) => file = directory.path.join(target),
            Err(_) => return Ok(None),
        }
    }
    Err(io::Error::other("it has too many links"))
}

/// Returns the real path of a file or directory, and the places of the links on the way to it. A plugin that can write to one
/// of them decides which file the path means.
pub(crate) fn paths_to(path: &Path) -> Vec<PathBuf> {
    let mut paths = vec![real_path(path)];
    let mut unresolved = vec![std::path::absolute(path).unwrap_or_else(|_| path.to_owned())];
    while let Some(path) = unresolved.pop().filter(|_| paths.len() <= LINKS_MAX) {
        for ancestor in path.ancestors() {
            let (Some(parent), Some(name), Ok(target)) =
                (ancestor.parent(), ancestor.file_name(), std::fs::read_link(ancestor))
            else {
                continue;
            };
            let place = real_path(parent).join(name);
            if !paths.contains(&place) {
                unresolved.push(parent.join(target));
                paths.push(place);
            }
        }
    }
    paths
}

/// Returns the identity of the directory at a path.
#[cfg(test)]
pub(crate) fn identity_of(path: &Path) -> io::Result<DirectoryIdentity> {
    Ok(open_path(path, &WritableRoots::default())?.identity)
}

/// The state of resolving a path.
struct PathWalk {
    /// The open directories from the root to the current one. Not empty until the walk ends.
    directories: Vec<ResolvedDirectory>,
    /// The names that remain. The last one is resolved next.
    names: Vec<PathBuf>,
    /// The number of links that were followed.
    link_count: usize,
}

impl PathWalk {
    /// Adds the names of a path, which are resolved before the remaining names.
    fn push_names(&mut self, path: &Path) {
        let components = path.components().rev();
        let names = components.filter(|component| matches!(component, Component::Normal(_) | Component::ParentDir));
        self.names.extend(names.map(|name| PathBuf::from(name.as_os_str())));
    }

    /// Enters the directory with this name, returns to the parent for `..`, or follows the link with this name.
    fn step(&mut self, name: &Path, writable: &WritableRoots) -> io::Result<()> {
        let Some(current) = self.directories.last() else {
            return Err(io::Error::other("the path has no root"));
        };
        if name == Path::new("..") {
            // Only the target of a link contains `..`. No link may lead into a writable directory and out of it again.
            if let Some(writability) = current.writability() {
                let why = format!(
                    "a link leads through {}, which a plugin {writability}",
                    current.path.display()
                );
                return Err(io::Error::other(why));
            }
            if self.directories.len() > 1 {
                self.directories.pop();
            }
            return Ok(());
        }
        let metadata = stat(&current.handle, name, FollowSymlinks::No)?;
        if metadata.is_symlink() {
            return self.follow_link(name, writable);
        }
        if !metadata.is_dir() {
            return Err(io::Error::other("it is not a directory"));
        }
        let next = current.enter(name, writable)?;
        self.directories.push(next);
        Ok(())
    }

    /// Follows the link with this name: the target of the link replaces the name.
    fn follow_link(&mut self, name: &Path, writable: &WritableRoots) -> io::Result<()> {
        let Some(current) = self.directories.last() else {
            return Err(io::Error::other("the path has no root"));
        };
        if let Some(writability) = current.writability() {
            let link = current.path.join(name);
            let why = format!(
                "{} is a link inside a directory that a plugin {writability}",
                link.display()
            );
            return Err(io::Error::other(why));
        }
        self.link_count += 1;
        if self.link_count > LINKS_MAX {
            return Err(io::Error::other("it has too many links"));
        }
        let target = read_link_contents(&current.handle, name)?;
        if target.has_root() {
            self.directories = vec![ResolvedDirectory::root_of(&target, writable)?];
        }
        self.push_names(&target);
        Ok(())
    }
}

impl ResolvedDirectory {
    /// Describes whether and when a plugin can or could write to the directory, for errors. `None` if no grant on record
    /// allows it.
    fn writability(&self) -> Option<&'static str> {
        match (self.is_writable, self.was_writable) {
            (true, _) => Some("can write to"),
            (false, true) => Some("could write to under another grant; grant the directory to which the link leads"),
            (false, false) => None,
        }
    }

    /// Opens the root directory of an absolute path.
    fn root_of(path: &Path, writable: &WritableRoots) -> io::Result<Self> {
        let is_root = |component: &Component<'_>| matches!(component, Component::Prefix(_) | Component::RootDir);
        let root: PathBuf = path.components().take_while(is_root).collect();
        let handle = open_ambient_dir(&root, ambient_authority())?;
        let identity = DirectoryIdentity::of(&handle, &root)?;
        Ok(Self {
            is_writable: writable.contains(identity),
            was_writable: writable.has_recorded(identity),
            has_link: false,
            is_inside_writable_directory: false,
            handle,
            path: root,
            identity,
        })
    }

    /// Opens the directory with this name inside this directory, without following a link.
    fn enter(&self, name: &Path, writable: &WritableRoots) -> io::Result<Self> {
        let path = self.path.join(name);
        let handle = open_dir_nofollow(&self.handle, name)?;
        let identity = DirectoryIdentity::of(&handle, &path)?;
        Ok(Self {
            is_writable: self.is_writable || writable.contains(identity),
            was_writable: self.was_writable || writable.has_recorded(identity),
            has_link: false,
            is_inside_writable_directory: self.is_writable,
            handle,
            path,
            identity,
        })
    }
}

#[cfg(all(test, unix))]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn the_links_on_the_way_to_a_file_belong_to_its_path() {
        let root = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(root.path()).unwrap();
        for name in ["a", "b", "c"] {
            fs::create_dir(root.join(name)).unwrap();
        }
        fs::write(root.join("c/mcp.toml"), "").unwrap();
        symlink("../b/second", root.join("a/first")).unwrap();
        symlink("../c", root.join("b/second")).unwrap();
        let mut paths = paths_to(&root.join("a/first/mcp.toml"));
        paths.sort();
        assert_eq!(paths, ["a/first", "b/second", "c/mcp.toml"].map(|path| root.join(path)));
        assert_eq!(paths_to(&root.join("a/new.toml")), [root.join("a/new.toml")]);
        symlink("loop", root.join("loop")).unwrap();
        assert!(!paths_to(&root.join("loop/x")).is_empty());
    }
}
