//! Replays: traced conversations that run again, with the recorded responses of their models.
//!
//! A replay can deviate from its trace in two ways. A [`Divergence`] is a request to the model or a call to which the trace has
//! no answer. It ends the replay. A [`Difference`] is an event that differs from the recorded event. It does not end the replay,
//! and is found afterwards, when the events of the replay are compared with the trace.

mod calls;
mod comparison;
mod divergence;
mod divergence_check;
mod line_diff;
mod model;
mod recording;
mod replay_log;
mod resumptions;
mod started_replay;

pub use calls::{CallOrigin, ReplayedCall};
pub use comparison::{Difference, differences};
pub use divergence::Divergence;
pub(crate) use divergence::arguments_diff;
pub use line_diff::line_diff;
pub use recording::{RecordedCall, Recording, RecordingError};
pub use started_replay::{Replay, StartedReplay};
