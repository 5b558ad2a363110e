//! Commands that print texts or parts of them.

use std::fs;
use std::io::Write as _;

use super::{Options, Result, describe, parse_count, read_inputs};
use crate::execute::{Outcome, Shell};

/// Default number of lines of `head` and `tail`.
const LINES_DEFAULT: usize = 10;

pub(super) fn run(shell: &Shell, name: &str, arguments: &[String], input: &str) -> Result {
    match name {
        "cat" => cat(shell, arguments, input),
        "wc" => wc(shell, arguments, input),
        "tee" => tee(shell, arguments, input),
        _ => head_or_tail(shell, name == "head", arguments, input),
    }
}

fn cat(shell: &Shell, arguments: &[String], input: &str) -> Result {
    let options = Options::parse(arguments, "n", "")?;
    let texts: String = read_inputs(shell, &options.operands, input)?
        .into_iter()
        .map(|(_, text)| text)
        .collect();
    if !options.has('n') {
        return Ok(Outcome::output(texts));
    }
    let lines = texts.split_inclusive('\n').zip(1..);
    Ok(Outcome::output(
        lines.map(|(line, number)| format!("{number:>6}\t{line}")).collect(),
    ))
}

/// Runs `head` or `tail`.
fn head_or_tail(shell: &Shell, is_head: bool, arguments: &[String], input: &str) -> Result {
    // `-5` is an old form of `-n 5`.
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let is_value = |at: usize| at > 0 && ["-n", "-c"].contains(&arguments[at - 1].as_str());
    let modern = arguments
        .iter()
        .enumerate()
        .map(|(at, argument)| match argument.strip_prefix('-') {
            Some(digits) if is_number(digits) && !is_value(at) => format!("-n{digits}"),
            _ => argument.clone(),
        });
    let options = Options::parse(&modern.collect::<Vec<_>>(), "q", "nc")?;
    let files = read_inputs(shell, &options.operands, input)?;
    let mut output = String::new();
    for (name, text) in &files {
        if files.len() > 1 && !options.has('q') {
            output.push_str(&format!("==> {name} <==\n"));
        }
        output.push_str(match options.value('c') {
            Some(count) => take_bytes(text, is_head, parse_count(count)?),
            None => take_lines(text, is_head, options.value('n').unwrap_or_default())?,
        });
    }
    Ok(Outcome::output(output))
}

/// Returns the first or last bytes, cut at the border of a character.
fn take_bytes(text: &str, is_head: bool, count: usize) -> &str {
    if is_head {
        &text[..text.floor_char_boundary(count.min(text.len()))]
    } else {
        &text[text.ceil_char_boundary(text.len().saturating_sub(count))..]
    }
}

fn take_lines<'a>(text: &'a str, is_head: bool, count: &str) -> std::result::Result<&'a str, String> {
    let total = text.split_inclusive('\n').count();
    let first = match (is_head, count.strip_prefix(['+', '-'])) {
        (_, None) if count.is_empty() => {
            if is_head {
                LINES_DEFAULT
            } else {
                total.saturating_sub(LINES_DEFAULT)
            }
        }
        (true, None) => parse_count(count)?,
        (false, None) => total.saturating_sub(parse_count(count)?),
        // `head -n -2` leaves out the last lines, `tail -n +2` begins at a line.
        (true, Some(number)) => total.saturating_sub(parse_count(number)?),
        (false, Some(number)) if count.starts_with('+') => parse_count(number)?.saturating_sub(1),
        (false, Some(number)) => total.saturating_sub(parse_count(number)?),
    };
    let position = text.split_inclusive('\n').take(first).map(str::len).sum();
    Ok(if is_head { &text[..position] } else { &text[position..] })
}

fn wc(shell: &Shell, arguments: &[String], input: &str) -> Result {
    let options = Options::parse(arguments, "lwcm", "")?;
    let flags = if options.flags.is_empty() {
        "lwc"
    } else {
        &options.flags
    };
    let mut rows: Vec<(Vec<usize>, String)> = Vec::new();
    for (name, text) in read_inputs(shell, &options.operands, input)? {
        let counts = ['l', 'w', 'm', 'c'].into_iter().filter(|flag| flags.contains(*flag));
        let counts = counts.map(|flag| match flag {
            'l' => text.matches('\n').count(),
            'w' => text.split_whitespace().count(),
            'm' => text.chars().count(),
            _ => text.len(),
        });
        rows.push((counts.collect(), name));
    }
    if rows.len() > 1 {
        let total = |at: usize| rows.iter().map(|(counts, _)| counts[at]).sum();
        rows.push(((0..rows[0].0.len()).map(total).collect(), "total".to_owned()));
    }
    let line = |(counts, name): &(Vec<usize>, String)| {
        let counts: Vec<_> = counts.iter().map(ToString::to_string).collect();
        let name = if options.operands.is_empty() {
            String::new()
        } else {
            format!(" {name}")
        };
        format!("{}{name}\n", counts.join(" "))
    };
    Ok(Outcome::output(rows.iter().map(line).collect()))
}

fn tee(shell: &Shell, arguments: &[String], input: &str) -> Result {
    let options = Options::parse(arguments, "a", "")?;
    for file in &options.operands {
        let mut open = fs::OpenOptions::new();
        open.create(true)
            .write(true)
            .append(options.has('a'))
            .truncate(!options.has('a'));
        let written = open
            .open(shell.resolve_path(file))
            .and_then(|mut file| file.write_all(input.as_bytes()));
        written.map_err(|error| describe(file, &error))?;
    }
    Ok(Outcome::output(input.to_owned()))
}
