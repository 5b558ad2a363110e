//! The only unsafe code of this crate: mapping machine code that this process, or an earlier one of the same user, wrote.
#![expect(
    unsafe_code,
    reason = "wasmtime cannot validate machine code; its caller must guarantee where the file comes from"
)]

use std::path::Path;

use wasmtime::Engine;
use wasmtime::component::Component;

/// Maps a file of machine code into memory.
///
/// Only [`CodeCache`](super::cache::CodeCache) calls this, on files whose keyed hash it has just checked, in a
/// directory that other users cannot enter. Files of plugin directories are never mapped.
pub(crate) fn map(engine: &Engine, path: &Path) -> wasmtime::Result<Component> {
    // SAFETY: the file is output of `Component::serialize`: its hash is keyed with a secret of this user and covers its
    // name and content, and the directory's mode keeps others from replacing it between check and use.
    unsafe { Component::deserialize_file(engine, path) }
}
