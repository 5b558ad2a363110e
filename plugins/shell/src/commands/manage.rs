//! Commands that list and change files and directories.

use std::fs;
use std::path::Path;

use super::{Options, Result, describe};
use crate::execute::{Outcome, Shell};

pub(super) fn run(shell: &Shell, name: &str, arguments: &[String]) -> Result {
    match name {
        "ls" => ls(shell, arguments),
        "mkdir" => mkdir(shell, arguments),
        "rm" => rm(shell, arguments),
        "touch" => touch(shell, arguments),
        _ => transfer(shell, name == "mv", arguments),
    }
}

fn ls(shell: &Shell, arguments: &[String]) -> Result {
    let options = Options::parse(arguments, "al1AhdF", "")?;
    let here = [".".to_owned()];
    let operands = if options.operands.is_empty() {
        &here[..]
    } else {
        &options.operands
    };
    let mut outcome = Outcome::default();
    for operand in operands {
        let path = shell.resolve_path(operand);
        if path == Path::new("/") {
            outcome
                .stdout
                .extend(shell.roots().iter().map(|root| format!("{root}\n")));
            continue;
        }
        if path.is_file() || options.has('d') && path.is_dir() {
            outcome.stdout.push_str(&listing_line(&path, operand, &options));
            continue;
        }
        let entries = match fs::read_dir(&path) {
            Ok(entries) => entries.flatten(),
            Err(error) => {
                outcome.stderr.push_str(&format!("ls: {}\n", describe(operand, &error)));
                outcome.status = 1;
                continue;
            }
        };
        if operands.len() > 1 {
            outcome.stdout.push_str(&format!("{operand}:\n"));
        }
        let mut names: Vec<_> = entries
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .collect();
        names.retain(|name| !name.starts_with('.') || options.has('a') || options.has('A'));
        names.sort();
        for name in names {
            outcome
                .stdout
                .push_str(&listing_line(&path.join(&name), &name, &options));
        }
    }
    Ok(outcome)
}

/// Formats the line of a file: with `-l`, its kind (`d`, `l` or `-`), size and name; otherwise its name.
fn listing_line(path: &Path, name: &str, options: &Options) -> String {
    let metadata = path.symlink_metadata();
    let is_directory = metadata.as_ref().is_ok_and(fs::Metadata::is_dir);
    let mark = if options.has('F') && is_directory { "/" } else { "" };
    if !options.has('l') {
        return format!("{name}{mark}\n");
    }
    let kind = match &metadata {
        Ok(metadata) if metadata.is_dir() => 'd',
        Ok(metadata) if metadata.is_symlink() => 'l',
        _ => '-',
    };
    let size = metadata.map_or(0, |metadata| metadata.len());
    format!("{kind} {size:>10} {name}{mark}\n")
}

fn mkdir(shell: &Shell, arguments: &[String]) -> Result {
    let options = Options::parse(arguments, "p", "")?;
    for operand in &options.operands {
        let path = shell.resolve_path(operand);
        let result = if !options.has('p') {
            fs::create_dir(&path)
        } else if path.is_dir() {
            Ok(())
        } else {
            fs::create_dir_all(&path)
        };
        result.map_err(|error| describe(operand, &error))?;
    }
    Ok(Outcome::default())
}

fn rm(shell: &Shell, arguments: &[String]) -> Result {
    let options = Options::parse(arguments, "rRf", "")?;
    for operand in &options.operands {
        let path = shell.resolve_path(operand);
        if shell.is_root(operand) {
            return Err(format!("{operand}: is a granted directory"));
        }
        let result = match path.symlink_metadata() {
            Ok(metadata) if metadata.is_dir() && (options.has('r') || options.has('R')) => fs::remove_dir_all(&path),
            Ok(metadata) if metadata.is_dir() => return Err(format!("{operand}: is a directory; use `-r`")),
            Ok(_) => fs::remove_file(&path),
            Err(_) if options.has('f') => Ok(()),
            Err(error) => Err(error),
        };
        result.map_err(|error| describe(operand, &error))?;
    }
    Ok(Outcome::default())
}

fn touch(shell: &Shell, arguments: &[String]) -> Result {
    for operand in arguments {
        let result = fs::OpenOptions::new()
            .append(true)
            .create(true)
            .open(shell.resolve_path(operand));
        result.map_err(|error| describe(operand, &error))?;
    }
    Ok(Outcome::default())
}

/// Runs `cp` or `mv`.
fn transfer(shell: &Shell, moves: bool, arguments: &[String]) -> Result {
    let options = Options::parse(arguments, "rRafp", "")?;
    let Some((target, sources)) = options.operands.split_last().filter(|(_, sources)| !sources.is_empty()) else {
        return Err("it needs a source and a target".to_owned());
    };
    let target_path = shell.resolve_path(target);
    let is_directory = target_path.is_dir();
    if sources.len() > 1 && !is_directory {
        return Err(format!("{target}: is not a directory"));
    }
    for source in sources {
        let from = shell.resolve_path(source);
        let to = match from.file_name() {
            Some(name) if is_directory => target_path.join(name),
            _ => target_path.clone(),
        };
        if to.starts_with(&from) {
            return Err(format!("{source}: cannot be copied into itself"));
        }
        let result = if moves {
            fs::rename(&from, &to)
        } else if from.is_dir() {
            if !options.flags.contains(['r', 'R', 'a']) {
                return Err(format!("{source}: is a directory; use `-r`"));
            }
            copy(&from, &to)
        } else {
            fs::copy(&from, &to).map(|_| ())
        };
        result.map_err(|error| describe(source, &error))?;
    }
    Ok(Outcome::default())
}

/// Copies a directory. Links are left out.
fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        let kind = entry.file_type()?;
        if kind.is_dir() {
            copy(&entry.path(), &target)?;
        } else if kind.is_file() {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}
