//! The health of tools: how the outcome of a call determines it, and how long it is valid.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::store::{CheckOutcome, CheckStage, HealthState, ToolHealth};
use toolwit_core::{Error, ErrorKind, Phase, ToolId, ToolResult};

/// The time for which a failed check is valid. Later, the cause of the failure may have been fixed.
const BROKEN_FOR: Duration = Duration::from_secs(24 * 3_600);

/// The time for which a successful check is valid. Later, the tool may have stopped working.
const HEALTHY_FOR: Duration = Duration::from_secs(30 * 24 * 3_600);

/// A tool whose last health check failed: its component did not load, or its call failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailingTool {
    /// The tool.
    pub tool: ToolId,
    /// The message of the failure, if it was recorded.
    pub error: Option<String>,
}

/// Returns the current time in milliseconds since 1970.
pub(crate) fn now_ms() -> u64 {
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since_1970.as_millis()).unwrap_or(u64::MAX)
}

/// Returns the health of a tool at the time `now_ms`. The health is unknown if the last check is too old, or if the component
/// loads but no call was checked.
#[must_use]
pub(crate) fn current_state(health: &ToolHealth, now_ms: u64) -> HealthState {
    let age = Duration::from_millis(now_ms.saturating_sub(health.checked_ms));
    match health {
        _ if health.is_broken() && age < BROKEN_FOR => HealthState::Broken,
        _ if !health.is_broken() && health.execution == HealthState::Healthy && age < HEALTHY_FOR => {
            HealthState::Healthy
        }
        _ => HealthState::Unknown,
    }
}

/// Converts the outcome of a call to a health check: the stage and the outcome of the check. `None` if the outcome of the call
/// shows nothing about the health of the tool: the tool itself returned the error, or the cause is outside of the tool, such as
/// invalid arguments, a missing key or grant, or a cancellation.
#[must_use]
pub fn health_check(outcome: Result<&ToolResult, &Error>) -> Option<(CheckStage, CheckOutcome)> {
    let error = match outcome {
        Ok(result) if result.is_error() => return None,
        Ok(_) => return Some((CheckStage::Execution, CheckOutcome::Success)),
        Err(error) => error,
    };
    let stage = match (error.phase, error.kind) {
        (_, ErrorKind::Busy | ErrorKind::Cancelled) | (Phase::Load | Phase::Link, ErrorKind::Timeout) => None,
        // A setting of the system, or a failure of the host: no plugin would work.
        (_, ErrorKind::Configuration | ErrorKind::Internal) => None,
        (Phase::Load | Phase::Link, _) => Some(CheckStage::Loading),
        (Phase::Instantiate | Phase::Execute, ErrorKind::Trap) => Some(CheckStage::Execution),
        (Phase::Instantiate | Phase::Execute, kind) if kind.is_limit() => Some(CheckStage::Execution),
        _ => None,
    };
    stage.map(|stage| (stage, CheckOutcome::Failure(error.message.clone())))
}

/// Returns whether a call counts as a use of the tool: the tool itself returned a result or an error.
#[must_use]
pub(crate) fn is_use(outcome: Result<&ToolResult, &Error>) -> bool {
    outcome.map_or_else(|error| error.kind == ErrorKind::Tool, |_| true)
}

#[cfg(test)]
#[allow(clippy::panic)]
mod tests {
    use super::*;
    use crate::store::CallRecord;

    fn check_of_error(kind: ErrorKind, phase: Phase) -> Option<(CheckStage, CheckOutcome)> {
        health_check(Err(&Error::new(kind, phase, "no")))
    }

    // accept: 122, accept: 136
    #[test]
    fn failure_marks_a_tool_as_broken_only_if_the_tool_caused_it() {
        for (kind, phase) in [
            (ErrorKind::InvalidArguments, Phase::Validate),
            (ErrorKind::Denied, Phase::Execute),
            (ErrorKind::Cancelled, Phase::Execute),
            (ErrorKind::Busy, Phase::Execute),
            (ErrorKind::Configuration, Phase::Execute),
            (ErrorKind::Configuration, Phase::Load),
            (ErrorKind::Internal, Phase::Load),
            (ErrorKind::Timeout, Phase::Load),
            (ErrorKind::MissingKey, Phase::Execute),
            (ErrorKind::Tool, Phase::Execute),
        ] {
            assert_eq!(check_of_error(kind, phase), None, "{kind} {phase}");
        }
        assert_eq!(health_check(Ok(&ToolResult::error("no such customer"))), None);
        let failure = || CheckOutcome::Failure("no".to_owned());
        for kind in [
            ErrorKind::Trap,
            ErrorKind::Fuel,
            ErrorKind::Memory,
            ErrorKind::HostCalls,
            ErrorKind::ResultBytes,
        ] {
            let check = Some((CheckStage::Execution, failure()));
            assert_eq!(check_of_error(kind, Phase::Execute), check, "{kind}");
        }
        assert_eq!(
            check_of_error(ErrorKind::UnknownImport, Phase::Link),
            Some((CheckStage::Loading, failure()))
        );
        assert_eq!(
            health_check(Ok(&ToolResult::text("3"))),
            Some((CheckStage::Execution, CheckOutcome::Success))
        );
    }

    #[test]
    fn health_expires() {
        let mut health = ToolHealth::default();
        let call_record = |outcome, at_ms| CallRecord::check(CheckStage::Execution, outcome, at_ms);
        health.record(&call_record(CheckOutcome::Failure("no".to_owned()), 1_000));
        let day = 24 * 3_600 * 1_000;
        assert_eq!(current_state(&health, 2_000), HealthState::Broken);
        assert_eq!(current_state(&health, 1_000 + day), HealthState::Unknown);
        health.record(&call_record(CheckOutcome::Success, 5_000));
        assert_eq!(current_state(&health, 5_000 + 29 * day), HealthState::Healthy);
        assert_eq!(current_state(&health, 5_000 + 31 * day), HealthState::Unknown);
    }
}
