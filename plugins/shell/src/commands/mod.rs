//! The commands.

mod builtin;
mod filter;
mod find;
mod manage;
mod sed;
mod test;
mod text;
mod value;

use std::fs;
use std::io;

pub(crate) use self::value::unescape;
use crate::execute::{Outcome, Shell};

/// Maximum size of a file in bytes.
const FILE_BYTES_MAX: u64 = 16 << 20;

/// The error number of WASI for a path outside of all granted directories.
const NOT_CAPABLE: i32 = 76;

/// The result of a command: its outcome, or the message of a failure with status 1.
type Result = std::result::Result<Outcome, String>;

/// Runs a command.
pub(crate) fn run(shell: &mut Shell, name: &str, arguments: &[String], input: &str) -> Outcome {
    if matches!(name, "tee" | "tr") {
        shell.reads_input.set(true);
    }
    let result = match name {
        "true" | ":" => Ok(Outcome::default()),
        "false" => Ok(Outcome {
            status: 1,
            ..Outcome::default()
        }),
        "echo" | "printf" | "basename" | "dirname" | "seq" | "pwd" | "cd" | "export" => {
            value::run(shell, name, arguments)
        }
        "test" | "[" => Ok(test::run(shell, name, arguments)),
        "break" | "continue" | "return" | "exit" | "shift" | "set" | "unset" | "local" | "read" => {
            builtin::run(shell, name, arguments)
        }
        "command" | "type" => command(shell, name, arguments, input),
        "cat" | "head" | "tail" | "wc" | "tee" => text::run(shell, name, arguments, input),
        "grep" | "sort" | "uniq" | "cut" | "tr" => filter::run(shell, name, arguments, input),
        "sed" => sed::run(shell, arguments, input),
        "find" => find::run(shell, arguments),
        "ls" | "mkdir" | "rm" | "cp" | "mv" | "touch" => manage::run(shell, name, arguments),
        "xargs" => xargs(shell, arguments, input),
        _ => {
            return Outcome::failure(
                127,
                &format!("{name}: there is no such command; see the description of the tool"),
            );
        }
    };
    result.unwrap_or_else(|message| Outcome::failure(1, &format!("{name}: {message}")))
}

/// The names of the commands, except those of `builtin`, for `command -v`.
const NAMES: [&str; 33] = [
    "[", "basename", "cat", "cd", "cp", "cut", "dirname", "echo", "false", "find", "grep", "head", "ls", "mkdir", "mv",
    "printf", "pwd", "rm", "sed", "seq", "sort", "tail", "tee", "test", "touch", "tr", "true", "uniq", "wc", "xargs",
    ":", ".", "export",
];

/// Runs a command for `command NAME …`. For `command -v NAME` and `type NAME`, prints the name if the command exists.
fn command(shell: &mut Shell, name: &str, arguments: &[String], input: &str) -> Result {
    let names = match (name, arguments) {
        ("command", [flag, names @ ..]) if flag == "-v" => names,
        ("command", [name, arguments @ ..]) => return Ok(run(shell, name, arguments, input)),
        (_, names) => names,
    };
    let mut outcome = Outcome::status(u8::from(names.is_empty()));
    for name in names {
        let exists = NAMES.contains(&name.as_str()) || builtin::NAMES.contains(&name.as_str());
        if exists || shell.state.functions.contains_key(name) {
            outcome.stdout.push_str(&format!("{name}\n"));
        } else {
            outcome.status = 1;
        }
    }
    Ok(outcome)
}

/// Runs a command with the words of the input as further arguments.
fn xargs(shell: &mut Shell, arguments: &[String], input: &str) -> Result {
    let (count, command) = match arguments {
        [flag, count, command @ ..] if flag == "-n" => (parse_count(count)?.max(1), command),
        _ => (usize::MAX, arguments),
    };
    if let Some(option) = command.first().filter(|first| first.starts_with('-')) {
        return Err(unknown_option(option));
    }
    shell.reads_input.set(true);
    let echo = ["echo".to_owned()];
    let command = if command.is_empty() { &echo } else { command };
    let words: Vec<String> = input.split_whitespace().map(str::to_owned).collect();
    let mut total = Outcome::default();
    for chunk in words.chunks(count.min(words.len().max(1))) {
        let arguments: Vec<String> = command[1..].iter().chain(chunk).cloned().collect();
        let outcome = run(shell, &command[0], &arguments, "");
        total.stdout.push_str(&outcome.stdout);
        total.stderr.push_str(&outcome.stderr);
        total.status = total.status.max(outcome.status);
    }
    Ok(total)
}

