//! Resolving the path of a granted directory, one name at a time.

use std::fs::File;
use std::io;
use std::path::{Component, Path, PathBuf};

use cap_primitives::ambient_authority;
use cap_primitives::fs::{FollowSymlinks, open_ambient_dir, open_dir_nofollow, read_link_contents, stat};

use super::grantable_directories::WritableRoots;
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
}

/// Opens the directory at an absolute path.
///
/// Links are followed, except inside a directory that some grant makes writable. There, a plugin chooses where a link
/// leads.
///
/// # Errors
/// If the path does not exist, is not a directory or has too many links, and for a link inside or through a writable
/// directory.
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
            if current.is_writable {
                let why = format!(
                    "a link leads through {}, which a plugin can write to",
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
        let Some(current) = self.directories.last().filter(|current| !current.is_writable) else {
            let link = self.directories.last().map(|current| current.path.join(name));
            return Err(writable_link_error(&link.unwrap_or_default()));
        };
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
    /// Opens the root directory of an absolute path.
    fn root_of(path: &Path, writable: &WritableRoots) -> io::Result<Self> {
        let is_root = |component: &Component<'_>| matches!(component, Component::Prefix(_) | Component::RootDir);
        let root: PathBuf = path.components().take_while(is_root).collect();
        let handle = open_ambient_dir(&root, ambient_authority())?;
        let identity = DirectoryIdentity::of(&handle, &root)?;
        Ok(Self {
            is_writable: writable.contains(identity.inode()),
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
            is_writable: self.is_writable || writable.contains(identity.inode()),
            has_link: false,
            is_inside_writable_directory: self.is_writable,
            handle,
            path,
            identity,
        })
    }
}

fn writable_link_error(link: &Path) -> io::Error {
    io::Error::other(format!(
        "{} is a link inside a directory that a plugin can write to",
        link.display()
    ))
}
