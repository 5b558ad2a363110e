//! The record of the accesses that the host denied during one call.

use toolwit_core::text::printable;
use toolwit_core::{DeniedAccess, Error, ErrorKind, MissingGrant, Phase, ToolResult};

use crate::grants::redact::Redactor;
use crate::grants::{AccessMode, AccessRequest, Denial};

/// The maximum number of recorded denied accesses per call, because a guest can attempt any number of accesses.
const DENIED_ACCESSES_MAX: usize = 16;

/// The maximum length of a recorded text, in characters, because a guest chooses paths and keys.
const TEXT_CHARS_MAX: usize = 300;

/// The description of the denied access of a guest that reads its environment and finds no variable. The host does not
/// learn which variable the guest looked for, and the runtimes of some languages always read the environment. So this
/// access is listed only if the guest returned an error, which the access may explain.
const ENVIRONMENT_READ: &str = "read environment variables";

/// The accesses that the host denied during one call and its nested calls.
#[derive(Debug, Default)]
pub(super) struct DenialLog {
    accesses: Vec<DeniedAccess>,
    /// The first denied access of which the guest was informed. It becomes the error of a call if the guest then returns
    /// an error or traps.
    first_reported: Option<ReportedDenial>,
    /// The denied reads that a Python interpreter may have made. They are not in `accesses`.
    source_search: SourceSearch,
}

/// The denied reads of a Python interpreter that prints a traceback. It looks for source lines in the directories that
/// existed when componentize-py built the component. A grant of these directories would change nothing, because they
/// exist only during the build.
#[derive(Debug, Default)]
struct SourceSearch {
    reads: Vec<DeniedAccess>,
    /// For each of [`Self::DIRECTORIES`], whether the guest tried to read it.
    is_searched: [bool; 2],
}

impl SourceSearch {
    /// The directories that the Python interpreter of every such component searches.
    const DIRECTORIES: [&str; 2] = ["/python", "/bundled"];

    /// Returns whether a request may belong to the search. Also records whether it reads one of [`Self::DIRECTORIES`].
    fn observe(&mut self, request: &AccessRequest<'_>) -> bool {
        let AccessRequest::File(path, AccessMode::Read) = request else {
            return false;
        };
        for (directory, is_searched) in Self::DIRECTORIES.iter().zip(&mut self.is_searched) {
            *is_searched |= path == directory;
        }
        // The interpreter may also search `/world` and directories whose name is a number.
        let top_directory = path.split('/').nth(1).unwrap_or_default();
        matches!(top_directory, "python" | "bundled" | "world")
            || !top_directory.is_empty() && top_directory.bytes().all(|byte| byte.is_ascii_digit())
    }

    /// Returns the recorded reads, as ordinary denied accesses. Returns no reads if the guest tried to read all of
    /// [`Self::DIRECTORIES`], because a Python interpreter then made the recorded reads.
    fn into_ordinary_reads(self) -> Vec<DeniedAccess> {
        if self.is_searched == [true; 2] {
            Vec::new()
        } else {
            self.reads
        }
    }
}

/// Whether the guest was informed that the host denied its access.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum DenialNotice {
    /// The guest received a denial. The model may read these texts, so they say nothing about the grants.
    Reported {
        /// The reason.
        reason: String,
        /// A suggestion for the model.
        suggestion: Option<String>,
    },
    /// The guest received the same answer as for a file, a variable or another thing that does not exist.
    Silent,
}

/// A denied access of which the guest was informed.
#[derive(Debug)]
struct ReportedDenial {
    denied: DeniedAccess,
    reason: String,
    suggestion: Option<String>,
}

impl DenialNotice {
    /// Returns what the guest is told if the host denies this request.
    fn of(request: &AccessRequest<'_>, denial: &Denial) -> Self {
        match request {
            AccessRequest::Http(_) | AccessRequest::Tool(_) | AccessRequest::Blackboard(_) | AccessRequest::Ask => {
                Self::denied(denial)
            }
            _ => Self::Silent,
        }
    }

