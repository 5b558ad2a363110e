//! Reservations for writes of a guest, and output streams of WASI 0.2 that draw on the quota of a directory.

use std::fs::File;
use std::io;
use std::sync::Arc;

use bytes::Bytes;
use futures::FutureExt;
use tokio::task::{JoinError, JoinHandle};
use wasmtime_wasi::async_trait;
use wasmtime_wasi::p2::{DynOutputStream, OutputStream, Pollable, StreamError, StreamResult};

use crate::grants::directories::{DirectoryQuota, Reservation, disk_full};

/// Reserves bytes of a quota. If the last measurement of the directory is not sufficient for a decision, first measures the
/// directory on another thread.
pub(super) async fn reserve(quota: &Arc<DirectoryQuota>, bytes: u64) -> io::Result<Reservation> {
    match quota.try_reserve(bytes, bytes) {
        Some(reservation) => Ok(reservation),
        None => await_measurement(reserve_after_measurement(quota, bytes, bytes)).await,
    }
}

/// A task on another thread that measures the directory and then reserves bytes.
type Measurement = JoinHandle<io::Result<Reservation>>;

fn reserve_after_measurement(quota: &Arc<DirectoryQuota>, bytes_min: u64, bytes_max: u64) -> Measurement {
    let quota = quota.clone();
    tokio::task::spawn_blocking(move || quota.reserve(bytes_min, bytes_max))
}

/// Waits for a measurement, and returns its reservation. If the thread panicked, returns the error of a full disk.
async fn await_measurement(
    measurement: impl Future<Output = Result<io::Result<Reservation>, JoinError>>,
) -> io::Result<Reservation> {
    measurement.await.unwrap_or_else(|_| Err(disk_full()))
}

/// Returns the size of the hole between the end of a file and an offset, in bytes.
pub(super) fn hole_bytes(file: &File, offset: u64) -> io::Result<u64> {
    // A file position is a signed 64-bit number, so a larger offset is invalid.
    if i64::try_from(offset).is_err() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    Ok(offset.saturating_sub(file.metadata()?.len()))
}

/// An output stream into a file. The stream reserves quota before it writes.
pub(super) struct QuotaStream {
    inner: DynOutputStream,
    quota: Arc<DirectoryQuota>,
    file: Arc<File>,
    /// The position of the next write; `None` for a stream that appends.
    position: Option<u64>,
    next_write: WriteQuota,
    /// The reservation of the last write, until the write is known to have ended.
    last_write: Option<Reservation>,
}

