//! The state of a shell.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};
use std::rc::Rc;

use crate::execute::Shell;
use crate::syntax::Command;

/// The state of which a subshell has a copy of its own.
#[derive(Clone, Debug)]
pub(crate) struct State {
    pub(crate) directory: PathBuf,
    pub(crate) variables: BTreeMap<String, String>,
    pub(crate) functions: BTreeMap<String, Rc<Command>>,
    /// The positional parameters.
    pub(crate) parameters: Vec<String>,
    pub(crate) options: Options,
    /// For each running function, the earlier values of its local variables.
    pub(crate) locals: Vec<BTreeMap<String, Option<String>>>,
}

/// The options of `set`.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Options {
    /// `-e`
    pub(crate) exits_on_failure: bool,
    /// `-u`
    pub(crate) fails_on_unset: bool,
    /// `-o pipefail`
    pub(crate) fails_on_pipe: bool,
}

/// A request to leave commands that are running.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flow {
    /// Leave this many loops.
    Break(usize),
    /// Leave all but one of this many loops, and continue that one.
    Continue(usize),
    Return,
    Exit,
}

/// The standard input of a command, which `read` takes line by line.
#[derive(Clone, Debug)]
pub(crate) struct Input {
    pub(crate) text: Rc<str>,
    pub(crate) offset: usize,
}

impl Input {
    pub(crate) fn new(text: &str) -> Self {
        let (text, offset) = (text.into(), 0);
        Self { text, offset }
    }

    /// Takes a line without its line break, and returns whether there was one. `None` at the end.
    pub(crate) fn take_line(&mut self) -> Option<(String, bool)> {
        let rest = self.text.get(self.offset..).filter(|rest| !rest.is_empty())?;
        let line = rest.split_inclusive('\n').next()?.to_owned();
        self.offset += line.len();
        Some(match line.strip_suffix('\n') {
            Some(line) => (line.to_owned(), true),
            None => (line, false),
        })
    }
}

impl Shell {
    pub(crate) fn set_variable(&mut self, name: &str, value: &str) {
        self.state.variables.insert(name.to_owned(), value.to_owned());
    }

    /// Sets a variable to an earlier value, or removes it.
    pub(crate) fn restore(&mut self, name: String, value: Option<String>) {
        match value {
            Some(value) => self.state.variables.insert(name, value),
            None => self.state.variables.remove(&name),
        };
    }

    /// Resolves a path against the working directory. `..` is resolved in the text, because `/` is not a directory of the
    /// sandbox.
    pub(crate) fn resolve_path(&self, path: &str) -> PathBuf {
        let mut resolved = PathBuf::new();
        for component in self.state.directory.join(path).components() {
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
        let path = self.resolve_path(path);
        path == Path::new("/") || self.roots().iter().any(|root| path == Path::new(root))
    }
}
