//! Commands that filter lines.

use std::cmp::Ordering;
use std::fs;

use regex::{Regex, RegexBuilder};

use super::{Options, Result, parse_count, read_file, read_inputs};
use crate::execute::{Outcome, Shell};

pub(super) fn run(shell: &Shell, name: &str, arguments: &[String], input: &str) -> Result {
    match name {
        "grep" => grep(shell, arguments, input),
        "sort" => sort(shell, arguments, input),
        "uniq" => uniq(shell, arguments, input),
        "cut" => cut(shell, arguments, input),
        _ => tr(arguments, input),
    }
}

/// Compiles a pattern of `grep` or `sed`. In a basic pattern, operators such as `+` are escaped, and unescaped ones are
/// characters; in an extended pattern, it is the other way round.
pub(super) fn compile_pattern(text: &str, is_extended: bool, ignores_case: bool) -> std::result::Result<Regex, String> {
    let mut translated = String::new();
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' if !is_extended => match characters.next() {
                Some(operator @ ('(' | ')' | '{' | '}' | '|' | '+' | '?')) => translated.push(operator),
                Some(other) => translated.extend(['\\', other]),
                None => translated.push_str("\\\\"),
            },
            '(' | ')' | '{' | '}' | '|' | '+' | '?' if !is_extended => translated.extend(['\\', character]),
            _ => translated.push(character),
        }
    }
    let regex = RegexBuilder::new(&translated).case_insensitive(ignores_case).build();
    regex.map_err(|error| format!("the pattern `{text}` is invalid: {error}"))
}

fn grep(shell: &Shell, arguments: &[String], input: &str) -> Result {
    let mut options = Options::parse(arguments, "EFGivnclrRoqhHwx", "em")?;
    let text = match options.value('e') {
        Some(text) => text.to_owned(),
        None if options.operands.is_empty() => return Err("a pattern is missing".to_owned()),
        None => options.operands.remove(0),
    };
    let mut text = if options.has('F') { regex::escape(&text) } else { text };
    let is_extended = options.has('E') || options.has('F');
    for (flag, border) in [('w', "\\b"), ('x', "")] {
        if options.has(flag) {
            let (open, close) = if is_extended { ("(", ")") } else { ("\\(", "\\)") };
            let (start, end) = if flag == 'x' { ("^", "$") } else { (border, border) };
            text = format!("{start}{open}{text}{close}{end}");
        }
    }
    let regex = compile_pattern(&text, is_extended, options.has('i'))?;
    let is_recursive = options.has('r') || options.has('R');
    let mut files = if is_recursive {
        Vec::new()
    } else {
        read_inputs(shell, &options.operands, input)?
    };
    if is_recursive {
        let here = [".".to_owned()];
        for root in if options.operands.is_empty() {
            &here[..]
        } else {
            &options.operands
        } {
            read_text_files_below(shell, root, 0, &mut files);
        }
    }
    let limit = options.value('m').map_or(Ok(usize::MAX), parse_count)?;
    let has_names = (files.len() > 1 || is_recursive || options.has('H')) && !options.has('h');
    let mut outcome = Outcome {
        status: 1,
        ..Outcome::default()
    };
    for (name, text) in &files {
        let lines = text
            .lines()
            .zip(1..)
            .filter(|(line, _)| regex.is_match(line) != options.has('v'));
        let lines: Vec<(&str, usize)> = lines.take(limit).collect();
        if !lines.is_empty() {
            outcome.status = 0;
        }
        let prefix = if has_names { format!("{name}:") } else { String::new() };
        if options.has('l') && !options.has('q') && !lines.is_empty() {
            outcome.stdout.push_str(&format!("{name}\n"));
        } else if options.has('c') && !options.has('q') {
            outcome.stdout.push_str(&format!("{prefix}{}\n", lines.len()));
        } else if !options.has('q') && !options.has('l') {
            print_lines(&lines, &prefix, &regex, &options, &mut outcome.stdout);
        }
    }
    Ok(outcome)
}

/// Prints matching lines, or with `-o` their matching parts.
fn print_lines(lines: &[(&str, usize)], prefix: &str, regex: &Regex, options: &Options, output: &mut String) {
    for (line, number) in lines {
        let number = if options.has('n') {
            format!("{number}:")
        } else {
            String::new()
        };
        if options.has('o') {
            let matches = regex.find_iter(line);
            output.extend(matches.map(|part| format!("{prefix}{number}{}\n", part.as_str())));
        } else {
            output.push_str(&format!("{prefix}{number}{line}\n"));
        }
    }
}

