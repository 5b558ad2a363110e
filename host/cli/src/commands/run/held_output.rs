//! Output that waits while a question has the terminal.

use std::sync::{Mutex, PoisonError};

/// Maximum number of prints that wait. Further ones are printed at once, because a question can be open for hours.
const PRINTS_MAX: usize = 1000;

type Print = Box<dyn FnOnce() + Send>;

/// The prints of other calls while a question is open. Between the question and the typed answer, they would hide the prompt.
#[derive(Default)]
pub(super) struct HeldOutput {
    /// `None` while no question is open.
    prints: Mutex<Option<Vec<Print>>>,
}

impl HeldOutput {
    /// Holds the prints from now on.
    pub(super) fn hold(&self) {
        let mut prints = self.prints.lock().unwrap_or_else(PoisonError::into_inner);
        prints.get_or_insert_default();
    }

    /// Holds a print while a question is open. Returns the print if it can run now: no question is open, or too many prints
    /// are held.
    pub(super) fn hold_while_open(&self, print: impl FnOnce() + Send + 'static) -> Option<Print> {
        let mut prints = self.prints.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut *prints {
            Some(held) if held.len() < PRINTS_MAX => {
                held.push(Box::new(print));
                None
            }
            _ => Some(Box::new(print)),
        }
    }

    /// Returns the held prints, in order, and holds no further ones.
    pub(super) fn release(&self) -> Vec<Print> {
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
        assert!(output.hold_while_open(print(0)).is_some(), "no question is open");
        output.hold();
        for number in 0..PRINTS_MAX {
            assert!(output.hold_while_open(print(number)).is_none());
        }
        assert!(output.hold_while_open(print(PRINTS_MAX)).is_some(), "they are limited");
        output.release().into_iter().for_each(|print| print());
        assert!(printed.lock().unwrap().iter().copied().eq(0..PRINTS_MAX));
        assert!(output.hold_while_open(print(0)).is_some() && output.release().is_empty());
    }
}
