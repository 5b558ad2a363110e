//! Whether a tool may be called now.

/// What a strategy says about the call of a tool at one moment.
///
/// Declaring and calling are two things: a locked tool stays declared, and the model that calls it is told what to do first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum CallGate {
    /// The strategy has no say in this tool.
    #[default]
    Ungated,
    /// The strategy watches the tool, and it may be called. Such a call waits for those before it, which may close the gate.
    Open,
    /// The tool may not be called yet. The model is answered with this guidance, and nothing runs.
    Locked(String),
}

impl CallGate {
    /// Combines what two strategies say: what one locks is locked, what neither watches is free.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Locked(guidance), _) | (_, Self::Locked(guidance)) => Self::Locked(guidance),
            (Self::Open, _) | (_, Self::Open) => Self::Open,
            (Self::Ungated, Self::Ungated) => Self::Ungated,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_lock_is_enough_and_the_first_one_guides() {
        let locked = |why: &str| CallGate::Locked(why.to_owned());
        assert_eq!(CallGate::Ungated.and(CallGate::Open), CallGate::Open);
        assert_eq!(CallGate::Open.and(locked("a")).and(locked("b")), locked("a"));
        assert_eq!(CallGate::Ungated.and(CallGate::Ungated), CallGate::Ungated);
    }
}
