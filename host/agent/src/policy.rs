//! How far a run may go, and what happens at the end of the road.

use serde::{Deserialize, Serialize};

use toolwit_core::{Error, ErrorKind, Phase};

/// The bounds of one run: from a user's message to its answer.
///
/// ```
/// use toolwit_agent::{IterationPolicy, LoopLimits};
///
/// let mut limits = LoopLimits::default();
/// limits.iterations_max = 5;
/// limits.on_iterations_max = IterationPolicy::FinalAnswer;
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct LoopLimits {
    /// The most inferences. Twenty steps do real work and end a loop before it is dear.
    pub iterations_max: u32,
    /// What happens when they are used up.
    pub on_iterations_max: IterationPolicy,
    /// The most tool calls of a run.
    pub calls_max: u32,
    /// The most calls of one response that are run; the others are answered that they were too many.
    pub calls_per_response_max: u32,
    /// The longest a run may take, in milliseconds. Ten minutes hold a long tool and the patience of a person.
    pub wall_ms_max: u64,
    /// The most tokens, read and written together; not bounded unless set.
    pub tokens_max: Option<u64>,
    /// What happens when the model calls tools that do not exist.
    pub unknown_tools: UnknownToolPolicy,
    /// The most bytes of a result that the model reads at once; it reads on with `read_result`.
    pub result_bytes_max: usize,
    /// The most tools that are declared at once; those not used for longest are hidden beyond. Providers refuse more.
    pub tools_max: usize,
    /// From how many declared tools on an event warns, since models choose badly among many.
    pub tools_warn: usize,
}

impl Default for LoopLimits {
    fn default() -> Self {
        Self {
            iterations_max: 20,
            on_iterations_max: IterationPolicy::Error,
            calls_max: 100,
            calls_per_response_max: 32,
            wall_ms_max: 600_000,
            tokens_max: None,
            unknown_tools: UnknownToolPolicy::StopAfter(3),
            result_bytes_max: 32 << 10,
            tools_max: 128,
            tools_warn: 30,
        }
    }
}

/// The smallest `result_bytes_max`: less would leave no room for the text beside the marker.
const RESULT_BYTES_MIN: usize = 256;

impl LoopLimits {
    /// Refuses bounds with which nothing can run.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`], which names the bound.
    pub fn check(&self) -> Result<(), Error> {
        let counts = [
            ("iterations_max", u64::from(self.iterations_max)),
            ("calls_max", u64::from(self.calls_max)),
            ("calls_per_response_max", u64::from(self.calls_per_response_max)),
            ("wall_ms_max", self.wall_ms_max),
            ("tokens_max", self.tokens_max.unwrap_or(1)),
            ("tools_max", self.tools_max as u64),
        ];
        let refused = |message: String| Err(Error::new(ErrorKind::Configuration, Phase::Registry, message));
        if let Some((name, _)) = counts.iter().find(|(_, value)| *value == 0) {
            return refused(format!("`{name}` must be at least 1"));
        }
        if self.unknown_tools == UnknownToolPolicy::StopAfter(0) {
            return refused("`unknown_tools` must allow at least 1".to_owned());
        }
        if self.result_bytes_max < RESULT_BYTES_MIN {
            return refused(format!("`result_bytes_max` must be at least {RESULT_BYTES_MIN}"));
        }
        Ok(())
    }
}

/// What happens when a run has used up its iterations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum IterationPolicy {
    /// The run is an error, which keeps the history.
    #[default]
    Error,
    /// The model gets one more turn without tools, to say what it knows.
    FinalAnswer,
    /// What the model said last is the answer.
    Partial,
}

/// What happens when the model calls tools that do not exist. It is always told so, with the nearest names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum UnknownToolPolicy {
    /// The run stops after this many responses in a row with an unknown name; 1 stops at once.
    StopAfter(u32),
    /// The run goes on, until another limit.
    Never,
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    // attack: B16
    #[test]
    fn bounds_with_which_nothing_runs_are_refused_by_name() {
        assert!(LoopLimits::default().check().is_ok());
        let zeros = [
            LoopLimits {
                iterations_max: 0,
                ..LoopLimits::default()
            },
            LoopLimits {
                wall_ms_max: 0,
                ..LoopLimits::default()
            },
            LoopLimits {
                tokens_max: Some(0),
                ..LoopLimits::default()
            },
            LoopLimits {
                unknown_tools: UnknownToolPolicy::StopAfter(0),
                ..LoopLimits::default()
            },
            LoopLimits {
                result_bytes_max: 10,
                ..LoopLimits::default()
            },
        ];
        for limits in zeros {
            let message = limits.check().unwrap_err().to_string();
            assert!(message.contains("must"), "{message}");
        }
    }
}
