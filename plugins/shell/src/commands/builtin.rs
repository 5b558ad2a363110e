//! Commands that change the shell: `read`, `set`, `shift`, `break`, `return` and others.

use super::{Result, parse_count};
use crate::execute::{Outcome, Shell};
use crate::state::Flow;
use crate::syntax::is_name;

/// The commands of this module, for `command -v`.
pub(super) const NAMES: [&str; 14] = [
    "break", "command", "continue", "eval", "exit", "export", "local", "read", "return", "set", "shift", "source",
    "type", "unset",
];

pub(super) fn run(shell: &mut Shell, name: &str, arguments: &[String]) -> Result {
    match name {
        "break" | "continue" => leave_loops(shell, name, arguments),
        "return" | "exit" => leave(shell, name, arguments),
        "shift" => shift(shell, arguments),
        "set" => set(shell, arguments),
        "unset" => Ok(unset(shell, arguments)),
        "local" => local(shell, arguments),
        _ => read(shell, arguments),
    }
}

fn leave_loops(shell: &mut Shell, name: &str, arguments: &[String]) -> Result {
    let levels = arguments.first().map_or(Ok(1), |count| parse_count(count))?;
    if shell.loops == 0 {
        return Err("there is no loop around it".to_owned());
    }
    let levels = levels.clamp(1, shell.loops);
    shell.flow = Some(if name == "break" {
        Flow::Break(levels)
    } else {
        Flow::Continue(levels)
    });
    Ok(Outcome::default())
}

fn leave(shell: &mut Shell, name: &str, arguments: &[String]) -> Result {
    let is_function = !shell.state.locals.is_empty();
    shell.flow = Some(if name == "return" && is_function {
        Flow::Return
    } else {
        Flow::Exit
    });
    let status = match arguments.first() {
        None => shell.status,
        Some(text) => {
            let status: i64 = text.parse().map_err(|_| format!("`{text}` is not a number"))?;
            // The status of a process has eight bits.
            u8::try_from(status.rem_euclid(256)).unwrap_or_default()
        }
    };
    Ok(Outcome::status(status))
}

fn shift(shell: &mut Shell, arguments: &[String]) -> Result {
    let count = arguments.first().map_or(Ok(1), |count| parse_count(count))?;
    if count > shell.state.parameters.len() {
        return Err(format!("there are only {} parameters", shell.state.parameters.len()));
    }
    shell.state.parameters.drain(..count);
    Ok(Outcome::default())
}

fn set(shell: &mut Shell, arguments: &[String]) -> Result {
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        if argument == "--" {
            shell.state.parameters = rest.cloned().collect();
            return Ok(Outcome::default());
        }
        let (is_on, letters) = match (argument.strip_prefix('-'), argument.strip_prefix('+')) {
            (Some(letters), _) => (true, letters),
            (None, Some(letters)) => (false, letters),
            (None, None) => {
                shell.state.parameters = std::iter::once(argument).chain(rest).cloned().collect();
                return Ok(Outcome::default());
            }
        };
        for letter in letters.chars() {
            let option = if letter == 'o' {
                rest.next().map_or("", String::as_str)
            } else {
                match letter {
                    'e' => "errexit",
                    'u' => "nounset",
                    'x' => "xtrace",
                    _ => return Err(super::unknown_option(argument)),
                }
            };
            let options = &mut shell.state.options;
            match option {
                "errexit" => options.exits_on_failure = is_on,
                "nounset" => options.fails_on_unset = is_on,
                "pipefail" => options.fails_on_pipe = is_on,
                // Traces are for people.
                "xtrace" => {}
                _ => return Err(format!("the option `-o {option}` is not supported")),
            }
        }
    }
    Ok(Outcome::default())
}

fn unset(shell: &mut Shell, arguments: &[String]) -> Outcome {
    let is_function = arguments.first().is_some_and(|first| first == "-f");
    for name in arguments.iter().filter(|name| !name.starts_with('-')) {
        if is_function {
            shell.state.functions.remove(name);
        } else {
            shell.state.variables.remove(name);
        }
    }
    Outcome::default()
}

fn local(shell: &mut Shell, arguments: &[String]) -> Result {
    if shell.state.locals.is_empty() {
        return Err("it is only for functions".to_owned());
    }
    for argument in arguments {
        let (name, value) = match argument.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (argument.as_str(), None),
        };
        if !is_name(name) {
            return Err(format!("`{name}` is not the name of a variable"));
        }
        let before = shell.state.variables.remove(name);
        if let Some(locals) = shell.state.locals.last_mut() {
            locals.entry(name.to_owned()).or_insert(before);
        }
        if let Some(value) = value {
            shell.set_variable(name, value);
        }
    }
    Ok(Outcome::default())
}

/// Reads a line of the standard input into variables. The last one takes the rest of the line.
fn read(shell: &mut Shell, arguments: &[String]) -> Result {
    let mut is_raw = false;
    let mut names = arguments;
    while let Some((option, rest)) = names.split_first().filter(|(first, _)| first.starts_with('-')) {
        if option != "-r" {
            return Err(super::unknown_option(option));
        }
        is_raw = true;
        names = rest;
    }
    if let Some(name) = names.iter().find(|name| !is_name(name)) {
        return Err(format!("`{name}` is not the name of a variable"));
    }
    let Some((mut line, mut is_complete)) = shell.input.take_line() else {
        for name in names {
            shell.set_variable(name, "");
        }
        return Ok(Outcome::status(1));
    };
    while !is_raw && is_complete && line.ends_with('\\') {
        line.pop();
        let Some((next, ends)) = shell.input.take_line() else {
            break;
        };
        line.push_str(&next);
        is_complete = ends;
    }
    if !is_raw {
        let mut is_escape = false;
        line.retain(|c| {
            is_escape = c == '\\' && !is_escape;
            !is_escape
        });
    }
    let reply = ["REPLY".to_owned()];
    let names = if names.is_empty() { &reply[..] } else { names };
    assign(shell, names, &line);
    Ok(Outcome::status(u8::from(!is_complete)))
}

fn assign(shell: &mut Shell, names: &[String], line: &str) {
    let separators = shell.separators();
    let is_blank = |c: char| separators.contains(c) && c.is_whitespace();
    let mut rest = line.trim_matches(is_blank);
    let Some((last, first)) = names.split_last() else {
        return;
    };
    for name in first {
        let end = rest.find(|c| separators.contains(c)).unwrap_or(rest.len());
        shell.set_variable(name, &rest[..end]);
        rest = rest[end..].trim_start_matches(is_blank);
        let mark = rest.chars().next().filter(|c| separators.contains(*c));
        rest = rest[mark.map_or(0, char::len_utf8)..].trim_start_matches(is_blank);
    }
    shell.set_variable(last, rest);
}
