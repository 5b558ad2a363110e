//! The outcomes of calls that a person decided after the host had stopped during them.

use super::history::error_text;
use crate::event::{RecordedOutcome, Resolution};
use toolwit_core::{Error, ErrorKind, Phase};

/// Returns the outcome that a decision gives to a call, or `None` if the call runs again.
pub(crate) fn resolved_outcome(resolution: Resolution) -> Option<RecordedOutcome> {
    match resolution {
        Resolution::Done => Some(RecordedOutcome {
            text:
                "the host stopped while this call ran; a person confirmed that it took effect. Its result is not known"
                    .to_owned(),
            ..RecordedOutcome::default()
        }),
        Resolution::NotDone => {
            let message = "not run: the host stopped, and a person confirmed that the call had no effect";
            let error = Error::new(ErrorKind::Cancelled, Phase::Validate, message);
            Some(RecordedOutcome::failed(error.kind, error_text(&error)))
        }
        Resolution::RunAgain => None,
    }
}
