//! Output that waits while a question has the terminal.

use std::sync::{Mutex, PoisonError};

/// Maximum number of prints that wait. Further ones are printed at once: a question can be open for hours.
const PRINTS_MAX: usize = 1000;

type Print = Box<dyn FnOnce() + Send>;

/// The prints of other calls while a question is open. Between the question and the typed answer, they would hide the prompt.
#[derive(Default)]
pub(super) struct HeldOutput {
    /// `None` while no question is open.
    held: Mutex<Option<Vec<Print>>>,
}

impl HeldOutput {
    /// Holds the prints from now on.
    pub(super) fn hold(&self) {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.get_or_insert_default();
    }

    /// Returns the print if it is due: no question is open, or too many prints are held. Otherwise holds the print.
    pub(super) fn due(&self, print: impl FnOnce() + Send + 'static) -> Option<Print> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut *held {
            Some(held) if held.len() < PRINTS_MAX => {
                held.push(Box::new(print));
                None
            }
            _ => Some(Box::new(print)),
        }
    }

    /// Returns the held prints, in order.
    pub(super) fn release(&self) -> Vec<Print> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.take().unwrap_or_default()
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
        assert!(output.due(print(0)).is_some(), "no question is open");
        output.hold();
        for number in 0..PRINTS_MAX {
            assert!(output.due(print(number)).is_none());
        }
        assert!(output.due(print(PRINTS_MAX)).is_some(), "they are limited");
        output.release().into_iter().for_each(|print| print());
        assert!(printed.lock().unwrap().iter().copied().eq(0..PRINTS_MAX));
        assert!(output.due(print(0)).is_some() && output.release().is_empty());
    }
}
