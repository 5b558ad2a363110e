//! What a check came to.

use serde::Serialize;

use super::exit_of;
use crate::exit::Exit;
use toolwit::Error;

/// How it is about what was looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum State {
    Ok,
    /// It works, but not as somebody may expect.
    Warning,
    /// It does not work.
    Problem,
}

/// What a check came to.
#[derive(Debug, Serialize)]
pub(super) struct Finding {
    /// What was looked at: `packages`, `health`, `needs`, `grants`, `secrets`, `store`, `cache`, `toolchain`.
    pub(super) check: &'static str,
    pub(super) state: State,
    /// The plugin or file that it is about.
    pub(super) subject: Option<String>,
    pub(super) message: String,
    pub(super) suggestion: Option<String>,
}

/// What all checks came to, in the order of the checks.
#[derive(Default)]
pub(super) struct Findings {
    list: Vec<Finding>,
    exit: Option<Exit>,
}

impl Findings {
    pub(super) fn list(&self) -> &[Finding] {
        &self.list
    }

    /// The worst of what was found.
    pub(super) fn exit(&self) -> Exit {
        self.exit.unwrap_or(Exit::Success)
    }

    pub(super) fn ok(&mut self, check: &'static str, message: impl Into<String>) {
        self.add(check, State::Ok, None, message.into(), None);
    }

    /// Adds what works, but not as somebody may expect.
    pub(super) fn warning(
        &mut self,
        check: &'static str,
        subject: &str,
        message: impl Into<String>,
        suggestion: impl Into<String>,
    ) {
        let suggestion = Some(suggestion.into());
        self.add(
            check,
            State::Warning,
            Some(subject.to_owned()),
            message.into(),
            suggestion,
        );
    }

    /// Adds what does not work.
    pub(super) fn problem(
        &mut self,
        check: &'static str,
        subject: &str,
        message: impl Into<String>,
        suggestion: Option<String>,
        exit: Exit,
    ) {
        self.exit = self.exit.max(Some(exit));
        self.add(
            check,
            State::Problem,
            Some(subject.to_owned()),
            message.into(),
            suggestion,
        );
    }

    /// Adds what failed with an error.
    pub(super) fn error(&mut self, check: &'static str, error: &Error) {
        let message = error.message.clone();
        self.exit = self.exit.max(Some(exit_of(error)));
        self.add(
            check,
            State::Problem,
            error.plugin.clone(),
            message,
            error.suggestion.clone(),
        );
    }

    fn add(
        &mut self,
        check: &'static str,
        state: State,
        subject: Option<String>,
        message: String,
        suggestion: Option<String>,
    ) {
        self.list.push(Finding {
            check,
            state,
            subject,
            message,
            suggestion,
        });
    }
}
