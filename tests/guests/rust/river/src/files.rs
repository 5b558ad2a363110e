//! Attempts on files.

use wasip3::filesystem::preopens::get_directories;
use wasip3::filesystem::types::{Descriptor, DescriptorFlags, OpenFlags, PathFlags};
use wasip3::wit_stream;
use wit_bindgen::spawn_local;

type Outcome<T> = Result<T, String>;

fn text(error: impl std::fmt::Debug) -> String {
    format!("{error:?}")
}

/// Finds the preopened directory of a path, and the rest of the path.
fn at(path: &str) -> Outcome<(Descriptor, String)> {
    let mut found: Option<(Descriptor, String)> = None;
    let mut longest = 0;
    for (directory, name) in get_directories() {
        let prefix = name.trim_end_matches('/');
        let Some(rest) = path.strip_prefix(prefix) else { continue };
        if name.len() >= longest && (rest.is_empty() || rest.starts_with('/')) {
            longest = name.len();
            let rest = rest.trim_start_matches('/');
            found = Some((directory, if rest.is_empty() { "." } else { rest }.to_owned()));
        }
    }
    found.ok_or_else(|| "no directory".to_owned())
}

async fn open(path: &str, create: OpenFlags, mode: DescriptorFlags) -> Outcome<Descriptor> {
    let (directory, name) = at(path)?;
    directory.open_at(PathFlags::SYMLINK_FOLLOW, name, create, mode).await.map_err(text)
}

pub(crate) async fn read(path: &str) -> Outcome<String> {
    let file = open(path, OpenFlags::empty(), DescriptorFlags::READ).await?;
    let (stream, end) = file.read_via_stream(0);
    let bytes = stream.collect().await;
    end.await.map_err(text)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

pub(crate) async fn write(path: &str, offset: u64, bytes: Vec<u8>) -> Outcome<String> {
    let file = open(path, OpenFlags::CREATE, DescriptorFlags::WRITE).await?;
    let (mut writer, reader) = wit_stream::new();
    let end = file.write_via_stream(reader, offset);
    writer.write_all(bytes).await;
    drop(writer);
    end.await.map_err(text)?;
    Ok("written".to_owned())
}

pub(crate) async fn fill(path: &str, bytes: u64, streams: u32) -> Outcome<u64> {
    let file = open(path, OpenFlags::CREATE, DescriptorFlags::WRITE | DescriptorFlags::READ).await?;
    let mut ends = Vec::new();
    for number in 0..u64::from(streams) {
        let (mut writer, reader) = wit_stream::new();
        ends.push(file.write_via_stream(reader, number * bytes));
        spawn_local(async move {
            let mut left = bytes;
            while left > 0 {
                let piece = left.min(32 << 10);
                if !writer.write_all(vec![0; piece as usize]).await.is_empty() {
                    return;
                }
                left -= piece;
            }
        });
    }
    for end in ends {
        let _ = end.await;
    }
    Ok(file.stat().await.map_err(text)?.size)
}

pub(crate) async fn entries(path: &str) -> Outcome<Vec<String>> {
    let directory = open(path, OpenFlags::DIRECTORY, DescriptorFlags::READ).await?;
    let (stream, end) = directory.read_directory();
    let mut names: Vec<String> = stream.collect().await.into_iter().map(|entry| entry.name).collect();
    end.await.map_err(text)?;
    names.sort();
    Ok(names)
}

pub(crate) async fn hoard(path: &str, streams: u32) -> Outcome<u32> {
    let directory = open(path, OpenFlags::DIRECTORY, DescriptorFlags::READ).await?;
    let mut held = Vec::new();
    for _ in 0..streams {
        let (mut stream, end) = directory.read_directory();
        // One entry, so that the host has begun to read.
        let first = stream.next().await;
        held.push((stream, end, first));
    }
    Ok(held.len() as u32)
}

pub(crate) async fn change(how: &str, path: &str, other: &str) -> Outcome<String> {
    let (directory, name) = at(path)?;
    let done = match how {
        "mkdir" => directory.create_directory_at(name).await,
        "unlink" => directory.unlink_file_at(name).await,
        "symlink" => directory.symlink_at(other.to_owned(), name).await,
        "rename" => {
            let (to, new) = at(other)?;
            directory.rename_at(name, &to, new).await
        }
        "link" => {
            let (to, new) = at(other)?;
            directory.link_at(PathFlags::empty(), name, &to, new).await
        }
        "resize" => {
            let file = open(path, OpenFlags::CREATE, DescriptorFlags::WRITE).await?;
            file.set_size(other.parse().map_err(text)?).await
        }
        _ => return Err("unknown change".to_owned()),
    };
    done.map(|()| "changed".to_owned()).map_err(text)
}