    /// Tells the guest that it was denied an access.
    pub(super) fn denied(denial: &Denial) -> Self {
        Self::Reported {
            reason: denial.reason_for_guest(),
            suggestion: None,
        }
    }
}

impl DenialLog {
    /// Records a denied request. Secrets and control characters are removed from its texts.
    pub(super) fn record_request(
        &mut self,
        plugin: &str,
        request: &AccessRequest<'_>,
        denial: &Denial,
        redactor: &Redactor,
    ) {
        let may_be_search = self.source_search.observe(request);
        let denied = denied_access(plugin, request, denial);
        if may_be_search {
            // Stored separately, so that a traceback does not use up the limit of recorded accesses.
            add(&mut self.source_search.reads, sanitize(denied, redactor));
        } else {
            self.record(denied, DenialNotice::of(request, denial), redactor);
        }
    }

    /// Records a denied access unless it is a duplicate or there are too many. Secrets and control characters are
    /// removed from its texts.
    pub(super) fn record(&mut self, denied: DeniedAccess, notice: DenialNotice, redactor: &Redactor) {
        let denied = sanitize(denied, redactor);
        if let DenialNotice::Reported { reason, suggestion } = notice {
            self.first_reported.get_or_insert_with(|| ReportedDenial {
                denied: denied.clone(),
                reason: sanitize_text(&reason, redactor),
                suggestion: suggestion.map(|suggestion| sanitize_text(&suggestion, redactor)),
            });
        }
        add(&mut self.accesses, denied);
    }

    /// Adds denied accesses whose texts have been redacted, such as those of a nested call.
    pub(super) fn extend(&mut self, redacted: Vec<DeniedAccess>) {
        let remaining_count = DENIED_ACCESSES_MAX.saturating_sub(self.accesses.len());
        self.accesses.extend(redacted.into_iter().take(remaining_count));
    }

    /// Adds the accesses to the outcome of the call. If a denial was reported to the guest, and the guest then returned
    /// an error or trapped, the first access with a reported denial becomes the error of the call.
    pub(super) fn conclude(mut self, outcome: Result<ToolResult, Error>) -> Result<ToolResult, Error> {
        let ordinary_reads = std::mem::take(&mut self.source_search).into_ordinary_reads();
        self.extend(ordinary_reads);
        match (outcome, self.first_reported.take()) {
            (Ok(result), Some(reported)) if result.is_error() => {
                let error = self.into_error(reported, None).with_log(result.log);
                Err(match result.value {
                    Some(value) => error.with_details(value),
                    None => error,
                })
            }
            (Ok(mut result), _) => {
                if !result.is_error() {
                    self.remove_environment_reads();
                }
                result.denied = self.accesses;
                Ok(result)
            }
            (Err(error), reported) => {
                // The panic handler of a guest reads the environment, so such a read explains neither a trap nor an exceeded
                // limit.
                self.remove_environment_reads();
                let log = error.log.clone();
                Err(match reported.filter(|_| error.kind == ErrorKind::Trap) {
                    Some(reported) => self.into_error(reported, Some(error)).with_log(log),
                    None => with_more_denied(error, self.accesses),
                })
            }
        }
    }

    fn remove_environment_reads(&mut self) {
        self.accesses.retain(|denied| denied.access != ENVIRONMENT_READ);
    }

    /// Converts a reported access to the error of the call, which lists this access first. `cause` is the error of the
    /// guest.
    fn into_error(mut self, reported: ReportedDenial, cause: Option<Error>) -> Error {
        let ReportedDenial {
            denied,
            reason,
            suggestion,
        } = reported;
        // The model reads the error, but only an operator can add a missing grant. So only the list for the operator
        // has the rules that were compared, and suggests the grant.
        let message = format!("it may not {}: {reason}", denied.access);
        let mut error = Error::new(ErrorKind::Denied, Phase::Execute, message);
        if let Some(suggestion) = suggestion {
            error = error.with_suggestion(suggestion);
        }
        self.accesses.retain(|access| *access != denied);
        self.accesses.insert(0, denied);
        let error = error.with_denied(self.accesses);
        match cause {
            Some(cause) => error.with_source(cause),
            None => error,
        }
    }
}

