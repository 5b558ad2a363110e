//! Attempts on the file system.

use std::fs::{self, OpenOptions};
use std::io::Write;

use wasip2::filesystem::preopens::get_directories;
use wasip2::filesystem::types::{Descriptor, DescriptorFlags, NewTimestamp, OpenFlags, PathFlags};

use crate::exports::test::probe::files::Guest;
use crate::{Probe, with_text_error};

impl Guest for Probe {
    fn read(path: String) -> Result<String, String> {
        with_text_error(fs::read_to_string(path))
    }

    fn write(path: String, text: String) -> Result<String, String> {
        with_text_error(fs::write(path, text)).map(|()| "written".to_owned())
    }

    fn entries(path: String) -> Result<Vec<String>, String> {
        let mut names = Vec::new();
        for entry in with_text_error(fs::read_dir(path))? {
            names.push(with_text_error(entry)?.file_name().to_string_lossy().into_owned());
        }
        names.sort();
        Ok(names)
    }

    fn fill(path: String, bytes: u64) -> Result<u64, String> {
        Ok(write_zeros(&mut with_text_error(fs::File::create(path))?, bytes))
    }

    fn orphan(path: String, bytes: u64, files: u32) -> u64 {
        let (mut held, mut open) = (0, Vec::new());
        for _ in 0..files {
            let Ok(mut file) = fs::File::create(&path) else { break };
            held += write_zeros(&mut file, bytes);
            open.push(file);
            if fs::remove_file(&path).is_err() {
                break;
            }
        }
        held
    }

    fn leap(path: String, offset: u64) -> Result<String, String> {
        let (directory, name) = place(&path)?;
        let opened = directory.open_at(PathFlags::empty(), &name, OpenFlags::CREATE, DescriptorFlags::WRITE);
        let file = opened.map_err(|error| error.to_string())?;
        let stream = file.write_via_stream(offset).map_err(|error| error.to_string())?;
        let mut last = stream.blocking_write_and_flush(b"x");
        if last.is_err() {
            last = stream.blocking_write_and_flush(b"x");
        }
        last.map(|()| "written".to_owned()).map_err(|error| error.to_string())
    }

    fn smuggle(how: String, path: String, other: String, bytes: u64) -> Result<u64, String> {
        let mut file = with_text_error(fs::File::create(&path))?;
        with_text_error(match how.as_str() {
            "rename" => fs::rename(&path, other),
            _ => fs::hard_link(&path, other),
        })?;
        Ok(write_zeros(&mut file, bytes))
    }

    fn change(how: String, path: String, other: String) -> Result<String, String> {
        let done = match how.as_str() {
            "truncate" => with_text_error(OpenOptions::new().write(true).truncate(true).open(path)).map(drop),
            "append" => with_text_error(OpenOptions::new().append(true).open(path)).and_then(|mut file| with_text_error(file.write_all(b"x"))),
            "unlink" => with_text_error(fs::remove_file(path)),
            "rmdir" => with_text_error(fs::remove_dir(path)),
            "mkdir" => with_text_error(fs::create_dir(path)),
            "rename" => with_text_error(fs::rename(path, other)),
            "link" => with_text_error(fs::hard_link(path, other)),
            "symlink" => symlink(&path, &other),
            "touch" => touch(&path),
            "descend" => descend(&path, &other),
            "grow" => with_text_error(OpenOptions::new().write(true).create(true).truncate(false).open(path))
                .and_then(|file| with_text_error(file.set_len(1 << 30))),
            other => Err(format!("what is `{other}`?")),
        };
        done.map(|()| "done".to_owned())
    }
}

/// Writes zeros until a write fails, and returns their number.
fn write_zeros(file: &mut fs::File, bytes: u64) -> u64 {
    const PIECE: [u8; 4096] = [0; 4096];
    let mut written = 0;
    while written < bytes {
        match file.write(&PIECE) {
            Ok(count) if count > 0 => written += count as u64,
            _ => break,
        }
    }
    written
}

/// Finds the directory of a path, as the guest's own library would.
fn place(path: &str) -> Result<(Descriptor, String), String> {
    get_directories()
        .into_iter()
        .filter_map(|(directory, name)| {
            let rest = path.strip_prefix(&name)?.trim_start_matches('/').to_owned();
            Some((directory, rest))
        })
        .next()
        .ok_or_else(|| "there is no such directory".to_owned())
}

fn symlink(target: &str, path: &str) -> Result<(), String> {
    let (directory, name) = place(path)?;
    directory.symlink_at(target, &name).map_err(|error| error.to_string())
}

/// Opens a directory, and from each opened directory the next one. All stay open.
fn descend(path: &str, next: &str) -> Result<(), String> {
    let (directory, name) = place(path)?;
    let mut opened = vec![directory];
    for step in [name.as_str(), next, next, next] {
        let step = if step.is_empty() { "." } else { step };
        let directory = opened.last().ok_or("nothing is open")?;
        let inner = directory.open_at(PathFlags::SYMLINK_FOLLOW, step, OpenFlags::DIRECTORY, DescriptorFlags::READ);
        opened.push(inner.map_err(|error| error.to_string())?);
    }
    Ok(())
}

fn touch(path: &str) -> Result<(), String> {
    let (directory, name) = place(path)?;
    directory
        .set_times_at(PathFlags::empty(), &name, NewTimestamp::Now, NewTimestamp::Now)
        .map_err(|error| error.to_string())
}
