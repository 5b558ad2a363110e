//! Output streams and writes that draw on the quota of a directory.

use std::fs::File;
use std::io;
use std::sync::Arc;

use bytes::Bytes;
use futures::FutureExt;
use tokio::task::{JoinError, JoinHandle};
use wasmtime_wasi::async_trait;
use wasmtime_wasi::p2::{DynOutputStream, OutputStream, Pollable, StreamError, StreamResult};

use crate::grants::directories::{DirectoryQuota, Reservation, disk_full};

/// Reserves bytes of a quota. If the last measurement of the directory does not suffice for a decision, the directory is
/// measured first, on another thread.
pub(super) async fn reserve(quota: &Arc<DirectoryQuota>, bytes: u64) -> io::Result<Reservation> {
    match quota.try_reserve(bytes, bytes) {
        Some(reservation) => Ok(reservation),
        None => await_measurement(reserve_after_measurement(quota, bytes, bytes)).await,
    }
}

/// A measurement of the directory on another thread, followed by a reservation.
type Measurement = JoinHandle<io::Result<Reservation>>;

fn reserve_after_measurement(quota: &Arc<DirectoryQuota>, bytes_min: u64, bytes_max: u64) -> Measurement {
    let quota = quota.clone();
    tokio::task::spawn_blocking(move || quota.reserve(bytes_min, bytes_max))
}

/// Waits for a measurement. If its thread panicked, the disk counts as full.
async fn await_measurement(
    measurement: impl Future<Output = Result<io::Result<Reservation>, JoinError>>,
) -> io::Result<Reservation> {
    measurement.await.unwrap_or_else(|_| Err(disk_full()))
}

/// Returns the size of the hole between the end of a file and an offset, in bytes.
pub(super) fn hole_bytes(file: &File, offset: u64) -> io::Result<u64> {
    // A file position is a signed 64-bit number. A larger offset is invalid, whatever the quota is.
    if i64::try_from(offset).is_err() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    Ok(offset.saturating_sub(file.metadata()?.len()))
}

/// An output stream into a file that reserves quota before it writes.
pub(super) struct QuotaStream {
    inner: DynOutputStream,
    quota: Arc<DirectoryQuota>,
    file: Arc<File>,
    /// The position of the next write; `None` for a stream that appends.
    position: Option<u64>,
    permit: Permit,
    /// The reservation of the last write, until the write is known to have ended.
    last_write: Option<Reservation>,
}

/// The quota for the next write of the guest.
enum Permit {
    /// Not requested.
    None,
    /// Being reserved on another thread, which measures the directory first.
    Measuring(Measurement),
    /// The result of a measurement.
    Measured(io::Result<Reservation>),
    /// Reserved for a hole and the number of bytes that the guest may write.
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
            permit: Permit::None,
            last_write: None,
        }
    }

    /// Returns the size of the hole that the next write makes, in bytes. The size of the file is read at each write, because a
    /// guest can truncate the file between two writes.
    fn next_hole_bytes(&self) -> StreamResult<u64> {
        let bytes = self.position.map_or(Ok(0), |position| hole_bytes(&self.file, position));
        bytes.map_err(stream_error)
    }

    /// Reserves quota for a write of up to `bytes` bytes. Returns the number of bytes that the guest may write, which
    /// is zero while the directory is being measured.
    fn request_permit(&mut self, bytes: u64) -> StreamResult<u64> {
        let hole_bytes = self.next_hole_bytes()?;
        let (bytes_min, bytes_max) = (hole_bytes.saturating_add(1), hole_bytes.saturating_add(bytes));
        self.permit = match std::mem::replace(&mut self.permit, Permit::None) {
            Permit::None => match self.quota.try_reserve(bytes_min, bytes_max) {
                Some(reservation) => Permit::Reserved(reservation),
                None => Permit::Measuring(reserve_after_measurement(&self.quota, bytes_min, bytes_max)),
            },
            Permit::Measuring(mut measurement) => match await_measurement(&mut measurement).now_or_never() {
                Some(result) => Permit::Reserved(result.map_err(stream_error)?),
                None => Permit::Measuring(measurement),
            },
            Permit::Measured(result) => Permit::Reserved(result.map_err(stream_error)?),
            reserved @ Permit::Reserved(_) => reserved,
        };
        let Permit::Reserved(reservation) = &self.permit else {
            return Ok(0);
        };
        Ok(reservation.bytes().saturating_sub(hole_bytes).min(bytes))
    }

    /// Takes the quota that is reserved for a write, and releases the part that is not needed. If the write needs more than was
    /// reserved, such as after the guest truncated the file, releases all of it and makes another reservation.
    ///
    /// # Errors
    /// The error of a full disk if the quota does not suffice, or the error of reading the file size.
    fn take_permit(&mut self, bytes: &Bytes) -> StreamResult<Reservation> {
        let bytes_needed = self.next_hole_bytes()?.saturating_add(bytes.len() as u64);
        let permit = std::mem::replace(&mut self.permit, Permit::None);
        if let Permit::Reserved(mut reservation) | Permit::Measured(Ok(mut reservation)) = permit {
            if reservation.bytes() >= bytes_needed {
                reservation.shrink(bytes_needed);
                return Ok(reservation);
            }
            reservation.shrink(0);
        }
        let reservation = self.quota.reserve_counted(bytes_needed, bytes_needed);
        reservation.ok_or_else(|| stream_error(disk_full()))
    }

    /// Records that a write begins.
    fn begin_write(&mut self, bytes: &Bytes, reservation: Reservation) {
        self.last_write = Some(reservation);
        if let Some(position) = &mut self.position {
            *position = position.saturating_add(bytes.len() as u64);
        }
    }

    /// Records that the last write has ended.
    fn end_write(&mut self) {
        self.last_write = None;
    }
}

impl Drop for QuotaStream {
    fn drop(&mut self) {
        if let Permit::Reserved(reservation) | Permit::Measured(Ok(reservation)) = &mut self.permit {
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
        self.end_write();
        if let Permit::Measuring(measurement) = &mut self.permit {
            self.permit = Permit::Measured(await_measurement(measurement).await);
        }
    }
}

#[async_trait]
impl OutputStream for QuotaStream {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        let reservation = self.take_permit(&bytes)?;
        self.begin_write(&bytes, reservation);
        self.inner.write(bytes)
    }

    async fn blocking_write_and_flush(&mut self, bytes: Bytes) -> StreamResult<()> {
        // An earlier write may not have ended, and the file may still grow.
        self.ready().await;
        let bytes_needed = self.next_hole_bytes()?.saturating_add(bytes.len() as u64);
        let reservation = match self.take_permit(&bytes) {
            Ok(reservation) => reservation,
            Err(_) => reserve(&self.quota, bytes_needed).await.map_err(stream_error)?,
        };
        self.begin_write(&bytes, reservation);
        let outcome = self.inner.blocking_write_and_flush(bytes).await;
        self.end_write();
        outcome
    }

    fn flush(&mut self) -> StreamResult<()> {
        self.inner.flush()
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        let allowed = self.inner.check_write()?;
        if allowed == 0 {
            return Ok(0);
        }
        self.end_write();
        let permitted = self.request_permit(allowed as u64)?;
        Ok(usize::try_from(permitted).unwrap_or(allowed))
    }

    async fn cancel(&mut self) {
        self.inner.cancel().await;
        self.end_write();
    }
}
