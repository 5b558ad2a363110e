//! Output streams and writes that draw on the quota of a directory.

use std::fs::File;
use std::io;
use std::sync::Arc;

use bytes::Bytes;
use wasmtime_wasi::async_trait;
use wasmtime_wasi::p2::{DynOutputStream, OutputStream, Pollable, StreamError, StreamResult};

use crate::grants::directories::{DirectoryQuota, disk_full};

/// Reserves bytes of a quota, and measures the directory on another thread if it seems full.
pub(super) async fn reserve(quota: &Arc<DirectoryQuota>, bytes: u64) -> io::Result<()> {
    if quota.try_reserve(bytes) {
        return Ok(());
    }
    let quota = quota.clone();
    tokio::task::spawn_blocking(move || quota.reserve(bytes))
        .await
        .unwrap_or_else(|_| Err(disk_full()))
}

/// Returns the size of the hole between the end of a file and an offset, in bytes.
pub(super) fn gap(file: &File, offset: u64) -> io::Result<u64> {
    Ok(offset.saturating_sub(file.metadata()?.len()))
}

/// An output stream into a file that reserves quota before it writes.
pub(super) struct QuotaStream {
    inner: DynOutputStream,
    quota: Arc<DirectoryQuota>,
    file: Arc<File>,
    /// The position of the next write; `None` for a stream that appends.
    position: Option<u64>,
    /// The bytes of the last write, until it is known to have ended.
    unwritten: u64,
}

impl QuotaStream {
    pub(super) fn new(
        inner: DynOutputStream,
        quota: Arc<DirectoryQuota>,
        file: Arc<File>,
        position: Option<u64>,
    ) -> Self {
        Self {
            inner,
            quota,
            file,
            position,
            unwritten: 0,
        }
    }

    /// Returns the bytes by which a write enlarges the file at most. The size of the file is read at each write, because a guest can
    /// truncate the file between two writes.
    fn bytes_needed(&self, bytes: &Bytes) -> StreamResult<u64> {
        let gap = self.position.map_or(Ok(0), |position| gap(&self.file, position));
        Ok(gap.map_err(failed)?.saturating_add(bytes.len() as u64))
    }

    /// Records that a write begins. Its bytes are reserved.
    fn begin(&mut self, bytes: &Bytes, reserved: u64) {
        self.end();
        self.unwritten = reserved;
        self.quota.writing(reserved);
        if let Some(position) = &mut self.position {
            *position = position.saturating_add(bytes.len() as u64);
        }
    }

    /// Records that the last write has ended.
    fn end(&mut self) {
        self.quota.written(std::mem::take(&mut self.unwritten));
    }
}

impl Drop for QuotaStream {
    fn drop(&mut self) {
        self.end();
    }
}

fn failed(error: io::Error) -> StreamError {
    StreamError::LastOperationFailed(error.into())
}

#[async_trait]
impl Pollable for QuotaStream {
    async fn ready(&mut self) {
        self.inner.ready().await;
        self.end();
    }
}

#[async_trait]
impl OutputStream for QuotaStream {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        let needed = self.bytes_needed(&bytes)?;
        // This function is synchronous, so a directory that seems full is measured on this thread.
        self.quota.reserve(needed).map_err(failed)?;
        self.begin(&bytes, needed);
        self.inner.write(bytes)
    }

    async fn blocking_write_and_flush(&mut self, bytes: Bytes) -> StreamResult<()> {
        // An earlier write may not have ended, and the file may still grow.
        self.inner.ready().await;
        let needed = self.bytes_needed(&bytes)?;
        reserve(&self.quota, needed).await.map_err(failed)?;
        self.begin(&bytes, needed);
        let written = self.inner.blocking_write_and_flush(bytes).await;
        self.end();
        written
    }

    fn flush(&mut self) -> StreamResult<()> {
        self.inner.flush()
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        let allowed = self.inner.check_write()?;
        if allowed > 0 {
            self.end();
        }
        Ok(allowed)
    }

    async fn cancel(&mut self) {
        self.inner.cancel().await;
        self.end();
    }
}
