//! Streams of WASI 0.3 that a guest writes to a file. They draw on the quota of the directory.

use std::fs::File;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use futures::future::BoxFuture;
use tokio::sync::{Mutex, oneshot};
use wasmtime::StoreContextMut;
use wasmtime::component::{Source, StreamConsumer, StreamResult};
use wasmtime_wasi::p3::bindings::filesystem::types::ErrorCode;

use super::quota_stream::hole_bytes;
use crate::grants::directories::DirectoryQuota;
use crate::link::host::host_state::HostState;

/// The maximum number of bytes that are written at once.
const CHUNK_BYTES: usize = 64 << 10;

/// The position at which the next bytes of a stream are written.
#[derive(Clone, Copy, Debug)]
pub(super) enum WritePosition {
    At(u64),
    End,
}

/// The consumer of a stream: it writes the bytes of the stream to a file.
pub(super) struct WriteStream {
    file: Arc<File>,
    quota: Arc<DirectoryQuota>,
    /// Held while an operation of the instance uses disk space.
    disk_lock: Arc<Mutex<()>>,
    position: WritePosition,
    /// The running write. It returns the number of written bytes.
    running_write: Option<BoxFuture<'static, io::Result<usize>>>,
    /// The sender of the outcome that the guest awaits; `None` after the outcome was sent.
    outcome_sender: Option<oneshot::Sender<Result<(), ErrorCode>>>,
}

impl WriteStream {
    pub(super) fn new(
        file: Arc<File>,
        quota: Arc<DirectoryQuota>,
        disk_lock: Arc<Mutex<()>>,
        position: WritePosition,
        outcome_sender: oneshot::Sender<Result<(), ErrorCode>>,
    ) -> Self {
        Self {
            file,
            quota,
            disk_lock,
            position,
            running_write: None,
            outcome_sender: Some(outcome_sender),
        }
    }

    /// Sends the outcome to the guest. Later outcomes are ignored.
    fn send_outcome(&mut self, outcome: Result<(), ErrorCode>) {
        if let Some(sender) = self.outcome_sender.take() {
            // The guest may not wait for the outcome.
            let _ = sender.send(outcome);
        }
    }

    /// Writes a chunk on a thread for blocking work. If the stream is dropped, a running write continues, and keeps its
    /// reservation until it ends.
    fn write_chunk(&self, bytes: Vec<u8>) -> BoxFuture<'static, io::Result<usize>> {
        let (file, quota, disk_lock) = (self.file.clone(), self.quota.clone(), self.disk_lock.clone());
        let position = self.position;
        Box::pin(async move {
            let guard = disk_lock.lock_owned().await;
            let write = move || {
                let _guard = guard;
                write_within_quota(&file, &quota, position, &bytes)
            };
            let joined = tokio::task::spawn_blocking(write).await;
            joined.unwrap_or_else(|error| Err(io::Error::other(error)))
        })
    }
}

impl Drop for WriteStream {
    fn drop(&mut self) {
        self.send_outcome(Ok(()));
    }
}

/// Reserves quota for the bytes, and for the hole before them if the position is after the end of the file. Then writes the bytes.
/// Returns the number of written bytes.
fn write_within_quota(
    file: &File,
    quota: &Arc<DirectoryQuota>,
    position: WritePosition,
    bytes: &[u8],
) -> io::Result<usize> {
    let offset = match position {
        WritePosition::At(offset) => offset,
        WritePosition::End => file.metadata()?.len(),
    };
    let bytes_needed = hole_bytes(file, offset)?.saturating_add(bytes.len() as u64);
    let _reservation = quota.reserve(bytes_needed, bytes_needed)?;
    write_at(file, bytes, offset)
}

#[cfg(unix)]
fn write_at(file: &File, bytes: &[u8], offset: u64) -> io::Result<usize> {
    std::os::unix::fs::FileExt::write_at(file, bytes, offset)
}

#[cfg(windows)]
fn write_at(file: &File, bytes: &[u8], offset: u64) -> io::Result<usize> {
    std::os::windows::fs::FileExt::seek_write(file, bytes, offset)
}

impl StreamConsumer<HostState> for WriteStream {
    type Item = u8;

    fn poll_consume(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        store: StoreContextMut<HostState>,
        source: Source<'_, u8>,
        _finish: bool,
    ) -> Poll<wasmtime::Result<StreamResult>> {
        let this = &mut *self;
        let mut source = source.as_direct(store);
        if this.running_write.is_none() {
            let remaining = source.remaining();
            if remaining.is_empty() {
                return Poll::Ready(Ok(StreamResult::Completed));
            }
            let bytes = remaining[..remaining.len().min(CHUNK_BYTES)].to_vec();
            this.running_write = Some(this.write_chunk(bytes));
        }
        let Some(running_write) = &mut this.running_write else {
            return Poll::Ready(Ok(StreamResult::Completed));
        };
        // The parameter `_finish` is ignored, because a running write cannot be cancelled.
        let outcome = ready!(running_write.as_mut().poll(context));
        this.running_write = None;
        Poll::Ready(Ok(match outcome {
            Ok(count) => {
                source.mark_read(count);
                if let WritePosition::At(offset) = &mut this.position {
                    *offset = offset.saturating_add(count as u64);
                }
                StreamResult::Completed
            }
            Err(error) => {
                this.send_outcome(Err(error.into()));
                StreamResult::Dropped
            }
        }))
    }
}