/// Reads a text file. Bytes that are not UTF-8 are replaced.
pub(crate) fn read_file(shell: &Shell, name: &str) -> std::result::Result<String, String> {
    if name == "/dev/null" {
        return Ok(String::new());
    }
    let path = shell.resolve_path(name);
    let failed = |error: io::Error| describe(name, &error);
    let metadata = fs::metadata(&path).map_err(failed)?;
    if metadata.is_dir() {
        return Err(format!("{name}: is a directory"));
    }
    if metadata.len() > FILE_BYTES_MAX {
        return Err(format!("{name}: larger than 16 MiB"));
    }
    let bytes = fs::read(&path).map_err(failed)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Reads the files of a command, or the input without files. `-` is the input.
fn read_inputs(shell: &Shell, files: &[String], input: &str) -> std::result::Result<Vec<(String, String)>, String> {
    if files.is_empty() || files.iter().any(|file| file == "-") {
        shell.reads_input.set(true);
    }
    if files.is_empty() {
        return Ok(vec![("-".to_owned(), input.to_owned())]);
    }
    let read = |file: &String| {
        let text = if file == "-" {
            input.to_owned()
        } else {
            read_file(shell, file)?
        };
        Ok((file.clone(), text))
    };
    files.iter().map(read).collect()
}

/// Describes the error of a file operation.
pub(crate) fn describe(name: &str, error: &io::Error) -> String {
    if error.raw_os_error() == Some(NOT_CAPABLE) || error.to_string().contains("pre-opened") {
        return format!("{name}: not in a granted directory; `ls /` lists those");
    }
    let reason = match error.kind() {
        io::ErrorKind::NotFound => "no such file or directory".to_owned(),
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => "the grant does not allow it".to_owned(),
        io::ErrorKind::AlreadyExists => "exists".to_owned(),
        io::ErrorKind::DirectoryNotEmpty => "the directory is not empty".to_owned(),
        io::ErrorKind::IsADirectory => "is a directory".to_owned(),
        io::ErrorKind::NotADirectory => "is not a directory".to_owned(),
        _ => error.to_string(),
    };
    format!("{name}: {reason}")
}

/// The parsed options and operands of a command.
struct Options {
    flags: String,
    values: Vec<(char, String)>,
    operands: Vec<String>,
}

impl Options {
    /// Parses options. `with_value` are the letters of options that have a value.
    fn parse(arguments: &[String], flags: &str, with_value: &str) -> std::result::Result<Self, String> {
        let mut options = Self {
            flags: String::new(),
            values: Vec::new(),
            operands: Vec::new(),
        };
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            let letters = match argument.strip_prefix('-') {
                Some("-") => {
                    options.operands.extend(rest.by_ref().cloned());
                    break;
                }
                Some(letters) if !letters.is_empty() => letters,
                _ => {
                    options.operands.push(argument.clone());
                    continue;
                }
            };
            for (at, letter) in letters.char_indices() {
                if flags.contains(letter) {
                    options.flags.push(letter);
                } else if with_value.contains(letter) {
                    let inline = &letters[at + letter.len_utf8()..];
                    let value = if inline.is_empty() {
                        rest.next().cloned()
                    } else {
                        Some(inline.to_owned())
                    };
                    let value = value.ok_or_else(|| format!("the option `-{letter}` needs a value"))?;
                    options.values.push((letter, value));
                    break;
                } else {
                    return Err(unknown_option(argument));
                }
            }
        }
        Ok(options)
    }

    fn has(&self, flag: char) -> bool {
        self.flags.contains(flag)
    }

    fn value(&self, letter: char) -> Option<&str> {
        self.values
            .iter()
            .rev()
            .find(|(name, _)| *name == letter)
            .map(|(_, value)| value.as_str())
    }
}

fn unknown_option(option: &str) -> String {
    format!("the option `{option}` is not supported")
}

fn parse_count(text: &str) -> std::result::Result<usize, String> {
    text.parse().map_err(|_| format!("`{text}` is not a number"))
}
