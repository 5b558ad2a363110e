//! The cache of machine code of compiled components, in a private directory.
//!
//! Cached machine code runs in the host process without a check of its instructions. An entry is therefore used only if this
//! user wrote it: the directory denies access to others, and every entry has a keyed hash of its name and content (BLAKE3, with a
//! random key in the same directory). The name of an entry contains the digest of the component and a hash of the engine, so that
//! code for another engine is never loaded. An entry that is damaged or was written with another key is ignored, and replaced
//! when the component is compiled again.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use wasmtime::component::Component;

use super::cache_entries::CodeCacheEntry;
use super::engine::Engine;
use super::precompiled;
use toolwit_core::file::{create_private_directory, private_options};

/// The length of the key and of a hash, in bytes.
const HASH_BYTES: usize = 32;

/// A cache of machine code in a private directory.
#[derive(Clone, Debug)]
pub struct CodeCache {
    directory: PathBuf,
    key: [u8; HASH_BYTES],
}

impl CodeCache {
    /// Opens a cache directory, or creates it with a fresh key.
    ///
    /// # Errors
    /// If the directory cannot be created, belongs to another user or permits access to others, or if its key cannot be read or
    /// written.
    pub fn open(directory: &Path) -> io::Result<Self> {
        create_private_directory(directory)?;
        require_private_directory(directory)?;
        Ok(Self {
            directory: directory.to_owned(),
            key: read_or_create_key(&directory.join("key"))?,
        })
    }

    /// Returns the directory.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Returns the digests of the components whose code is cached, for any engine.
    ///
    /// # Errors
    /// If the directory cannot be read.
    pub fn digests(&self) -> io::Result<BTreeSet<String>> {
        let digest_of = |entry: CodeCacheEntry| entry.name.split('-').next().map(str::to_owned);
        Ok(self.entries()?.into_iter().filter_map(digest_of).collect())
    }

    /// Returns whether an entry for a component exists. The entry is validated only when it is loaded.
    pub(crate) fn contains(&self, engine: &Engine, digest: &str) -> bool {
        self.directory.join(entry_name(engine, digest)).exists()
    }

    /// Maps the machine code of a component into memory. Returns `None` if there is no valid entry.
    pub(crate) fn load(&self, engine: &Engine, digest: &str) -> Option<Component> {
        let name = entry_name(engine, digest);
        let path = self.directory.join(&name);
        if !self.is_valid(&name, &path).unwrap_or(false) {
            return None;
        }
        let mapped = precompiled::map(&engine.wasmtime, &path).or_else(|error| {
            tracing::debug!(%error, entry = name, "cached machine code cannot be mapped");
            // A file on a file system that is mounted with `noexec` can be copied into memory.
            self.copy(engine, &name, &path)
        });
        match mapped {
            Ok(component) => {
                self.touch(&path);
                Some(component)
            }
            Err(error) => {
                tracing::debug!(%error, entry = name, "cached machine code cannot be used; compiling again");
                None
            }
        }
    }

    /// Copies the machine code of an entry into memory. The copy is checked, because the file may have changed.
    pub(super) fn copy(&self, engine: &Engine, name: &str, path: &Path) -> wasmtime::Result<Component> {
        let code = fs::read(path)?;
        if !self.has_hash(name, self.hash(name, code.as_slice())?)? {
            return Err(io::Error::from(io::ErrorKind::InvalidData).into());
        }
        precompiled::load(&engine.wasmtime, &code)
    }

    /// Stores the machine code of a component. A failure is only logged: the next process compiles the component again.
    pub(crate) fn store(&self, engine: &Engine, digest: &str, code: &[u8]) {
        let name = entry_name(engine, digest);
        let outcome = self
            .write(&name, code)
            .and_then(|()| self.shrink_to(self.bytes_max()).map(|_| ()));
        if let Err(error) = outcome {
            tracing::debug!(%error, entry = name, "machine code could not be cached");
        }
    }

    /// Stores the machine code of a component, drops `code`, and maps the stored file into memory instead.
    ///
    /// # Errors
    /// `Some` with the code, if it cannot be stored. `None`, if the stored entry cannot be loaded, for example because another
    /// process has already removed it, or memory may not become executable.
    pub(crate) fn store_and_load(
        &self,
        engine: &Engine,
        digest: &str,
        code: Vec<u8>,
    ) -> Result<Component, Option<Vec<u8>>> {
        let name = entry_name(engine, digest);
        if let Err(error) = self.write(&name, &code) {
            tracing::debug!(%error, entry = name, "machine code could not be cached");
            return Err(Some(code));
        }
        drop(code);
        // Map the entry before enforcing the limit of the cache, because that can remove the entry.
        let component = self.load(engine, digest).ok_or(None)?;
        if let Err(error) = self.shrink_to(self.bytes_max()) {
            tracing::debug!(%error, "the code cache could not be reduced to its limit");
        }
        Ok(component)
    }

