//! Output that is deferred while a question has the terminal.

use std::sync::{Mutex, PoisonError};

/// Maximum number of deferred prints, which limits their memory: a question can be open for hours. Further output is
/// printed at once.
const PRINTS_MAX: usize = 1000;

/// A function that prints deferred output.
type DeferredPrint = Box<dyn FnOnce() + Send>;

/// The output of other calls while a question is open. If printed at once, it would appear between the question and the
/// typed answer, and hide the prompt.
#[derive(Default)]
pub(super) struct HeldOutput {
    /// `None` while no question is open.
    prints: Mutex<Option<Vec<DeferredPrint>>>,
}

impl HeldOutput {
    /// Defers output from now on.
    pub(super) fn start_holding(&self) {
        let mut prints = self.prints.lock().unwrap_or_else(PoisonError::into_inner);
        prints.get_or_insert_default();
    }

    /// Defers output while a question is open. Returns the function if it can run now: no question is open, or too much
    /// output is deferred.
    pub(super) fn hold_or_return(&self, print: impl FnOnce() + Send + 'static) -> Option<DeferredPrint> {
        let mut prints = self.prints.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut *prints {
            Some(deferred) if deferred.len() < PRINTS_MAX => {
                deferred.push(Box::new(print));
                None
            }
            _ => Some(Box::new(print)),
        }
    }

    /// Returns the deferred output, in order, and does not defer any more.
    pub(super) fn release(&self) -> Vec<DeferredPrint> {
        let mut prints = self.prints.lock().unwrap_or_else(PoisonError::into_inner);
        prints.take().unwrap_or_default()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn prints_wait_while_a_question_is_open_and_keep_their_order() {
        let (output, printed) = (HeldOutput::default(), Arc::new(Mutex::new(Vec::new())));
        let print = |number: usize| {
            let printed = printed.clone();
            move || printed.lock().unwrap().push(number)
        };
        assert!(output.hold_or_return(print(0)).is_some(), "no question is open");
        output.start_holding();
        for number in 0..PRINTS_MAX {
            assert!(output.hold_or_return(print(number)).is_none());
        }
        assert!(
            output.hold_or_return(print(PRINTS_MAX)).is_some(),
            "the number of deferred prints is limited"
        );
        output.release().into_iter().for_each(|print| print());
        assert!(printed.lock().unwrap().iter().copied().eq(0..PRINTS_MAX));
        assert!(output.hold_or_return(print(0)).is_some() && output.release().is_empty());
    }
}
