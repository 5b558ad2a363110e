//! Execution of scripts: lists, pipelines, simple commands and functions.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::commands;
use crate::parser::parse;
use crate::state::{Flow, Input, Options, State};
use crate::syntax::{Command, Condition, List, Pipeline, Script, Simple};

/// Maximum depth of functions, compound commands and substitutions that run inside each other.
const DEPTH_MAX: usize = 160;

/// Maximum size of the output of a script in bytes.
pub(crate) const OUTPUT_BYTES_MAX: usize = 4 << 20;

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
    /// Creates a success with an output.
    pub(crate) fn output(stdout: String) -> Self {
        Self {
            stdout,
            ..Self::default()
        }
    }

    /// Creates a failure with a message.
    pub(crate) fn failure(status: u8, message: &str) -> Self {
        Self {
            stderr: format!("{message}\n"),
            status,
            ..Self::default()
        }
    }

    /// Creates an outcome without output.
    pub(crate) fn status(status: u8) -> Self {
        Self {
            status,
            ..Self::default()
        }
    }

    /// Appends the output of a later command, and takes its status.
    pub(crate) fn append(&mut self, later: &Self) -> Run<()> {
        self.stdout.push_str(&later.stdout);
        self.stderr.push_str(&later.stderr);
        self.status = later.status;
        if self.stdout.len() + self.stderr.len() > OUTPUT_BYTES_MAX {
            let message = "the output is larger than 4 MiB; use `head`, `tail` or `grep`";
            return Err(Failure::Limit(message.to_owned()));
        }
        Ok(())
    }
}

/// The reason why a command did not run to its end.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The shell exits with a message, as after `${name:?}`.
    Script(String),
    /// A limit is exceeded. The call fails.
    Limit(String),
}

/// The result of execution.
pub(crate) type Run<T> = Result<T, Failure>;

/// A shell with its variables and its working directory.
#[derive(Debug)]
pub struct Shell {
    pub(crate) state: State,
    roots: Vec<String>,
    /// The exit status of the last command.
    pub(crate) status: u8,
    pub(crate) flow: Option<Flow>,
    pub(crate) input: Input,
    /// Whether the command that runs read its standard input.
    pub(crate) reads_input: Cell<bool>,
    /// The number of loops around the command that runs.
    pub(crate) loops: usize,
    /// The number of conditions around the command that runs. In a condition, a failure does not end the script.
    pub(crate) conditions: usize,
    /// The status of the last command substitution.
    substitution_status: u8,
    /// The standard error of command substitutions, until it is added to the outcome of a command.
    pub(crate) substitution_errors: String,
    depth: usize,
}

impl Shell {
    /// Creates a shell. `roots` are the granted directories, which `/` lists.
    #[must_use]
    pub fn new(directory: PathBuf, roots: Vec<String>) -> Self {
        Self {
            state: State {
                directory,
                variables: BTreeMap::new(),
                functions: BTreeMap::new(),
                parameters: Vec::new(),
                options: Options::default(),
                locals: Vec::new(),
            },
            roots,
            status: 0,
            flow: None,
            input: Input::new(""),
            reads_input: Cell::new(false),
            loops: 0,
            conditions: 0,
            substitution_status: 0,
            substitution_errors: String::new(),
            depth: 0,
        }
    }

    /// Runs a script.
    ///
    /// # Errors
    /// For a syntax error, before anything runs, and for an output or a recursion that exceeds its limit.
    pub fn run(&mut self, script: &str, input: &str) -> Result<Outcome, String> {
        let script = parse(script)?;
        self.input = Input::new(input);
        let outcome = self.run_script(&script);
        self.flow = None;
        outcome.map_err(|failure| match failure {
            Failure::Script(message) | Failure::Limit(message) => message,
        })
    }

    /// Returns the granted directories.
    pub(crate) fn roots(&self) -> &[String] {
        &self.roots
    }

    pub(crate) fn run_script(&mut self, script: &Script) -> Run<Outcome> {
        let mut total = Outcome::default();
        for list in script {
            self.run_list(list, &mut total)?;
            if self.flow.is_some() {
                break;
            }
        }
        total.status = self.status;
        Ok(total)
    }

    fn run_list(&mut self, list: &List, total: &mut Outcome) -> Run<()> {
        for (position, (condition, pipeline)) in list.iter().enumerate() {
            let runs = match condition {
                Condition::Always => true,
                Condition::Success => self.status == 0,
                Condition::Failure => self.status != 0,
            };
            if !runs {
                continue;
            }
            let is_condition = position + 1 < list.len() || pipeline.is_negated;
            self.conditions += usize::from(is_condition);
            let outcome = self.run_pipeline(pipeline);
            self.conditions -= usize::from(is_condition);
            let outcome = outcome?;
            self.status = outcome.status;
            total.append(&outcome)?;
            if self.flow.is_some() {
                return Ok(());
            }
            if pipeline.is_negated {
                self.status = u8::from(outcome.status == 0);
            }
            let exits = self.state.options.exits_on_failure && self.conditions == 0 && !is_condition;
            if exits && self.status != 0 {
                self.flow = Some(Flow::Exit);
                return Ok(());
            }
        }
        Ok(())
    }

