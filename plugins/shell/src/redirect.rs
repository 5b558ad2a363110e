//! Redirects of standard input, output and error.

use std::fs;
use std::io::Write as _;

use crate::commands;
use crate::execute::{Outcome, Run, Shell};
use crate::state::Input;
use crate::syntax::{Redirect, Stream};

/// The target of an output stream.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Target {
    Output,
    Error,
    /// A file, by its position.
    File(usize),
}

/// A file of a redirect, with the text to write.
struct OutputFile {
    name: String,
    append: bool,
    text: String,
}

impl Shell {
    /// Runs a command with redirects.
    pub(crate) fn with_redirects(
        &mut self,
        redirects: &[Redirect],
        run: impl FnOnce(&mut Self) -> Run<Outcome>,
    ) -> Run<Outcome> {
        if redirects.is_empty() {
            return self.with_errors(run);
        }
        let (mut output, mut error) = (Target::Output, Target::Error);
        let (mut files, mut input) = (Vec::new(), None);
        for redirect in redirects {
            match redirect {
                Redirect::Document(document) => {
                    let text = document
                        .get()
                        .map_or(Ok(String::new()), |word| self.expand_to_text(word))?;
                    input = Some(Input::new(&text));
                }
                Redirect::Text(word) => input = Some(Input::new(&format!("{}\n", self.expand_to_text(word)?))),
                Redirect::Input(file) => {
                    let file = self.expand_to_text(file)?;
                    match commands::read_file(self, &file) {
                        Ok(text) => input = Some(Input::new(&text)),
                        Err(message) => {
                            self.status = 1;
                            return Ok(Outcome::failure(1, &message));
                        }
                    }
                }
                Redirect::ErrorToOutput => error = output,
                Redirect::OutputToError => output = error,
                Redirect::Output { stream, file, append } => {
                    let target = Target::File(files.len());
                    files.push(OutputFile {
                        name: self.expand_to_text(file)?,
                        append: *append,
                        text: String::new(),
                    });
                    match stream {
                        Stream::Output => output = target,
                        Stream::Error => error = target,
                        Stream::Both => (output, error) = (target, target),
                    }
                }
            }
        }
        let outcome = match input {
            Some(input) => self.with_input(input, |shell| shell.with_errors(run))?,
            None => self.with_errors(run)?,
        };
        Ok(self.distribute(outcome, output, error, files))
    }

    /// Adds the errors of command substitutions to the outcome of the command.
    fn with_errors(&mut self, run: impl FnOnce(&mut Self) -> Run<Outcome>) -> Run<Outcome> {
        let errors = std::mem::take(&mut self.substitution_errors);
        let mut outcome = run(self)?;
        if !errors.is_empty() {
            outcome.stderr.insert_str(0, &errors);
        }
        outcome.stderr.push_str(&std::mem::take(&mut self.substitution_errors));
        Ok(outcome)
    }

    /// Writes the output that redirects send to files. Returns the remaining outcome.
    fn distribute(&mut self, outcome: Outcome, output: Target, error: Target, mut files: Vec<OutputFile>) -> Outcome {
        let mut remaining = Outcome::status(outcome.status);
        for (text, target) in [(outcome.stdout, output), (outcome.stderr, error)] {
            match target {
                Target::Output => remaining.stdout.push_str(&text),
                Target::Error => remaining.stderr.push_str(&text),
                Target::File(position) => {
                    if let Some(file) = files.get_mut(position) {
                        file.text.push_str(&text);
                    }
                }
            }
        }
        for file in files.iter().filter(|file| file.name != "/dev/null") {
            let path = self.resolve_path(&file.name);
            let written = if file.append {
                let opened = fs::OpenOptions::new().append(true).create(true).open(path);
                opened.and_then(|mut opened| opened.write_all(file.text.as_bytes()))
            } else {
                fs::write(path, &file.text)
            };
            if let Err(error) = written {
                remaining
                    .stderr
                    .push_str(&format!("{}\n", commands::describe(&file.name, &error)));
                remaining.status = 1;
            }
        }
        remaining
    }
}
