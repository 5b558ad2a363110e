//! The quota of a granted directory.

use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use super::open_files::OpenFiles;
use super::usage::measure_tree;

/// The bytes counted for a file, a directory or a link in addition to its content, because names and inodes use disk
/// space too.
pub(crate) const ENTRY_BYTES: u64 = 4 << 10;

/// The minimum pause after a measurement, as a multiple of the duration of the measurement. Without the pause, a guest
/// that writes continuously would make the host measure continuously.
const PAUSE_FACTOR: u32 = 8;

/// A measurement of a directory is due each time guests have reserved this fraction of its quota: 8 means one eighth. The
/// measurement reveals the bytes that other processes have written to the directory.
const MEASUREMENTS_PER_QUOTA: u64 = 8;

/// The quota of a directory in bytes, shared by all instances that write to it.
///
/// The host counts every byte that its guests write, even a byte that replaces another byte. So the count never
/// underestimates these writes. When the count reaches the quota, the directory is measured again. The new count excludes
/// the bytes that were removed or overwritten, and includes the bytes that other processes wrote. A removed file counts
/// until it is closed. A byte that is written to a directory inside another writable directory draws on both quotas, because it
/// can be moved within the outer directory.
#[derive(Debug)]
pub(crate) struct DirectoryQuota {
    directory: Arc<File>,
    path: PathBuf,
    /// The quota, in bytes.
    quota_bytes: u64,
    /// The files that guests have open in granted directories.
    files: Arc<OpenFiles>,
    count: Mutex<QuotaCount>,
    /// Locked while the directory is measured. `count` is not locked during the measurement, so that writers below the
    /// quota do not wait for the disk.
    measurement: Mutex<()>,
    /// The quotas of the writable directories that contain this one.
    outer: Mutex<Vec<Weak<Self>>>,
}

/// The count of the bytes in a directory.
#[derive(Debug, Default)]
struct QuotaCount {
    /// The bytes of the last measurement, and those reserved since. `None` before the first measurement.
    used: Option<u64>,
    /// The bytes of existing reservations. They may not be on disk yet, so that a measurement does not see them.
    unwritten: u64,
    /// All bytes reserved so far.
    reserved: u64,
    /// The value of `reserved` when the last measurement began.
    reserved_at_measurement: u64,
    /// The earliest time of the next measurement.
    next_measurement: Option<Instant>,
}

impl QuotaCount {
    /// Reserves bytes. `used` is the value of the field of this name, which is `Some`.
    fn add(&mut self, used: u64, bytes: u64) {
        self.used = Some(used.saturating_add(bytes));
        self.unwritten = self.unwritten.saturating_add(bytes);
        self.reserved = self.reserved.saturating_add(bytes);
    }
}

impl DirectoryQuota {
    /// Creates the quota of an open directory. `path` is its real path; `files` lists the files that guests have open.
    pub(super) fn new(directory: Arc<File>, path: PathBuf, quota_bytes: u64, files: Arc<OpenFiles>) -> Self {
        Self {
            directory,
            path,
            quota_bytes,
            files,
            count: Mutex::default(),
            measurement: Mutex::default(),
            outer: Mutex::default(),
        }
    }

    /// Sets the quotas that writes to this directory also draw on: those of `all` whose directories contain this one.
    pub(crate) fn set_outer(&self, all: &[Arc<Self>]) {
        let contains =
            |other: &&Arc<Self>| !std::ptr::eq(self, Arc::as_ptr(other)) && self.path.starts_with(&other.path);
        *self.lock_outer() = all.iter().filter(contains).map(Arc::downgrade).collect();
    }

    fn lock_outer(&self) -> MutexGuard<'_, Vec<Weak<Self>>> {
        self.outer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reserves between `bytes_min` and `bytes_max` bytes of this quota and of the outer ones. `reserve` reserves bytes of one quota.
    fn reserve_with_outer<E>(
        self: &Arc<Self>,
        bytes_min: u64,
        bytes_max: u64,
        reserve: impl Fn(&Arc<Self>, u64, u64) -> Result<Reservation, E>,
    ) -> Result<Reservation, E> {
        let mut reservation = reserve(self, bytes_min, bytes_max)?;
        let outer: Vec<_> = self.lock_outer().iter().filter_map(Weak::upgrade).collect();
        for quota in outer {
            match reserve(&quota, bytes_min, reservation.bytes) {
                Ok(mut part) => {
                    reservation.shrink(part.bytes);
                    reservation.outer.append(&mut part.outer);
                    reservation.outer.push(part);
                }
                Err(error) => {
                    reservation.shrink(0);
                    return Err(error);
                }
            }
        }
        Ok(reservation)
    }

    fn lock_count(&self) -> MutexGuard<'_, QuotaCount> {
        self.count.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reserves between `bytes_min` and `bytes_max` bytes without reading the disk. Returns `None` if the directory has
    /// to be measured first: it was never measured, it seems full, or a measurement is due because guests have reserved
    /// a part of the quota since the last measurement; see [`MEASUREMENTS_PER_QUOTA`].
    pub(crate) fn try_reserve(self: &Arc<Self>, bytes_min: u64, bytes_max: u64) -> Option<Reservation> {
        self.reserve_with_outer(bytes_min, bytes_max, |quota, bytes_min, bytes_max| {
            quota.try_reserve_own(bytes_min, bytes_max).ok_or(())
        })
        .ok()
    }

