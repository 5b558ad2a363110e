//! Commands that read no files: `echo`, `printf`, `seq`, `cd` and others.

use super::Result;
use crate::execute::{Outcome, Shell};

/// Maximum number of lines of `seq`.
const LINES_MAX: i64 = 100_000;

pub(super) fn run(shell: &mut Shell, name: &str, arguments: &[String]) -> Result {
    match name {
        "echo" => Ok(echo(arguments)),
        "printf" => printf(arguments),
        "basename" => basename(arguments),
        "dirname" => dirname(arguments),
        "seq" => seq(arguments),
        "pwd" => Ok(Outcome::output(format!("{}\n", shell.state.directory.display()))),
        "cd" => cd(shell, arguments),
        _ => Ok(export(shell, arguments)),
    }
}

fn echo(arguments: &[String]) -> Outcome {
    match arguments.split_first() {
        Some((flag, rest)) if flag == "-n" => Outcome::output(rest.join(" ")),
        Some((flag, rest)) if flag == "-e" => Outcome::output(unescape(&rest.join(" ")) + "\n"),
        _ => Outcome::output(arguments.join(" ") + "\n"),
    }
}

/// Replaces escapes such as `\n`.
pub(crate) fn unescape(text: &str) -> String {
    let mut plain = String::new();
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match (character, character == '\\') {
            (_, true) => match characters.next() {
                Some('n') => plain.push('\n'),
                Some('t') => plain.push('\t'),
                Some('r') => plain.push('\r'),
                Some('\\') | None => plain.push('\\'),
                Some(other) => plain.extend(['\\', other]),
            },
            (character, false) => plain.push(character),
        }
    }
    plain
}

fn printf(arguments: &[String]) -> Result {
    let (format, mut rest) = arguments.split_first().ok_or("a format is missing")?;
    let format = unescape(format);
    let mut output = String::new();
    loop {
        let before = rest.len();
        let mut characters = format.chars();
        while let Some(character) = characters.next() {
            if character != '%' {
                output.push(character);
                continue;
            }
            let mut width = String::new();
            let kind = characters.find(|next| {
                let is_width = next.is_ascii_digit() || *next == '-';
                if is_width {
                    width.push(*next);
                }
                !is_width
            });
            if kind == Some('%') {
                output.push('%');
                continue;
            }
            let value = rest.first().cloned().unwrap_or_default();
            rest = rest.get(1..).unwrap_or_default();
            let value = match kind {
                Some('s') => value,
                Some('b') => unescape(&value),
                Some('d' | 'i') => parse_integer(if value.is_empty() { "0" } else { &value })?.to_string(),
                _ => return Err("only %s, %d, %i, %b and %% are supported".to_owned()),
            };
            output.push_str(&pad(&value, &width)?);
        }
        // The format is used again while it takes arguments.
        if rest.is_empty() || rest.len() == before {
            return Ok(Outcome::output(output));
        }
    }
}

fn pad(value: &str, width: &str) -> std::result::Result<String, String> {
    let (is_left, digits) = match width.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, width),
    };
    let columns: usize = if digits.is_empty() {
        0
    } else {
        super::parse_count(digits)?
    };
    let columns = columns.min(1000);
    Ok(match (is_left, digits.starts_with('0')) {
        (true, _) => format!("{value:<columns$}"),
        (false, true) => format!("{value:0>columns$}"),
        (false, false) => format!("{value:>columns$}"),
    })
}

fn basename(arguments: &[String]) -> Result {
    let path = arguments.first().ok_or("a path is missing")?.trim_end_matches('/');
    let name = path.rsplit('/').next().unwrap_or(path);
    let suffix = arguments.get(1).map_or("", String::as_str);
    let name = name
        .strip_suffix(suffix)
        .filter(|stem| !stem.is_empty())
        .unwrap_or(name);
    Ok(Outcome::output(format!("{name}\n")))
}

fn dirname(arguments: &[String]) -> Result {
    let path = arguments.first().ok_or("a path is missing")?.trim_end_matches('/');
    let directory = match path.rsplit_once('/') {
        Some(("", _)) => "/",
        Some((directory, _)) => directory,
        None => ".",
    };
    Ok(Outcome::output(format!("{directory}\n")))
}

fn seq(arguments: &[String]) -> Result {
    let numbers: Vec<i64> = arguments
        .iter()
        .map(|text| parse_integer(text))
        .collect::<std::result::Result<_, _>>()?;
    let (first, step, last) = match numbers[..] {
        [last] => (1, 1, last),
        [first, last] => (first, 1, last),
        [first, step, last] if step != 0 => (first, step, last),
        _ => return Err("it takes one to three numbers".to_owned()),
    };
    let mut output = String::new();
    let mut number = first;
    for _ in 0..LINES_MAX {
        if if step > 0 { number > last } else { number < last } {
            return Ok(Outcome::output(output));
        }
        output.push_str(&format!("{number}\n"));
        number = number.saturating_add(step);
    }
    Err(format!("more than {LINES_MAX} lines"))
}

fn cd(shell: &mut Shell, arguments: &[String]) -> Result {
    let target = arguments.first().map_or("/", String::as_str);
    let path = shell.resolve_path(target);
    if !shell.is_root(target) && !path.is_dir() {
        return Err(format!("{target}: no such directory"));
    }
    shell.state.directory = path;
    Ok(Outcome::default())
}

fn export(shell: &mut Shell, arguments: &[String]) -> Outcome {
    for (name, value) in arguments.iter().filter_map(|argument| argument.split_once('=')) {
        shell.set_variable(name, value);
    }
    Outcome::default()
}

pub(super) fn parse_integer(text: &str) -> std::result::Result<i64, String> {
    text.trim()
        .parse()
        .map_err(|_| format!("`{text}` is not a whole number"))
}
