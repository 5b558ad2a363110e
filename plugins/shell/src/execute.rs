//! Execution of scripts.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::{Component, Path, PathBuf};

use crate::commands;
use crate::parser::parse;
use crate::syntax::{Command, Condition, Pipeline, Redirect, Stream};

/// Maximum depth of command substitutions.
const DEPTH_MAX: usize = 16;

/// Maximum size of the output of a script in bytes.
const OUTPUT_BYTES_MAX: usize = 4 << 20;

/// The output of a script or of a command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
    /// The exit status.
    pub status: u8,
}

impl Outcome {
    /// A success with an output.
    pub(crate) fn output(stdout: String) -> Self {
        Self {
            stdout,
            ..Self::default()
        }
    }

    /// A failure with a message.
    pub(crate) fn failure(status: u8, message: &str) -> Self {
        Self {
            stderr: format!("{message}\n"),
            status,
            ..Self::default()
        }
    }
}

/// A shell with its variables and its working directory.
#[derive(Debug)]
pub struct Shell {
    pub(crate) directory: PathBuf,
    roots: Vec<String>,
    variables: BTreeMap<String, String>,
    status: u8,
    depth: usize,
}

impl Shell {
    /// Creates a shell. `roots` are the granted directories, which `/` lists.
    #[must_use]
    pub fn new(directory: PathBuf, roots: Vec<String>) -> Self {
        Self {
            directory,
            roots,
            variables: BTreeMap::new(),
            status: 0,
            depth: 0,
        }
    }

    /// Runs a script.
    ///
    /// # Errors
    /// For a syntax error, before anything runs, and for an output that is too large.
    pub fn run(&mut self, script: &str, input: &str) -> Result<Outcome, String> {
        let lists = parse(script)?;
        let mut total = Outcome::default();
        let mut input = input.to_owned();
        for (condition, pipeline) in lists.iter().flatten() {
            let runs = match condition {
                Condition::Always => true,
                Condition::Success => self.status == 0,
                Condition::Failure => self.status != 0,
            };
            if !runs {
                continue;
            }
            let outcome = self.pipeline(pipeline, std::mem::take(&mut input))?;
            self.status = if pipeline.is_negated {
                u8::from(outcome.status == 0)
            } else {
                outcome.status
            };
            total.stdout.push_str(&outcome.stdout);
            total.stderr.push_str(&outcome.stderr);
            if total.stdout.len() + total.stderr.len() > OUTPUT_BYTES_MAX {
                return Err("the output is larger than 4 MiB; use `head`, `tail` or `grep`".to_owned());
            }
        }
        total.status = self.status;
        Ok(total)
    }

    fn pipeline(&mut self, pipeline: &Pipeline, mut input: String) -> Result<Outcome, String> {
        let mut outcome = Outcome::default();
        let mut stderr = String::new();
        for command in &pipeline.commands {
            outcome = self.command(command, input)?;
            stderr.push_str(&outcome.stderr);
            input = std::mem::take(&mut outcome.stdout);
        }
        Ok(Outcome {
            stdout: input,
            stderr,
            status: outcome.status,
        })
    }

    fn command(&mut self, command: &Command, mut input: String) -> Result<Outcome, String> {
        let arguments = self.arguments(&command.words)?;
        for (name, value) in &command.assignments {
            let value = self.text(value)?;
            self.variables.insert(name.clone(), value);
        }
        for redirect in &command.redirects {
            match redirect {
                Redirect::Text(text) => input = self.text(text)?,
                Redirect::Input(file) => {
                    let file = self.text(file)?;
                    match commands::read(self, &file) {
                        Ok(text) => input = text,
                        Err(error) => return Ok(Outcome::failure(1, &error)),
                    }
                }
                _ => {}
            }
        }
        let mut outcome = match arguments.split_first() {
            Some((name, arguments)) => commands::run(self, name, arguments, &input),
            None => Outcome::default(),
        };
        for redirect in &command.redirects {
            if let Err(error) = self.redirect(redirect, &mut outcome)? {
                outcome.stderr.push_str(&format!("{error}\n"));
                outcome.status = 1;
            }
        }
        Ok(outcome)
    }

    /// Moves output to where a redirect sends it. The inner error is one of the file.
    fn redirect(&mut self, redirect: &Redirect, outcome: &mut Outcome) -> Result<Result<(), String>, String> {
        let (stream, file, append) = match redirect {
            Redirect::ErrorToOutput => {
                outcome.stdout.push_str(&std::mem::take(&mut outcome.stderr));
                return Ok(Ok(()));
            }
            Redirect::OutputToError => {
                outcome.stderr.push_str(&std::mem::take(&mut outcome.stdout));
                return Ok(Ok(()));
            }
            Redirect::Output { stream, file, append } => (*stream, self.text(file)?, *append),
            Redirect::Input(_) | Redirect::Text(_) => return Ok(Ok(())),
        };
        let text = match stream {
            Stream::Output => std::mem::take(&mut outcome.stdout),
            Stream::Error => std::mem::take(&mut outcome.stderr),
            Stream::Both => std::mem::take(&mut outcome.stdout) + &std::mem::take(&mut outcome.stderr),
        };
        if file == "/dev/null" {
            return Ok(Ok(()));
        }
        let path = self.path(&file);
        let written = if append {
            let file = fs::OpenOptions::new().append(true).create(true).open(path);
            file.and_then(|mut file| file.write_all(text.as_bytes()))
        } else {
            fs::write(path, text)
        };
        Ok(written.map_err(|error| commands::describe(&file, &error)))
    }

    /// Runs a command substitution and returns its output without line breaks at the end.
    pub(crate) fn substitute(&mut self, script: &str) -> Result<String, String> {
        if self.depth >= DEPTH_MAX {
            return Err(format!("command substitutions are nested deeper than {DEPTH_MAX}"));
        }
        self.depth += 1;
        let outcome = self.run(script, "");
        self.depth -= 1;
        Ok(outcome?.stdout.trim_end_matches('\n').to_owned())
    }

    /// Returns the value of a variable; one that is not set is empty.
    pub(crate) fn variable(&self, name: &str) -> String {
        match name {
            "?" => self.status.to_string(),
            "PWD" => self.directory.display().to_string(),
            _ => self.variables.get(name).cloned().unwrap_or_default(),
        }
    }

    pub(crate) fn set(&mut self, name: &str, value: &str) {
        self.variables.insert(name.to_owned(), value.to_owned());
    }

    /// Resolves a path against the working directory. `..` is resolved in the text, because `/` is not a directory of the sandbox.
    pub(crate) fn path(&self, path: &str) -> PathBuf {
        let mut resolved = PathBuf::new();
        for component in self.directory.join(path).components() {
            match component {
                Component::ParentDir => {
                    resolved.pop();
                }
                Component::CurDir => {}
                component => resolved.push(component),
            }
        }
        resolved
    }

    /// Returns whether a path is `/` or one of the granted directories.
    pub(crate) fn is_root(&self, path: &str) -> bool {
        let path = self.path(path);
        path == Path::new("/") || self.roots.iter().any(|root| path == Path::new(root))
    }

    /// The granted directories.
    pub(crate) fn roots(&self) -> &[String] {
        &self.roots
    }
}
