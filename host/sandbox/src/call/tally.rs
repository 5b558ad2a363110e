//! A count with a bound, inside the counts of the calls around.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What a call may use of something, together with the calls inside it. What one of those takes is taken from every call
/// around it too, so that the smallest of their bounds holds.
#[derive(Debug)]
pub(crate) struct Tally {
    used: AtomicU64,
    max: u64,
    outer: Option<Arc<Self>>,
}

/// Which bound does not allow more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Full {
    pub(crate) max: u64,
    /// What would have been used.
    pub(crate) used: u64,
}

impl Tally {
    /// Begins to count, inside a call or in none.
    pub(crate) fn new(max: u64, outer: Option<Arc<Self>>) -> Self {
        Self {
            used: AtomicU64::new(0),
            max,
            outer,
        }
    }

    /// Takes so much.
    ///
    /// # Errors
    /// The bound that is met, of this call or of one around it. A bound that was met stays met.
    pub(crate) fn take(&self, amount: u64) -> Result<(), Full> {
        let before = self.used.fetch_add(amount, Ordering::Relaxed);
        let used = before.saturating_add(amount);
        if used > self.max {
            return Err(Full { max: self.max, used });
        }
        self.outer.as_ref().map_or(Ok(()), |outer| outer.take(amount))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_inside_is_taken_outside_and_the_smallest_bound_holds() {
        let outer = Arc::new(Tally::new(3, None));
        let lower = Tally::new(1, Some(outer.clone()));
        lower.take(1).unwrap();
        assert_eq!(lower.take(1), Err(Full { max: 1, used: 2 }), "its own bound is lower");
        let higher = Tally::new(10, Some(outer.clone()));
        higher.take(2).unwrap();
        assert_eq!(
            higher.take(1),
            Err(Full { max: 3, used: 4 }),
            "what its own would allow, the outer one does not"
        );
        assert!(outer.take(1).is_err());
    }
}
