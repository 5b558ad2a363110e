#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::Path;

use super::*;

fn quota(directory: &Path, quota_bytes: u64) -> Arc<DirectoryQuota> {
    let handle = Arc::new(File::open(directory).unwrap());
    let path = directory.to_owned();
    Arc::new(DirectoryQuota::new(handle, path, quota_bytes, Arc::default()))
}

/// Reserves bytes after the pause that follows the last measurement.
fn reserve_after_pause(quota: &Arc<DirectoryQuota>, bytes: u64) {
    while quota.reserve(bytes, bytes).is_err() {
        std::thread::yield_now();
    }
}

// attack: B18
#[test]
fn only_removed_bytes_are_freed() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("existing"), [0; 1_000]).unwrap();
    let quota = quota(directory.path(), 20_000);
    quota.reserve(10_000, 10_000).unwrap();
    assert!(quota.try_reserve(10_000, 10_000).is_none());
    fs::write(directory.path().join("written"), [0; 10_000]).unwrap();
    assert!(quota.reserve(10_000, 10_000).is_err(), "the file is on disk");
    fs::remove_file(directory.path().join("written")).unwrap();
    reserve_after_pause(&quota, 10_000);
}

// attack: L18
#[test]
fn several_processes_share_a_quota() {
    let directory = tempfile::tempdir().unwrap();
    let quotas: Vec<_> = (0..6).map(|_| quota(directory.path(), 160_000)).collect();
    for quota in &quotas {
        quota.reserve(1, 1).unwrap();
    }
    let mut written = 0;
    for number in 0..400 {
        let quota = &quotas[number % quotas.len()];
        let next = quota.lock_count().next_measurement.unwrap();
        while Instant::now() < next {
            std::thread::yield_now();
        }
        // A file of 1,904 bytes counts as 6,000 bytes: its content and `ENTRY_BYTES`.
        if let Ok(reservation) = quota.reserve(6_000, 6_000) {
            fs::write(directory.path().join(number.to_string()), [0; 1_904]).unwrap();
            written += reservation.bytes();
        }
    }
    // Each process can exceed the quota by at most an eighth and one file before it measures the directory.
    assert!(
        (150_000..=160_000 + 6 * (20_000 + 6_000)).contains(&written),
        "{written}"
    );
}

// attack: L3
#[cfg(unix)]
#[test]
fn a_removed_file_is_freed_when_it_is_closed() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("written");
    fs::write(&path, [0; 10_000]).unwrap();
    let quota = quota(directory.path(), 20_000);
    let file = Arc::new(File::open(&path).unwrap());
    quota.files.track(directory.path(), &file);
    quota.files.track(directory.path(), &file);
    fs::remove_file(&path).unwrap();
    assert!(quota.reserve(10_000, 10_000).is_err(), "the file is open");
    assert!(measure_tree(&quota.directory).unwrap() == 0);
    drop(file);
    reserve_after_pause(&quota, 10_000);
}

#[test]
fn reserved_bytes_count_until_they_are_written() {
    let directory = tempfile::tempdir().unwrap();
    let quota = quota(directory.path(), 20_000);
    let reservation = quota.reserve(15_000, 15_000).unwrap();
    assert!(
        quota.reserve(15_000, 15_000).is_err(),
        "a measurement does not see the reserved bytes"
    );
    drop(reservation);
    reserve_after_pause(&quota, 15_000);
}

#[test]
fn bytes_in_an_inner_directory_draw_on_both_quotas() {
    let directory = tempfile::tempdir().unwrap();
    let inside = directory.path().join("inside");
    fs::create_dir(&inside).unwrap();
    let all = [quota(directory.path(), 20_000), quota(&inside, 15_000)];
    all.iter().for_each(|quota| quota.set_outer(&all));
    let [outer, inner] = all;
    let reservation = inner.reserve(9_000, 9_000).unwrap();
    fs::write(inside.join("file"), [0; 5_000]).unwrap();
    drop(reservation);
    // The file is moved out, so that the inner directory is empty.
    fs::rename(inside.join("file"), directory.path().join("moved")).unwrap();
    let mut reservation = inner.reserve(1, 15_000).unwrap();
    assert!(reservation.bytes() < 10_000, "{}", reservation.bytes());
    assert!(outer.reserve_counted(2_000, 2_000).is_none());
    reservation.shrink(0);
    drop(reservation);
    assert!(outer.reserve_counted(2_000, 2_000).is_some());
}

#[test]
fn unused_bytes_of_a_reservation_are_released() {
    let directory = tempfile::tempdir().unwrap();
    let quota = quota(directory.path(), 20_000);
    let mut reservation = quota.reserve(1, 30_000).unwrap();
    assert_eq!(reservation.bytes(), 20_000, "no more than the quota has left");
    assert!(quota.try_reserve(1, 1).is_none());
    reservation.shrink(5_000);
    assert!(quota.try_reserve(15_001, 15_001).is_none());
    assert_eq!(quota.try_reserve(1, 30_000).unwrap().bytes(), 15_000);
}

// attack: L15
#[test]
fn a_writer_below_the_quota_does_not_wait_for_a_measurement() {
    let directory = tempfile::tempdir().unwrap();
    let quota = quota(directory.path(), 20_000);
    quota.reserve(1, 1).unwrap();
    let measurement = quota.measurement.lock().unwrap();
    assert!(quota.try_reserve(10, 10).is_some());
    drop(measurement);
}

// attack: L6
#[cfg(unix)]
#[test]
fn a_tree_deeper_than_any_path_is_measured() {
    const NAME: &str = "a-directory-with-a-long-name-so-that-the-path-becomes-too-long";
    let directory = tempfile::tempdir().unwrap();
    let mut deepest = File::open(directory.path()).unwrap();
    let options = cap_primitives::fs::DirOptions::new();
    for _ in 0..200 {
        for name in [NAME, "other"] {
            cap_primitives::fs::create_dir(&deepest, Path::new(name), &options).unwrap();
        }
        deepest = cap_primitives::fs::open_dir(&deepest, Path::new(NAME)).unwrap();
    }
    let root = File::open(directory.path()).unwrap();
    assert_eq!(measure_tree(&root).unwrap(), 400 * ENTRY_BYTES);
    cap_primitives::fs::remove_dir_all(&root, Path::new(NAME)).unwrap();
}
