//! `test` and `[`.

use crate::execute::{Outcome, Shell};

/// Maximum depth of parentheses and `!`.
const DEPTH_MAX: usize = 32;

type Truth = Result<bool, String>;

/// Evaluates a condition. The status is 0 if it holds, 1 if it does not, and 2 if it is invalid.
pub(super) fn run(shell: &Shell, name: &str, arguments: &[String]) -> Outcome {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let words = match (name, &words[..]) {
        ("[", [words @ .., "]"]) => words,
        ("[", _) => return Outcome::failure(2, "[: a `]` is missing"),
        (_, words) => words,
    };
    match holds(shell, words) {
        Ok(is_true) => Outcome::status(u8::from(!is_true)),
        Err(message) => Outcome::failure(2, &format!("{name}: {message}")),
    }
}

fn holds(shell: &Shell, words: &[&str]) -> Truth {
    // Up to three words have one meaning each, whatever their text is.
    match *words {
        [] => return Ok(false),
        [text] => return Ok(!text.is_empty()),
        ["!", text] => return Ok(text.is_empty()),
        [a, operator, b] if is_binary(operator) => return compare(a, operator, b),
        _ => {}
    }
    let mut condition = Condition { shell, words, depth: 0 };
    let is_true = condition.any()?;
    match condition.words.first() {
        None => Ok(is_true),
        Some(word) => Err(format!("unexpected `{word}`")),
    }
}

struct Condition<'a> {
    shell: &'a Shell,
    words: &'a [&'a str],
    depth: usize,
}

impl Condition<'_> {
    fn take(&mut self, word: &str) -> bool {
        let is_next = self.words.first() == Some(&word);
        if is_next {
            self.words = &self.words[1..];
        }
        is_next
    }

    /// Evaluates conditions that are joined by `-o`.
    fn any(&mut self) -> Truth {
        let mut is_true = self.all()?;
        while self.take("-o") {
            is_true |= self.all()?;
        }
        Ok(is_true)
    }

    /// Evaluates conditions that are joined by `-a`.
    fn all(&mut self) -> Truth {
        let mut is_true = self.one()?;
        while self.take("-a") {
            is_true &= self.one()?;
        }
        Ok(is_true)
    }

    /// Evaluates one condition, up to a limit of depth.
    fn one(&mut self) -> Truth {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(format!("conditions are nested deeper than {DEPTH_MAX}"));
        }
        let is_true = self.primary();
        self.depth -= 1;
        is_true
    }

    fn primary(&mut self) -> Truth {
        if let [a, operator, b, ref rest @ ..] = *self.words
            && is_binary(operator)
        {
            self.words = rest;
            return compare(a, operator, b);
        }
        if self.take("!") {
            return Ok(!self.one()?);
        }
        if self.take("(") {
            let is_true = self.any()?;
            return if self.take(")") {
                Ok(is_true)
            } else {
                Err("a `)` is missing".to_owned())
            };
        }
        match *self.words {
            [operator, operand, ref rest @ ..] if operator.len() == 2 && operator.starts_with('-') => {
                self.words = rest;
                self.unary(operator, operand)
            }
            [text, ref rest @ ..] => {
                self.words = rest;
                Ok(!text.is_empty())
            }
            [] => Err("a condition is missing".to_owned()),
        }
    }

    fn unary(&self, operator: &str, operand: &str) -> Truth {
        let path = self.shell.resolve_path(operand);
        Ok(match operator {
            "-z" => operand.is_empty(),
            "-n" => !operand.is_empty(),
            "-e" => path.exists() || self.shell.is_root(operand),
            "-f" => path.is_file(),
            "-d" => path.is_dir() || self.shell.is_root(operand),
            "-s" => path.metadata().is_ok_and(|metadata| metadata.len() > 0),
            "-L" | "-h" => path.is_symlink(),
            "-r" => std::fs::File::open(path).is_ok() || self.shell.is_root(operand),
            "-w" => path.metadata().is_ok_and(|metadata| !metadata.permissions().readonly()),
            _ => return Err(format!("`{operator}` is not supported")),
        })
    }
}

fn is_binary(operator: &str) -> bool {
    matches!(
        operator,
        "=" | "==" | "!=" | "-eq" | "-ne" | "-lt" | "-le" | "-gt" | "-ge" | "<" | ">"
    )
}

fn compare(a: &str, operator: &str, b: &str) -> Truth {
    match operator {
        "=" | "==" => return Ok(a == b),
        "!=" => return Ok(a != b),
        "<" => return Ok(a < b),
        ">" => return Ok(a > b),
        _ => {}
    }
    let (a, b) = (super::value::parse_integer(a)?, super::value::parse_integer(b)?);
    Ok(match operator {
        "-eq" => a == b,
        "-ne" => a != b,
        "-lt" => a < b,
        "-le" => a <= b,
        "-gt" => a > b,
        _ => a >= b,
    })
}