/// Reads all text files below a path. Links are not followed.
fn read_text_files_below(shell: &Shell, name: &str, depth: usize, files: &mut Vec<(String, String)>) {
    let path = shell.resolve_path(name);
    if path.is_file() {
        files.extend(
            read_file(shell, name)
                .ok()
                .filter(|text| !text.contains('\0'))
                .map(|text| (name.to_owned(), text)),
        );
        return;
    }
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    let entries = entries.filter(|entry| entry.file_type().is_ok_and(|kind| !kind.is_symlink()));
    let mut names: Vec<_> = entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    if depth < 64 {
        let parent = name.trim_end_matches('/');
        names
            .iter()
            .for_each(|child| read_text_files_below(shell, &format!("{parent}/{child}"), depth + 1, files));
    }
}

/// Returns the lines of all inputs.
fn all_lines(shell: &Shell, files: &[String], input: &str) -> std::result::Result<Vec<String>, String> {
    let texts = read_inputs(shell, files, input)?;
    Ok(texts
        .iter()
        .flat_map(|(_, text)| text.lines())
        .map(str::to_owned)
        .collect())
}

fn lines_output(lines: &[String]) -> Outcome {
    Outcome::output(lines.iter().map(|line| format!("{line}\n")).collect())
}

fn sort(shell: &Shell, arguments: &[String], input: &str) -> Result {
    let options = Options::parse(arguments, "rnufV", "kt")?;
    let mut lines = all_lines(shell, &options.operands, input)?;
    let separator = options.value('t').map(str::to_owned);
    let (field, letters) = match options.value('k') {
        Some(key) => {
            let digits = key.find(|next: char| !next.is_ascii_digit()).unwrap_or(key.len());
            (Some(parse_count(&key[..digits])?), &key[digits..])
        }
        None => (None, ""),
    };
    let has = |flag: char| options.has(flag) || letters.contains(flag);
    let key = |line: &str| -> String {
        let text = match (field, &separator) {
            (None, _) => line.to_owned(),
            (Some(field), Some(separator)) => line
                .split(separator.as_str())
                .skip(field.saturating_sub(1))
                .collect::<Vec<_>>()
                .join(separator),
            (Some(field), None) => line
                .split_whitespace()
                .skip(field.saturating_sub(1))
                .collect::<Vec<_>>()
                .join(" "),
        };
        if has('f') { text.to_uppercase() } else { text }
    };
    let compare = |a: &str, b: &str| -> Ordering {
        let (a, b) = (key(a), key(b));
        if has('n') {
            leading_number(&a).total_cmp(&leading_number(&b))
        } else {
            a.cmp(&b)
        }
    };
    lines.sort_by(|a, b| {
        let order = compare(a, b).then_with(|| if options.has('u') { Ordering::Equal } else { a.cmp(b) });
        if has('r') { order.reverse() } else { order }
    });
    if options.has('u') {
        lines.dedup_by(|a, b| compare(a, b).is_eq());
    }
    Ok(lines_output(&lines))
}

/// Reads the number at the start of a text, or 0.
fn leading_number(text: &str) -> f64 {
    let text = text.trim_start();
    let is_part = |(at, next): (usize, char)| next.is_ascii_digit() || next == '.' || next == '-' && at == 0;
    let end = text
        .char_indices()
        .find(|found| !is_part(*found))
        .map_or(text.len(), |(at, _)| at);
    text[..end].parse().unwrap_or(0.0)
}

fn uniq(shell: &Shell, arguments: &[String], input: &str) -> Result {
    let options = Options::parse(arguments, "cdui", "")?;
    let mut groups: Vec<(String, usize)> = Vec::new();
    for line in all_lines(shell, &options.operands, input)? {
        let is_same = |last: &String| *last == line || options.has('i') && last.to_lowercase() == line.to_lowercase();
        match groups.last_mut() {
            Some((last, count)) if is_same(last) => *count += 1,
            _ => groups.push((line, 1)),
        }
    }
    groups.retain(|(_, count)| !(options.has('d') && *count == 1 || options.has('u') && *count > 1));
    let lines = groups.into_iter().map(|(line, count)| {
        if options.has('c') {
            format!("{count:>7} {line}")
        } else {
            line
        }
    });
    Ok(lines_output(&lines.collect::<Vec<_>>()))
}

