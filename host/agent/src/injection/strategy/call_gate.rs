//! The decision whether a tool may be called.

/// A strategy's decision about the call of a tool at one moment.
///
/// Declaring a tool and permitting its call are separate: a locked tool stays declared, and a call of it returns guidance
/// on how to unlock it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum CallGate {
    /// The strategy does not control this tool.
    #[default]
    Ungated,
    /// The strategy controls the tool and permits the call. The call waits for earlier calls of the response, which may lock
    /// the tool.
    Unlocked,
    /// The tool may not be called yet. The call does not run; the model receives this guidance as the result.
    Locked(String),
}

impl CallGate {
    /// Combines the decisions of two strategies: locked if either of them locks the tool, with the guidance of the first one
    /// that does; otherwise unlocked if either of them controls the tool.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Locked(guidance), _) | (_, Self::Locked(guidance)) => Self::Locked(guidance),
            (Self::Unlocked, _) | (_, Self::Unlocked) => Self::Unlocked,
            (Self::Ungated, Self::Ungated) => Self::Ungated,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_lock_suffices_and_the_first_guidance_wins() {
        let locked = |guidance: &str| CallGate::Locked(guidance.to_owned());
        assert_eq!(CallGate::Ungated.and(CallGate::Unlocked), CallGate::Unlocked);
        assert_eq!(CallGate::Unlocked.and(locked("a")).and(locked("b")), locked("a"));
        assert_eq!(CallGate::Ungated.and(CallGate::Ungated), CallGate::Ungated);
    }
}
