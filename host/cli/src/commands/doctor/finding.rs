//! The findings of the checks of `toolwit doctor`.

use serde::Serialize;

use super::exit_of;
use crate::exit::Exit;
use toolwit::Error;

/// The severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Severity {
    /// The check found nothing wrong.
    Ok,
    /// The subject works, but perhaps not as expected.
    Warning,
    /// The subject does not work.
    Problem,
}

/// A finding of a check.
#[derive(Debug, Serialize)]
pub(super) struct Finding {
    /// The name of the check: `plugins`, `packages`, `health`, `needs`, `grants`, `secrets`, `store`, `system`,
    /// `cache`, `vectors`, `files` or `toolchain`.
    pub(super) check: &'static str,
    #[serde(rename = "state")]
    pub(super) severity: Severity,
    /// The plugin that the finding is about, or another part of the installation, such as `cache` or `cargo`.
    pub(super) subject: Option<String>,
    pub(super) message: String,
    pub(super) suggestion: Option<String>,
}

/// The findings of all checks, in the order of the checks.
#[derive(Default)]
pub(super) struct Findings {
    list: Vec<Finding>,
    /// The exit code of the worst problem. `None` if there is no problem.
    exit: Option<Exit>,
}

impl Findings {
    pub(super) fn list(&self) -> &[Finding] {
        &self.list
    }

    /// Returns the exit code of the worst problem, or success if there is no problem.
    pub(super) fn exit(&self) -> Exit {
        self.exit.unwrap_or(Exit::Success)
    }

    pub(super) fn add_ok(&mut self, check: &'static str, message: impl Into<String>) {
        self.add(check, Severity::Ok, None, message.into(), None);
    }

    /// Adds a warning: the subject works, but perhaps not as expected.
    pub(super) fn add_warning(
        &mut self,
        check: &'static str,
        subject: &str,
        message: impl Into<String>,
        suggestion: impl Into<String>,
    ) {
        let suggestion = Some(suggestion.into());
        self.add(
            check,
            Severity::Warning,
            Some(subject.to_owned()),
            message.into(),
            suggestion,
        );
    }

    /// Adds a problem: the subject does not work.
    pub(super) fn add_problem(
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
            Severity::Problem,
            Some(subject.to_owned()),
            message.into(),
            suggestion,
        );
    }

    /// Adds an error as a problem. If the error names a plugin, this plugin is the subject.
    pub(super) fn add_error(&mut self, check: &'static str, error: &Error) {
        let message = error.message.clone();
        self.exit = self.exit.max(Some(exit_of(error)));
        self.add(
            check,
            Severity::Problem,
            error.plugin.clone(),
            message,
            error.suggestion.clone(),
        );
    }

    fn add(
        &mut self,
        check: &'static str,
        severity: Severity,
        subject: Option<String>,
        message: String,
        suggestion: Option<String>,
    ) {
        self.list.push(Finding {
            check,
            severity,
            subject,
            message,
            suggestion,
        });
    }
}
