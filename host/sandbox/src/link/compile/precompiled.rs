//! The only unsafe code of this crate: loads machine code from the code cache or from a compiler process. In both cases, a process
//! of the same user has compiled the code.
#![expect(
    unsafe_code,
    reason = "wasmtime cannot validate machine code; its caller must guarantee where the code comes from"
)]

use std::path::Path;

use wasmtime::Engine;
use wasmtime::component::Component;

/// Maps a file of machine code into memory.
///
/// Only [`CodeCache`](super::cache::CodeCache) calls this function, for a file whose keyed hash it has just checked, in a directory
/// that other users cannot enter. Files of plugin directories are never mapped.
pub(crate) fn map(engine: &Engine, path: &Path) -> wasmtime::Result<Component> {
    // SAFETY: the file is the output of `Component::serialize` or `Engine::precompile_component`. Its hash is keyed with a secret
    // of this user and covers the file's name and content. The directory's mode keeps other users from replacing the file
    // between check and use.
    unsafe { Component::deserialize_file(engine, path) }
}

/// Loads machine code that a compiler process returned, or that was read from the code cache.
///
/// Only [`super::load_or_compile`] calls this function, for code that it has just read from a compiler process of this host, and
/// [`CodeCache`](super::cache::CodeCache), for bytes whose keyed hash it has just checked.
pub(crate) fn load(engine: &Engine, code: &[u8]) -> wasmtime::Result<Component> {
    // SAFETY: the code is the output of `Engine::precompile_component` in a process of the program that the embedder chose.
    // That program is trusted like the compiler in this process, and no other process can write to the pipe. Bytes from the
    // cache have a hash that is keyed with a secret of this user, as for `map`.
    unsafe { Component::deserialize(engine, code) }
}
