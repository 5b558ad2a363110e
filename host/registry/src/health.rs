//! How well tools worked, as far as that still says something.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::store::{CheckOutcome, CheckStage, HealthState, ToolHealth};
use toolwit_core::{Error, ErrorKind, Phase};

/// After this long, what was broken may as well have been mended.
const BROKEN_FOR: Duration = Duration::from_secs(24 * 3_600);

/// After this long, what worked may as well have stopped to.
const HEALTHY_FOR: Duration = Duration::from_secs(30 * 24 * 3_600);

/// The time of now, in milliseconds since 1970.
pub(super) fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// Says whether a tool works, if what is known is fresh enough to tell.
#[must_use]
pub(super) fn decayed(health: &ToolHealth, now_ms: u64) -> HealthState {
    let age = Duration::from_millis(now_ms.saturating_sub(health.checked_ms));
    match health {
        _ if health.is_broken() && age < BROKEN_FOR => HealthState::Broken,
        _ if !health.is_broken() && health.execution == HealthState::Healthy && age < HEALTHY_FOR => {
            HealthState::Healthy
        }
        _ => HealthState::Unknown,
    }
}

/// Tells what the end of a call says about the tool's health. `None` for what is the caller's doing: arguments that do not
/// fit, a missing key or grant, a limit of the operator, a cancellation.
#[must_use]
pub fn check_outcome(error: Option<&Error>) -> Option<(CheckStage, CheckOutcome)> {
    let Some(error) = error else {
        return Some((CheckStage::Execution, CheckOutcome::Success));
    };
    let failure = CheckOutcome::Failure(error.message.clone());
    match (error.phase, error.kind) {
        (Phase::Load | Phase::Link, ErrorKind::Timeout | ErrorKind::Busy | ErrorKind::Cancelled) => None,
        (Phase::Load | Phase::Link, _) => Some((CheckStage::Import, failure)),
        (
            Phase::Instantiate | Phase::Execute,
            ErrorKind::Trap | ErrorKind::Stack | ErrorKind::Fuel | ErrorKind::Timeout | ErrorKind::Memory,
        ) => Some((CheckStage::Execution, failure)),
        // It ran, and answered with an error of its own.
        (Phase::Execute, ErrorKind::Tool) => Some((CheckStage::Execution, CheckOutcome::Success)),
        _ => None,
    }
}

#[cfg(test)]
#[allow(clippy::panic)]
mod tests {
    use super::*;

    fn failed(kind: ErrorKind, phase: Phase) -> Option<(CheckStage, CheckOutcome)> {
        check_outcome(Some(&Error::new(kind, phase, "no")))
    }

    // accept: 122, accept: 136
    #[test]
    fn the_caller_s_doing_breaks_no_tool() {
        for (kind, phase) in [
            (ErrorKind::InvalidArguments, Phase::Validate),
            (ErrorKind::Denied, Phase::Execute),
            (ErrorKind::Cancelled, Phase::Execute),
            (ErrorKind::Busy, Phase::Execute),
            (ErrorKind::Configuration, Phase::Execute),
            (ErrorKind::Timeout, Phase::Load),
        ] {
            assert_eq!(failed(kind, phase), None, "{kind} {phase}");
        }
        let failure = || CheckOutcome::Failure("no".to_owned());
        assert_eq!(
            failed(ErrorKind::Trap, Phase::Execute),
            Some((CheckStage::Execution, failure()))
        );
        assert_eq!(
            failed(ErrorKind::UnknownImport, Phase::Link),
            Some((CheckStage::Import, failure()))
        );
        assert_eq!(
            check_outcome(None),
            Some((CheckStage::Execution, CheckOutcome::Success))
        );
    }

    #[test]
    fn what_is_known_of_health_fades() {
        let mut health = ToolHealth::default();
        health.record(CheckStage::Execution, &CheckOutcome::Failure("no".to_owned()), 1_000);
        let day = 24 * 3_600 * 1_000;
        assert_eq!(decayed(&health, 2_000), HealthState::Broken);
        assert_eq!(decayed(&health, 1_000 + day), HealthState::Unknown);
        health.record(CheckStage::Execution, &CheckOutcome::Success, 5_000);
        assert_eq!(decayed(&health, 5_000 + 29 * day), HealthState::Healthy);
        assert_eq!(decayed(&health, 5_000 + 31 * day), HealthState::Unknown);
    }
}