    /// Writes an entry: writes hash and code to temporary files and renames them, the code last, so that a reader never sees a
    /// partial entry.
    fn write(&self, name: &str, code: &[u8]) -> io::Result<()> {
        let hash = self.hash(name, code)?;
        let unique = unique_name()?;
        for (suffix, content) in [(".hash", hash.as_bytes().as_slice()), ("", code)] {
            let temporary = self.directory.join(format!("{unique}{suffix}"));
            create_new(&temporary)?.write_all(content)?;
            fs::rename(&temporary, self.directory.join(format!("{name}{suffix}")))?;
        }
        Ok(())
    }

    /// Returns whether the stored hash of an entry is the hash of its name and content.
    fn is_valid(&self, name: &str, path: &Path) -> io::Result<bool> {
        // `hash` reads the file in pieces, because machine code can be large.
        let hash = self.hash(name, File::open(path)?)?;
        self.has_hash(name, hash)
    }

    /// Returns whether this is the stored hash of an entry.
    fn has_hash(&self, name: &str, hash: blake3::Hash) -> io::Result<bool> {
        let expected = fs::read(self.directory.join(format!("{name}.hash")))?;
        let Ok(expected) = <[u8; HASH_BYTES]>::try_from(expected.as_slice()) else {
            return Ok(false);
        };
        // `blake3::Hash` compares in constant time.
        Ok(hash == blake3::Hash::from_bytes(expected))
    }

    fn hash(&self, name: &str, code: impl Read) -> io::Result<blake3::Hash> {
        let mut hasher = blake3::Hasher::new_keyed(&self.key);
        hasher.update(name.as_bytes()).update(&[0]).update_reader(code)?;
        Ok(hasher.finalize())
    }
}

/// Returns the name of an entry: the digest of the component, and the hash of the engine and its configuration.
fn entry_name(engine: &Engine, digest: &str) -> String {
    format!("{digest}-{:016x}.code", engine.compatibility_hash())
}

/// Reads the key, or creates it. Replaces a key of a wrong length, which a killed process or a full disk can leave behind. All
/// entries that were written with an earlier key are then invalid.
fn read_or_create_key(path: &Path) -> io::Result<[u8; HASH_BYTES]> {
    match fs::read(path) {
        Ok(key) => {
            if let Ok(key) = key.try_into() {
                return Ok(key);
            }
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    let mut key = [0; HASH_BYTES];
    random_bytes(&mut key)?;
    write_atomically(path, &key)?;
    Ok(key)
}

/// Writes or replaces a file. A reader sees the previous or the complete new content.
pub(super) fn write_atomically(path: &Path, content: &[u8]) -> io::Result<()> {
    let temporary = path.with_file_name(unique_name()?);
    create_new(&temporary)?.write_all(content)?;
    fs::rename(&temporary, path)
}

/// Returns a random name for a temporary file. A name with the process id could already exist: from another thread, from a
/// killed process, or from a process in another container that uses the same directory.
fn unique_name() -> io::Result<String> {
    let mut number = [0; 16];
    random_bytes(&mut number)?;
    Ok(format!(".{:032x}", u128::from_ne_bytes(number)))
}

fn random_bytes(bytes: &mut [u8]) -> io::Result<()> {
    getrandom::fill(bytes).map_err(io::Error::other)
}

/// Creates a file that only its owner can access.
fn create_new(path: &Path) -> io::Result<File> {
    private_options().write(true).create_new(true).open(path)
}

/// Refuses a directory that other users can access or that another user owns.
#[cfg(unix)]
fn require_private_directory(directory: &Path) -> io::Result<()> {
    use std::os::unix::fs::MetadataExt;
    let metadata = fs::symlink_metadata(directory)?;
    let refuse = |reason: &str| {
        Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            format!("{}: {reason}", directory.display()),
        ))
    };
    if !metadata.is_dir() {
        return refuse("it is not a directory");
    }
    if metadata.mode() & 0o077 != 0 {
        return refuse("other users can access it; its mode must be 700");
    }
    // A new file is owned by the user of this process.
    let probe = directory.join(unique_name()?);
    let owner = create_new(&probe)
        .and_then(|file| file.metadata())
        .map(|metadata| metadata.uid());
    let _ = fs::remove_file(&probe);
    if owner? != metadata.uid() {
        return refuse("it belongs to another user");
    }
    Ok(())
}

#[cfg(not(unix))]
fn require_private_directory(_directory: &Path) -> io::Result<()> {
    Ok(())
}