/// Adds denied accesses to those that an error already lists, such as the error of a call that was refused.
fn with_more_denied(error: Error, accesses: Vec<DeniedAccess>) -> Error {
    let denied = error.denied.iter().cloned().chain(accesses).collect();
    error.with_denied(denied)
}

/// Describes a denied access, with the grant that would allow it, if there is one.
fn denied_access(plugin: &str, request: &AccessRequest<'_>, denial: &Denial) -> DeniedAccess {
    let suggestion = match denial {
        Denial::MissingVariable(name) => Some(format!("set `{name}` in the environment of the host")),
        Denial::Unenforceable(_) => Some(format!("change or revoke the rule in the grants of `{plugin}`")),
        // A rule for a secret must name the host that receives it, and the guest does not name that host.
        _ if matches!(request, AccessRequest::Secret(_)) => {
            Some(format!("grant the secret to `{plugin}`, for the host that receives it"))
        }
        _ => None,
    };
    let needed_rule = request.needed_rule().filter(|_| suggestion.is_none());
    let missing_grant = needed_rule.map(|(key, value)| missing_grant(plugin, key, &value));
    DeniedAccess {
        plugin: plugin.to_owned(),
        access: request.to_string(),
        reason: denial.to_string(),
        suggestion: suggestion
            .or_else(|| missing_grant.as_ref().map(MissingGrant::suggestion))
            .unwrap_or_default(),
        missing_grant,
    }
}

/// Describes the denied read of an environment in which the guest finds no variable.
pub(super) fn denied_environment(plugin: &str, denial: &Denial) -> DeniedAccess {
    DeniedAccess {
        access: ENVIRONMENT_READ.to_owned(),
        missing_grant: Some(missing_grant(plugin, "env", "NAME")),
        ..denied_access(plugin, &AccessRequest::Variable("NAME"), denial)
    }
}

/// Describes a rule that a plugin lost because its component changed.
pub(super) fn lost_grant(plugin: &str, rule: &str) -> DeniedAccess {
    DeniedAccess {
        plugin: plugin.to_owned(),
        access: format!("use its grant `{rule}`"),
        reason: "the plugin has changed, and the grant is for another version of it".to_owned(),
        suggestion: format!("grant `{rule}` to `{plugin}` again"),
        missing_grant: None,
    }
}

pub(super) fn missing_grant(plugin: &str, key: &str, value: &str) -> MissingGrant {
    MissingGrant {
        plugin: plugin.to_owned(),
        key: key.to_owned(),
        value: value.to_owned(),
    }
}

/// Adds and logs a denied access, unless it is a duplicate or there are too many. Otherwise, a guest could flood the log
/// of the host.
fn add(accesses: &mut Vec<DeniedAccess>, denied: DeniedAccess) {
    let is_duplicate = |earlier: &DeniedAccess| earlier.access == denied.access && earlier.plugin == denied.plugin;
    if accesses.len() >= DENIED_ACCESSES_MAX || accesses.iter().any(is_duplicate) {
        return;
    }
    tracing::info!(
        plugin = denied.plugin,
        access = denied.access,
        reason = denied.reason,
        "an access was denied"
    );
    accesses.push(denied);
}

/// Removes secrets and control characters from the texts of a denied access, and shortens the texts.
fn sanitize(mut denied: DeniedAccess, redactor: &Redactor) -> DeniedAccess {
    let DeniedAccess {
        access,
        reason,
        suggestion,
        missing_grant,
        plugin: _,
    } = &mut denied;
    let value = missing_grant.as_mut().map(|missing| &mut missing.value);
    for text in [access, reason, suggestion].into_iter().chain(value) {
        *text = sanitize_text(text, redactor);
    }
    denied
}

fn sanitize_text(text: &str, redactor: &Redactor) -> String {
    let printable_text = printable(&redactor.redact_text(text));
    match printable_text.char_indices().nth(TEXT_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &printable_text[..end]),
        None => printable_text,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
