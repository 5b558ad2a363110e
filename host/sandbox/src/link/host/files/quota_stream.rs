//! Output streams and writes that draw on the quota of a directory.

use std::sync::Arc;

use bytes::Bytes;
use wasmtime_wasi::async_trait;
use wasmtime_wasi::p2::{DynOutputStream, OutputStream, Pollable, StreamError, StreamResult};

use crate::grants::directories::{DirectoryQuota, disk_full};

/// Reserves bytes of a quota, and measures the directory on another thread if it seems full.
pub(super) async fn reserve(quota: &Arc<DirectoryQuota>, bytes: u64) -> std::io::Result<()> {
    if quota.try_reserve(bytes) {
        return Ok(());
    }
    let quota = quota.clone();
    tokio::task::spawn_blocking(move || quota.reserve(bytes))
        .await
        .unwrap_or_else(|_| Err(disk_full()))
}

/// An output stream into a file that reserves quota before it writes.
pub(super) struct QuotaStream {
    pub(super) inner: DynOutputStream,
    pub(super) quota: Arc<DirectoryQuota>,
    /// The size of the hole that the first write creates, in bytes.
    pub(super) gap: u64,
}

impl QuotaStream {
    fn bytes_needed(&mut self, bytes: &Bytes) -> u64 {
        std::mem::take(&mut self.gap).saturating_add(bytes.len() as u64)
    }
}

#[async_trait]
impl Pollable for QuotaStream {
    async fn ready(&mut self) {
        self.inner.ready().await;
    }
}

#[async_trait]
impl OutputStream for QuotaStream {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        let needed = self.bytes_needed(&bytes);
        // This function is synchronous, so a directory that seems full is measured on this thread.
        self.quota
            .reserve(needed)
            .map_err(|error| StreamError::LastOperationFailed(error.into()))?;
        self.inner.write(bytes)
    }

    async fn blocking_write_and_flush(&mut self, bytes: Bytes) -> StreamResult<()> {
        let needed = self.bytes_needed(&bytes);
        reserve(&self.quota, needed)
            .await
            .map_err(|error| StreamError::LastOperationFailed(error.into()))?;
        self.inner.blocking_write_and_flush(bytes).await
    }

    fn flush(&mut self) -> StreamResult<()> {
        self.inner.flush()
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        self.inner.check_write()
    }

    async fn cancel(&mut self) {
        self.inner.cancel().await;
    }
}