    fn try_reserve_own(self: &Arc<Self>, bytes_min: u64, bytes_max: u64) -> Option<Reservation> {
        let count = self.lock_count();
        let reserved_since = count.reserved.saturating_sub(count.reserved_at_measurement);
        let is_due = reserved_since > self.quota_bytes / MEASUREMENTS_PER_QUOTA
            && count.next_measurement.is_none_or(|next| next <= Instant::now());
        drop(count);
        if is_due {
            None
        } else {
            self.reserve_counted_own(bytes_min, bytes_max)
        }
    }

    /// Reserves between `bytes_min` and `bytes_max` bytes, based on the last measurement, however old it is. Returns
    /// `None` if the directory was never measured, or seems full.
    pub(crate) fn reserve_counted(self: &Arc<Self>, bytes_min: u64, bytes_max: u64) -> Option<Reservation> {
        self.reserve_with_outer(bytes_min, bytes_max, |quota, bytes_min, bytes_max| {
            quota.reserve_counted_own(bytes_min, bytes_max).ok_or(())
        })
        .ok()
    }

    fn reserve_counted_own(self: &Arc<Self>, bytes_min: u64, bytes_max: u64) -> Option<Reservation> {
        let mut count = self.lock_count();
        let used = count.used?;
        let bytes = bytes_max.min(self.quota_bytes.saturating_sub(used));
        if bytes < bytes_min {
            return None;
        }
        count.add(used, bytes);
        Some(Reservation {
            quota: self.clone(),
            bytes,
            outer: Vec::new(),
        })
    }

    /// Reserves between `bytes_min` and `bytes_max` bytes. Measures the directory first if
    /// [`DirectoryQuota::try_reserve`] requires it, which reads the disk.
    ///
    /// # Errors
    /// The error of a full disk if the quota is reached, or if the directory must be measured and the pause since the
    /// last measurement is not over; and the error of a directory that cannot be measured.
    pub(crate) fn reserve(self: &Arc<Self>, bytes_min: u64, bytes_max: u64) -> io::Result<Reservation> {
        self.reserve_with_outer(bytes_min, bytes_max, Self::reserve_own)
    }

    fn reserve_own(self: &Arc<Self>, bytes_min: u64, bytes_max: u64) -> io::Result<Reservation> {
        if let Some(reservation) = self.try_reserve_own(bytes_min, bytes_max) {
            return Ok(reservation);
        }
        // A call that waited for the measurement of another call uses its result.
        let _measurement = self.measurement.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(reservation) = self.try_reserve_own(bytes_min, bytes_max) {
            return Ok(reservation);
        }
        self.measure()?;
        self.try_reserve_own(bytes_min, bytes_max).ok_or_else(|| {
            tracing::info!(directory = %self.path.display(), bytes_max = self.quota_bytes, "a plugin's directory is full");
            disk_full()
        })
    }

    /// Measures the directory. Bytes that are not written at the start of the measurement, or that are reserved during the
    /// measurement, count in addition, because the measurement may have missed them.
    ///
    /// # Errors
    /// The error of a full disk if the pause since the last measurement is not over, and the error of a directory that
    /// cannot be read.
    fn measure(&self) -> io::Result<()> {
        let started = Instant::now();
        let (unwritten_at_start, reserved_at_start) = {
            let count = self.lock_count();
            if count.next_measurement.is_some_and(|next| started < next) {
                return Err(disk_full());
            }
            (count.unwritten, count.reserved)
        };
        let on_disk = measure_tree(&self.directory)?;
        if on_disk == u64::MAX {
            tracing::warn!(
                directory = %self.path.display(),
                "a granted directory counts as full, because it has too many files or a directory that cannot be read"
            );
        }
        let on_disk = on_disk.saturating_add(self.files.removed_bytes(&self.path));
        let duration = started.elapsed().max(Duration::from_micros(1));
        let mut count = self.lock_count();
        let reserved_meanwhile = count.reserved.saturating_sub(reserved_at_start);
        let unmeasured = unwritten_at_start.saturating_add(reserved_meanwhile);
        count.used = Some(on_disk.saturating_add(unmeasured));
        count.reserved_at_measurement = reserved_at_start;
        count.next_measurement = Some(Instant::now() + duration * PAUSE_FACTOR);
        Ok(())
    }
}

/// Bytes of a quota that are about to be written. Until the reservation is dropped, they count in addition to the bytes
/// that a measurement finds.
#[derive(Debug)]
pub(crate) struct Reservation {
    quota: Arc<DirectoryQuota>,
    bytes: u64,
    /// The reservations of the same bytes in the quotas of outer directories.
    outer: Vec<Self>,
}

impl Reservation {
    /// Returns the number of reserved bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Releases the bytes that will not be written, so that at most `bytes` stay reserved.
    pub(crate) fn shrink(&mut self, bytes: u64) {
        let unused = self.bytes.saturating_sub(bytes);
        self.bytes -= unused;
        let mut count = self.quota.lock_count();
        count.used = count.used.map(|used| used.saturating_sub(unused));
        count.unwritten = count.unwritten.saturating_sub(unused);
        drop(count);
        for outer in &mut self.outer {
            outer.shrink(bytes);
        }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        let mut count = self.quota.lock_count();
        count.unwritten = count.unwritten.saturating_sub(self.bytes);
    }
}

/// Returns the error that the guest receives as "no space left".
pub(crate) fn disk_full() -> io::Error {
    const ERROR_DISK_FULL: i32 = 112;
    const ENOSPC: i32 = 28;
    io::Error::from_raw_os_error(if cfg!(windows) { ERROR_DISK_FULL } else { ENOSPC })
}

#[cfg(test)]
mod tests;
