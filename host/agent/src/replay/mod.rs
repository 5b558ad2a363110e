//! Replays: traced conversations that run again, with the recorded responses of their models.

mod calls;
mod comparison;
mod divergence;
mod divergence_check;
mod line_diff;
mod model;
mod recording;
mod replay_log;
mod started_replay;

pub use calls::{CallOrigin, ReplayedCall};
pub use comparison::{Difference, differences};
pub use divergence::Divergence;
pub(crate) use divergence::arguments_diff;
pub use line_diff::line_diff;
pub use recording::{RecordedTraceCall, Recording, RecordingError};
pub use started_replay::{Replay, StartedReplay};