    fn run_pipeline(&mut self, pipeline: &Pipeline) -> Run<Outcome> {
        if let [command] = &pipeline.commands[..] {
            return self.run_command(command);
        }
        let mut total = Outcome::default();
        let mut last_failure = 0;
        for (position, command) in pipeline.commands.iter().enumerate() {
            let outcome = if position == 0 {
                self.subshell(|shell| shell.run_command(command))?
            } else {
                let input = Input::new(&std::mem::take(&mut total.stdout));
                self.with_input(input, |shell| shell.subshell(|shell| shell.run_command(command)))?
            };
            if outcome.status != 0 {
                last_failure = outcome.status;
            }
            total.append(&outcome)?;
        }
        if self.state.options.fails_on_pipe {
            total.status = last_failure;
        }
        Ok(total)
    }

    pub(crate) fn with_input<T>(&mut self, input: Input, run: impl FnOnce(&mut Self) -> T) -> T {
        let before = std::mem::replace(&mut self.input, input);
        let result = run(self);
        self.input = before;
        result
    }

    /// Runs a function on a copy of the state: it cannot change the variables, the directory and the control flow of this
    /// shell.
    pub(crate) fn subshell(&mut self, run: impl FnOnce(&mut Self) -> Run<Outcome>) -> Run<Outcome> {
        let state = self.state.clone();
        let loops = std::mem::take(&mut self.loops);
        let outcome = run(self);
        self.flow = None;
        self.loops = loops;
        self.state = state;
        outcome
    }

    /// Runs a nested command, up to a limit of depth.
    pub(crate) fn nested<T>(&mut self, run: impl FnOnce(&mut Self) -> Run<T>) -> Run<T> {
        if self.depth >= DEPTH_MAX {
            return Err(Failure::Limit(format!(
                "functions, compound commands and substitutions run deeper than {DEPTH_MAX} levels; a function may call itself without end"
            )));
        }
        self.depth += 1;
        let result = run(self);
        self.depth -= 1;
        result
    }

    pub(crate) fn run_command(&mut self, command: &Command) -> Run<Outcome> {
        let result = match command {
            Command::Simple(simple) => self.run_simple(simple),
            Command::Compound(compound, redirects) => {
                self.with_redirects(redirects, |shell| shell.nested(|shell| shell.run_compound(compound)))
            }
            Command::Function(name, body) => {
                self.state.functions.insert(name.clone(), body.clone());
                Ok(Outcome::default())
            }
        };
        match result {
            Err(Failure::Script(message)) => {
                self.status = 1;
                self.flow = Some(Flow::Exit);
                Ok(Outcome::failure(1, &message))
            }
            result => result,
        }
    }

    fn run_simple(&mut self, simple: &Simple) -> Run<Outcome> {
        self.substitution_status = 0;
        let arguments = self.expand_to_arguments(&simple.words)?;
        let mut earlier_values = Vec::new();
        for (name, value) in &simple.assignments {
            let value = self.expand_to_text(value)?;
            earlier_values.push((name.clone(), self.state.variables.insert(name.clone(), value)));
        }
        let Some((name, arguments)) = arguments.split_first() else {
            let status = self.substitution_status;
            return self.with_redirects(&simple.redirects, |_| Ok(Outcome::status(status)));
        };
        let outcome = self.with_redirects(&simple.redirects, |shell| shell.call(name, arguments));
        // Assignments before a command apply only to this command.
        for (name, value) in earlier_values.into_iter().rev() {
            self.restore(name, value);
        }
        outcome
    }

    /// Calls a function or a command.
    fn call(&mut self, name: &str, arguments: &[String]) -> Run<Outcome> {
        if let Some(body) = self.state.functions.get(name).cloned() {
            return self.nested(|shell| shell.run_function(&body, arguments));
        }
        match (name, arguments) {
            ("eval", _) => {
                let script = arguments.join(" ");
                self.nested(|shell| shell.run_source("eval", &script))
            }
            ("." | "source", [file, ..]) => match commands::read_file(self, file) {
                Ok(script) => self.nested(|shell| shell.run_source(file, &script)),
                Err(error) => Ok(Outcome::failure(1, &error)),
            },
            _ => {
                let input = self.input.clone();
                self.reads_input.set(false);
                let rest = input.text.get(input.offset..).unwrap_or_default();
                let outcome = commands::run(self, name, arguments, rest);
                if self.reads_input.get() {
                    self.input.offset = self.input.text.len();
                }
                Ok(outcome)
            }
        }
    }

    fn run_source(&mut self, name: &str, script: &str) -> Run<Outcome> {
        match parse(script) {
            Ok(script) => {
                self.status = 0;
                self.run_script(&script)
            }
            Err(error) => Ok(Outcome::failure(2, &format!("{name}: {error}"))),
        }
    }

    fn run_function(&mut self, body: &Command, arguments: &[String]) -> Run<Outcome> {
        let parameters = std::mem::replace(&mut self.state.parameters, arguments.to_vec());
        let loops = std::mem::take(&mut self.loops);
        self.state.locals.push(BTreeMap::new());
        let outcome = self.run_command(body);
        for (name, value) in self.state.locals.pop().unwrap_or_default() {
            self.restore(name, value);
        }
        self.loops = loops;
        self.state.parameters = parameters;
        if self.flow == Some(Flow::Return) {
            self.flow = None;
        }
        outcome
    }

    /// Runs a command substitution and returns its output without line breaks at the end.
    pub(crate) fn substitute(&mut self, script: &Script) -> Run<String> {
        let outcome = self.nested(|shell| shell.subshell(|shell| shell.run_script(script)))?;
        self.substitution_status = outcome.status;
        self.status = outcome.status;
        self.substitution_errors.push_str(&outcome.stderr);
        Ok(outcome.stdout.trim_end_matches('\n').to_owned())
    }
}
