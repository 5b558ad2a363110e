//! `find` with `-name`, `-iname`, `-type`, `-maxdepth` and `-empty`.

use std::fs;

use glob::{MatchOptions, Pattern};

use super::{Result, describe, parse_count, unknown_option};
use crate::execute::{Outcome, Shell};

/// Maximum depth of a search.
const DEPTH_MAX: usize = 64;

struct Search {
    name: Option<(Pattern, MatchOptions)>,
    kind: Option<char>,
    depth_max: usize,
    requires_empty: bool,
}

pub(super) fn run(shell: &Shell, arguments: &[String]) -> Result {
    let first = arguments
        .iter()
        .position(|argument| argument.starts_with('-'))
        .unwrap_or(arguments.len());
    let (roots, rest) = arguments.split_at(first);
    let search = parse(rest)?;
    let here = [".".to_owned()];
    let mut outcome = Outcome::default();
    for root in if roots.is_empty() { &here[..] } else { roots } {
        if root == "/" || shell.is_root(root) && !shell.resolve_path(root).is_dir() {
            for granted in shell.roots() {
                visit(shell, granted, 0, &search, &mut outcome);
            }
        } else if let Err(error) = shell.resolve_path(root).symlink_metadata() {
            outcome.stderr.push_str(&format!("find: {}\n", describe(root, &error)));
            outcome.status = 1;
        } else {
            visit(shell, root, 0, &search, &mut outcome);
        }
    }
    Ok(outcome)
}

fn parse(arguments: &[String]) -> std::result::Result<Search, String> {
    let mut search = Search {
        name: None,
        kind: None,
        depth_max: DEPTH_MAX,
        requires_empty: false,
    };
    let mut rest = arguments.iter();
    while let Some(option) = rest.next() {
        if option == "-empty" {
            search.requires_empty = true;
            continue;
        }
        if option == "-print" {
            continue;
        }
        let value = rest
            .next()
            .ok_or_else(|| format!("`{option}` needs a value, or is not supported"))?;
        match option.as_str() {
            "-name" | "-iname" => {
                let pattern =
                    Pattern::new(value).map_err(|error| format!("the pattern `{value}` is invalid: {error}"))?;
                let options = MatchOptions {
                    case_sensitive: option == "-name",
                    ..MatchOptions::new()
                };
                search.name = Some((pattern, options));
            }
            "-type" if value == "f" || value == "d" || value == "l" => search.kind = value.chars().next(),
            "-maxdepth" => search.depth_max = parse_count(value)?.min(DEPTH_MAX),
            _ => return Err(unknown_option(&format!("{option} {value}"))),
        }
    }
    Ok(search)
}

/// Prints a path and those below it that match, in the order of names. Links are not followed.
fn visit(shell: &Shell, name: &str, depth: usize, search: &Search, outcome: &mut Outcome) {
    let path = shell.resolve_path(name);
    let kind = path.symlink_metadata().map(|metadata| metadata.file_type());
    let letter = match &kind {
        Ok(kind) if kind.is_symlink() => 'l',
        Ok(kind) if kind.is_dir() => 'd',
        Ok(_) => 'f',
        // The attributes of a granted directory itself may be hidden.
        Err(_) => 'd',
    };
    let mut children = Vec::new();
    if letter == 'd' {
        let entries = fs::read_dir(&path).into_iter().flatten().flatten();
        children.extend(entries.map(|entry| entry.file_name().to_string_lossy().into_owned()));
        children.sort();
    }
    let is_empty = match letter {
        'd' => children.is_empty(),
        _ => path.metadata().is_ok_and(|metadata| metadata.len() == 0),
    };
    let base = name.trim_end_matches('/').rsplit('/').next().unwrap_or(name);
    let is_match = search
        .name
        .as_ref()
        .is_none_or(|(pattern, options)| pattern.matches_with(base, *options))
        && search.kind.is_none_or(|kind| kind == letter)
        && (!search.requires_empty || is_empty);
    if is_match {
        outcome.stdout.push_str(&format!("{name}\n"));
    }
    if depth < search.depth_max {
        let parent = name.trim_end_matches('/');
        for child in children {
            visit(shell, &format!("{parent}/{child}"), depth + 1, search, outcome);
        }
    }
}
