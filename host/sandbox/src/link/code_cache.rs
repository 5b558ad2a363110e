//! Machine code of compiled components, kept between processes in a private directory.
//!
//! Machine code is trusted by whoever maps it, so an entry is only used when it was written by this user: the directory
//! is closed to others, and every entry carries a keyed hash (BLAKE3 with a random key beside it) of its name and content.
//! An entry that is damaged, of another engine or not ours is ignored and written anew.

use std::collections::BTreeSet;
use std::collections::hash_map::DefaultHasher;
use std::fs::{self, File, OpenOptions};
use std::hash::{Hash, Hasher};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};

use wasmtime::component::Component;

use super::code_entries::Entry;
use super::engine::Engine;
use super::precompiled;

/// Length of a key and of a hash, in bytes.
const HASH_BYTES: usize = 32;

/// Machine code in a private directory of its own.
#[derive(Clone, Debug)]
pub struct CodeCache {
    directory: PathBuf,
    key: [u8; HASH_BYTES],
}

impl CodeCache {
    /// Opens a cache directory, and makes it with a fresh key when it is new.
    ///
    /// # Errors
    /// When it cannot be made, belongs to somebody else, or is open to others.
    pub fn open(directory: &Path) -> io::Result<Self> {
        create_private(directory)?;
        require_private(directory)?;
        Ok(Self {
            directory: directory.to_owned(),
            key: read_or_make_key(&directory.join("key"))?,
        })
    }

    /// Returns the directory.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Returns the digests of the components whose code is kept, of whatever engine.
    ///
    /// # Errors
    /// When the directory cannot be read.
    pub fn digests(&self) -> io::Result<BTreeSet<String>> {
        let digest = |entry: Entry| entry.name.split('-').next().map(str::to_owned);
        Ok(self.entries()?.into_iter().filter_map(digest).collect())
    }

    /// Maps the machine code of a component, if it is there and sound.
    pub(crate) fn load(&self, engine: &Engine, digest: &str) -> Option<Component> {
        let name = entry_name(engine, digest);
        let path = self.directory.join(&name);
        if !self.is_ours(&name, &path).unwrap_or(false) {
            return None;
        }
        match precompiled::map(&engine.wasmtime, &path) {
            Ok(component) => {
                self.used(&path);
                Some(component)
            }
            Err(error) => {
                tracing::debug!(%error, entry = name, "cached machine code does not fit and is compiled again");
                None
            }
        }
    }

    /// Keeps the machine code of a component. A failure costs time at the next start and nothing else.
    pub(crate) fn store(&self, engine: &Engine, digest: &str, component: &Component) {
        let name = entry_name(engine, digest);
        let kept = component
            .serialize()
            .map_err(io::Error::other)
            .and_then(|code| self.write(&name, &code))
            .and_then(|()| self.shrink_to(self.bytes_max()).map(|_| ()));
        if let Err(error) = kept {
            tracing::debug!(%error, entry = name, "machine code could not be cached");
        }
    }

    /// Writes code and hash to temporary files and renames them, the code last, so that no reader sees half of one.
    fn write(&self, name: &str, code: &[u8]) -> io::Result<()> {
        static COUNTER: AtomicU64 = AtomicU64::new(0);
        let hash = self.hash(name, code);
        let unique = format!(".{}.{}", process::id(), COUNTER.fetch_add(1, Ordering::Relaxed));
        for (suffix, content) in [(".hash", hash.as_bytes().as_slice()), ("", code)] {
            let temporary = self.directory.join(format!("{unique}{suffix}"));
            private_file(&temporary)?.write_all(content)?;
            fs::rename(&temporary, self.directory.join(format!("{name}{suffix}")))?;
        }
        Ok(())
    }

    fn is_ours(&self, name: &str, path: &Path) -> io::Result<bool> {
        let expected = fs::read(self.directory.join(format!("{name}.hash")))?;
        let Ok(expected) = <[u8; HASH_BYTES]>::try_from(expected.as_slice()) else {
            return Ok(false);
        };
        let code = fs::read(path)?;
        // Comparing two `blake3::Hash` takes the same time for all of them.
        Ok(self.hash(name, &code) == blake3::Hash::from_bytes(expected))
    }

    fn hash(&self, name: &str, code: &[u8]) -> blake3::Hash {
        let mut hasher = blake3::Hasher::new_keyed(&self.key);
        hasher.update(name.as_bytes()).update(&[0]).update(code);
        hasher.finalize()
    }
}

/// Names an entry by all that the machine code depends on.
fn entry_name(engine: &Engine, digest: &str) -> String {
    let mut hasher = DefaultHasher::new();
    engine.wasmtime.precompile_compatibility_hash().hash(&mut hasher);
    format!("{digest}-{:016x}.code", hasher.finish())
}

fn read_or_make_key(path: &Path) -> io::Result<[u8; HASH_BYTES]> {
    match private_file(path) {
        Ok(mut file) => {
            let mut key = [0; HASH_BYTES];
            random_bytes(&mut key)?;
            file.write_all(&key)?;
            Ok(key)
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let mut key = [0; HASH_BYTES];
            // Another process may be writing it this moment; then there is no cache for this one.
            File::open(path)?.read_exact(&mut key)?;
            Ok(key)
        }
        Err(error) => Err(error),
    }
}

fn random_bytes(bytes: &mut [u8]) -> io::Result<()> {
    getrandom::fill(bytes).map_err(io::Error::other)
}

/// Makes a new file that only its owner can read.
pub(crate) fn private_file(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

fn create_private(directory: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(directory)
}

/// Refuses a directory that others can write to or that somebody else owns.
#[cfg(unix)]
fn require_private(directory: &Path) -> io::Result<()> {
    use std::os::unix::fs::MetadataExt;
    let metadata = fs::symlink_metadata(directory)?;
    let refuse = |why: &str| {
        Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            format!("{}: {why}", directory.display()),
        ))
    };
    if !metadata.is_dir() {
        return refuse("it is no directory");
    }
    if metadata.mode() & 0o077 != 0 {
        return refuse("others may enter it; run `chmod 700` on it");
    }
    // A file made by this process shows who it runs as.
    let probe = directory.join(format!(".probe.{}", process::id()));
    let owner = private_file(&probe)
        .and_then(|file| file.metadata())
        .map(|metadata| metadata.uid());
    let _ = fs::remove_file(&probe);
    if owner? != metadata.uid() {
        return refuse("it belongs to somebody else");
    }
    Ok(())
}

#[cfg(not(unix))]
fn require_private(_directory: &Path) -> io::Result<()> {
    Ok(())
}