fn cut(shell: &Shell, arguments: &[String], input: &str) -> Result {
    let options = Options::parse(arguments, "s", "dfcb")?;
    let delimiter = options.value('d').unwrap_or("\t").to_owned();
    let (list, is_fields) = match (options.value('f'), options.value('c').or(options.value('b'))) {
        (Some(list), None) => (list, true),
        (None, Some(list)) => (list, false),
        _ => return Err("it needs one of `-f` and `-c`".to_owned()),
    };
    let ranges: Vec<(usize, usize)> = list
        .split(',')
        .map(parse_range)
        .collect::<std::result::Result<_, _>>()?;
    let is_picked = |number: usize| ranges.iter().any(|(first, last)| (*first..=*last).contains(&number));
    let mut lines = Vec::new();
    for line in all_lines(shell, &options.operands, input)? {
        if !is_fields {
            lines.push(
                line.chars()
                    .zip(1..)
                    .filter(|(_, number)| is_picked(*number))
                    .map(|(next, _)| next)
                    .collect(),
            );
        } else if line.contains(&delimiter) {
            let fields = line.split(&delimiter).zip(1..).filter(|(_, number)| is_picked(*number));
            lines.push(fields.map(|(field, _)| field).collect::<Vec<_>>().join(&delimiter));
        } else if !options.has('s') {
            lines.push(line);
        }
    }
    Ok(lines_output(&lines))
}

/// Parses `3`, `2-4`, `2-` or `-4`.
fn parse_range(text: &str) -> std::result::Result<(usize, usize), String> {
    let Some((first, last)) = text.split_once('-') else {
        return parse_count(text).map(|number| (number, number));
    };
    let first = if first.is_empty() { 1 } else { parse_count(first)? };
    let last = if last.is_empty() {
        usize::MAX
    } else {
        parse_count(last)?
    };
    Ok((first, last))
}

fn tr(arguments: &[String], input: &str) -> Result {
    let options = Options::parse(arguments, "dsc", "")?;
    let set = |at: usize| {
        options
            .operands
            .get(at)
            .map(|text| expand_set(text))
            .unwrap_or_default()
    };
    let (from, to) = (set(0), set(1));
    if from.is_empty() || to.is_empty() && !options.has('d') && !options.has('s') {
        return Err("a set of characters is missing".to_owned());
    }
    let is_member = |character: &char| from.contains(character) != options.has('c');
    let mut output = String::new();
    let mut last = None;
    for character in input.chars() {
        let is_member = is_member(&character);
        if is_member && options.has('d') {
            continue;
        }
        let position = from
            .iter()
            .position(|member| *member == character)
            .filter(|_| !options.has('c'));
        let replaced = match to.get(position.unwrap_or(usize::MAX)).or(to.last()) {
            Some(other) if is_member => *other,
            _ => character,
        };
        if options.has('s') && is_member && last == Some(replaced) {
            continue;
        }
        output.push(replaced);
        last = is_member.then_some(replaced);
    }
    Ok(Outcome::output(output))
}

/// Expands a set such as `a-z`, `[:upper:]` or `\n`.
fn expand_set(text: &str) -> Vec<char> {
    let text = super::value::unescape(text);
    let text = text
        .replace("[:lower:]", "a-z")
        .replace("[:upper:]", "A-Z")
        .replace("[:digit:]", "0-9")
        .replace("[:alpha:]", "A-Za-z")
        .replace("[:alnum:]", "0-9A-Za-z")
        .replace("[:space:]", " \t\n\r")
        .replace("[:punct:]", "!-/:-@[-`{-~");
    let characters: Vec<char> = text.chars().collect();
    let mut set = Vec::new();
    let mut at = 0;
    while at < characters.len() {
        match (characters[at], characters.get(at + 1), characters.get(at + 2)) {
            (first, Some('-'), Some(last)) if first <= *last => {
                set.extend(first..=*last);
                at += 3;
            }
            (character, ..) => {
                set.push(character);
                at += 1;
            }
        }
    }
    set
}