/// The quota for the next write of the guest. `check_write` requests the quota, and `write` uses it.
enum WriteQuota {
    /// No quota has been requested.
    None,
    /// Another thread measures the directory and then reserves the quota.
    Measuring(Measurement),
    /// The thread has ended with this result.
    Measured(io::Result<Reservation>),
    /// The quota is reserved for a hole and for the bytes that the guest may write after the hole.
    Reserved(Reservation),
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
            next_write: WriteQuota::None,
            last_write: None,
        }
    }

    /// Returns the size of the hole that the next write creates, in bytes. Reads the size of the file each time, because a guest can
    /// truncate the file between two writes.
    fn next_hole_bytes(&self) -> StreamResult<u64> {
        let bytes = self.position.map_or(Ok(0), |position| hole_bytes(&self.file, position));
        bytes.map_err(stream_error)
    }

    /// Requests quota for a write of up to `bytes` bytes. Returns the number of bytes that the guest may write, which is zero while
    /// the directory is being measured.
    fn request_quota(&mut self, bytes: u64) -> StreamResult<u64> {
        let hole_bytes = self.next_hole_bytes()?;
        let (bytes_min, bytes_max) = (hole_bytes.saturating_add(1), hole_bytes.saturating_add(bytes));
        // After a reservation, the guest can truncate the file, which enlarges the hole.
        if let WriteQuota::Reserved(reservation) = &mut self.next_write
            && reservation.bytes() < bytes_min
        {
            reservation.shrink(0);
            self.next_write = WriteQuota::None;
        }
        self.next_write = match std::mem::replace(&mut self.next_write, WriteQuota::None) {
            WriteQuota::None => match self.quota.try_reserve(bytes_min, bytes_max) {
                Some(reservation) => WriteQuota::Reserved(reservation),
                None => WriteQuota::Measuring(reserve_after_measurement(&self.quota, bytes_min, bytes_max)),
            },
            WriteQuota::Measuring(mut measurement) => match await_measurement(&mut measurement).now_or_never() {
                Some(result) => WriteQuota::Reserved(result.map_err(stream_error)?),
                None => WriteQuota::Measuring(measurement),
            },
            WriteQuota::Measured(result) => WriteQuota::Reserved(result.map_err(stream_error)?),
            reserved @ WriteQuota::Reserved(_) => reserved,
        };
        let WriteQuota::Reserved(reservation) = &self.next_write else {
            return Ok(0);
        };
        Ok(reservation.bytes().saturating_sub(hole_bytes).min(bytes))
    }

    /// Takes the reservation for a write, and releases the bytes that the write does not need. If the write needs more bytes than
    /// were reserved, for example after the guest truncated the file, releases the reservation and makes another one. Does not
    /// measure the directory, because [`OutputStream::write`] must not block.
    ///
    /// # Errors
    /// The error of a full disk if the quota does not suffice, or the error of reading the file size.
    fn take_reservation(&mut self, bytes: &Bytes) -> StreamResult<Reservation> {
        let bytes_needed = self.next_hole_bytes()?.saturating_add(bytes.len() as u64);
        let next_write = std::mem::replace(&mut self.next_write, WriteQuota::None);
        if let WriteQuota::Reserved(mut reservation) | WriteQuota::Measured(Ok(mut reservation)) = next_write {
            if reservation.bytes() >= bytes_needed {
                reservation.shrink(bytes_needed);
                return Ok(reservation);
            }
            reservation.shrink(0);
        }
        let reservation = self.quota.reserve_counted(bytes_needed, bytes_needed);
        reservation.ok_or_else(|| stream_error(disk_full()))
    }

    /// Records that a write starts.
    fn record_write_start(&mut self, bytes: &Bytes, reservation: Reservation) {
        self.last_write = Some(reservation);
        if let Some(position) = &mut self.position {
            *position = position.saturating_add(bytes.len() as u64);
        }
    }

    /// Records that the last write has ended.
    fn record_write_end(&mut self) {
        self.last_write = None;
    }
}

impl Drop for QuotaStream {
    fn drop(&mut self) {
        if let WriteQuota::Reserved(reservation) | WriteQuota::Measured(Ok(reservation)) = &mut self.next_write {
            reservation.shrink(0);
        }
    }
}

fn stream_error(error: io::Error) -> StreamError {
    StreamError::LastOperationFailed(error.into())
}

#[async_trait]
impl Pollable for QuotaStream {
    async fn ready(&mut self) {
        self.inner.ready().await;
        self.record_write_end();
        if let WriteQuota::Measuring(measurement) = &mut self.next_write {
            self.next_write = WriteQuota::Measured(await_measurement(measurement).await);
        }
    }
}

#[async_trait]
impl OutputStream for QuotaStream {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        let reservation = self.take_reservation(&bytes)?;
        self.record_write_start(&bytes, reservation);
        self.inner.write(bytes)
    }

    async fn blocking_write_and_flush(&mut self, bytes: Bytes) -> StreamResult<()> {
        // Wait for an earlier write, because it can still enlarge the file.
        self.ready().await;
        let bytes_needed = self.next_hole_bytes()?.saturating_add(bytes.len() as u64);
        let reservation = match self.take_reservation(&bytes) {
            Ok(reservation) => reservation,
            Err(_) => reserve(&self.quota, bytes_needed).await.map_err(stream_error)?,
        };
        self.record_write_start(&bytes, reservation);
        let outcome = self.inner.blocking_write_and_flush(bytes).await;
        self.record_write_end();
        outcome
    }

    fn flush(&mut self) -> StreamResult<()> {
        self.inner.flush()
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        let stream_bytes_max = self.inner.check_write()?;
        if stream_bytes_max == 0 {
            return Ok(0);
        }
        self.record_write_end();
        let quota_bytes_max = self.request_quota(stream_bytes_max as u64)?;
        Ok(usize::try_from(quota_bytes_max).unwrap_or(stream_bytes_max))
    }

    async fn cancel(&mut self) {
        self.inner.cancel().await;
        self.record_write_end();
    }
}
