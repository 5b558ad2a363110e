//! `sed` with the commands `s`, `p` and `d`.

use std::fs;

use regex::Regex;

use super::{Options, Result, describe, filter::compile_pattern, read_inputs};
use crate::execute::{Outcome, Shell};

/// A command of a script, and the lines to which it applies.
struct Edit {
    address: Address,
    action: Action,
}

enum Address {
    All,
    /// Lines, counted from 1.
    Lines(usize, usize),
    Last,
    Matching(Regex),
}

enum Action {
    Delete,
    Print,
    Substitute {
        pattern: Regex,
        replacement: String,
        is_global: bool,
        prints: bool,
    },
}

pub(super) fn run(shell: &Shell, arguments: &[String], input: &str) -> Result {
    let mut options = Options::parse(arguments, "nEri", "e")?;
    let mut scripts: Vec<String> = options.values.iter().map(|(_, script)| script.clone()).collect();
    if scripts.is_empty() {
        if options.operands.is_empty() {
            return Err("a script is missing".to_owned());
        }
        scripts.push(options.operands.remove(0));
    }
    let is_extended = options.has('E') || options.has('r');
    let edits = parse(&scripts.join("\n"), is_extended)?;
    let (prints, in_place) = (!options.has('n'), options.has('i'));
    let mut output = String::new();
    for (name, text) in read_inputs(shell, &options.operands, input)? {
        let edited = apply_edits(&edits, &text, prints);
        if in_place && !options.operands.is_empty() {
            fs::write(shell.resolve_path(&name), edited).map_err(|error| describe(&name, &error))?;
        } else {
            output.push_str(&edited);
        }
    }
    Ok(Outcome::output(output))
}

fn apply_edits(edits: &[Edit], text: &str, prints: bool) -> String {
    let total = text.lines().count();
    let mut output = String::new();
    'lines: for (line, number) in text.lines().zip(1..) {
        let mut line = line.to_owned();
        for edit in edits {
            let applies = match &edit.address {
                Address::All => true,
                Address::Lines(first, last) => (*first..=*last).contains(&number),
                Address::Last => number == total,
                Address::Matching(regex) => regex.is_match(&line),
            };
            match &edit.action {
                _ if !applies => {}
                Action::Delete => continue 'lines,
                Action::Print => output.push_str(&format!("{line}\n")),
                Action::Substitute {
                    pattern,
                    replacement,
                    is_global,
                    prints,
                } => {
                    let is_match = pattern.is_match(&line);
                    let limit = usize::from(!is_global);
                    line = pattern.replacen(&line, limit, replacement.as_str()).into_owned();
                    if is_match && *prints {
                        output.push_str(&format!("{line}\n"));
                    }
                }
            }
        }
        if prints {
            output.push_str(&line);
            output.push('\n');
        }
    }
    if !text.ends_with('\n') && output.ends_with('\n') {
        output.pop();
    }
    output
}

/// Parses commands that are separated by `;` or line breaks.
fn parse(script: &str, is_extended: bool) -> std::result::Result<Vec<Edit>, String> {
    let mut edits = Vec::new();
    let mut rest = script.trim_start_matches([' ', ';', '\n']);
    while !rest.is_empty() {
        let (address, after) = parse_address(rest, is_extended)?;
        let after = after.trim_start();
        let mut characters = after.chars();
        let action;
        (action, rest) = match characters.next() {
            Some('d') => (Action::Delete, characters.as_str()),
            Some('p') => (Action::Print, characters.as_str()),
            Some('s') => parse_substitution(characters.as_str(), is_extended)?,
            _ => return Err(format!("`{after}` is not supported; use `s`, `p` or `d`")),
        };
        edits.push(Edit { address, action });
        if !rest.is_empty() && !rest.starts_with([' ', ';', '\n']) {
            return Err(format!("unexpected `{rest}`"));
        }
        rest = rest.trim_start_matches([' ', ';', '\n']);
    }
    Ok(edits)
}

fn parse_address(text: &str, is_extended: bool) -> std::result::Result<(Address, &str), String> {
    if let Some(rest) = text.strip_prefix('$') {
        return Ok((Address::Last, rest));
    }
    if let Some(rest) = text.strip_prefix('/') {
        let (regex, rest) = read_until(rest, '/')?;
        return Ok((Address::Matching(compile_pattern(&regex, is_extended, false)?), rest));
    }
    let (first, rest) = take_number(text);
    let Some(first) = first else {
        return Ok((Address::All, text));
    };
    let Some(rest) = rest.strip_prefix(',') else {
        return Ok((Address::Lines(first, first), rest));
    };
    if let Some(rest) = rest.strip_prefix('$') {
        return Ok((Address::Lines(first, usize::MAX), rest));
    }
    match take_number(rest) {
        (Some(last), rest) => Ok((Address::Lines(first, last), rest)),
        (None, _) => Err("only numbers and `$` can end a range of lines".to_owned()),
    }
}

fn take_number(text: &str) -> (Option<usize>, &str) {
    let end = text.find(|next: char| !next.is_ascii_digit()).unwrap_or(text.len());
    (text[..end].parse().ok(), &text[end..])
}

/// Parses the rest of `s/pattern/replacement/flags`, after the `s`. Also returns the text after the command.
fn parse_substitution(text: &str, is_extended: bool) -> std::result::Result<(Action, &str), String> {
    let delimiter = text.chars().next().ok_or("`s` needs a pattern")?;
    let (regex, rest) = read_until(&text[delimiter.len_utf8()..], delimiter)?;
    let (replacement, rest) = read_until(rest, delimiter)?;
    let end = rest
        .find(|next: char| !next.is_ascii_alphanumeric())
        .unwrap_or(rest.len());
    let (flags, rest) = rest.split_at(end);
    if let Some(flag) = flags.chars().find(|flag| !"giIp".contains(*flag)) {
        return Err(format!("the flag `{flag}` of `s` is not supported"));
    }
    let action = Action::Substitute {
        pattern: compile_pattern(&regex, is_extended, flags.contains(['i', 'I']))?,
        replacement: replacement_of(&replacement),
        is_global: flags.contains('g'),
        prints: flags.contains('p'),
    };
    Ok((action, rest))
}

/// Reads up to a delimiter. An escaped delimiter is an ordinary character. Also returns the text after the delimiter.
fn read_until(text: &str, delimiter: char) -> std::result::Result<(String, &str), String> {
    let mut part = String::new();
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        if character == delimiter {
            return Ok((part, characters.as_str()));
        }
        match character {
            '\\' => match characters.next() {
                Some(next) if next == delimiter => part.push(next),
                Some(next) => part.extend(['\\', next]),
                None => part.push('\\'),
            },
            _ => part.push(character),
        }
    }
    Err(format!("a `{delimiter}` is missing"))
}

/// Translates `\1` and `&` to the form of the regex crate.
fn replacement_of(text: &str) -> String {
    let mut replacement = String::new();
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match character {
            '&' => replacement.push_str("${0}"),
            '$' => replacement.push_str("$$"),
            '\\' => match characters.next() {
                Some(digit) if digit.is_ascii_digit() => replacement.push_str(&format!("${{{digit}}}")),
                Some('n') => replacement.push('\n'),
                Some('t') => replacement.push('\t'),
                Some(next) => replacement.push(next),
                None => {}
            },
            _ => replacement.push(character),
        }
    }
    replacement
}
