//! The measurement of the cost of injected tools.

use crate::event::InjectionCost;
use crate::journal::estimated_tokens;
use crate::model::TokenUsage;

/// A meter of the tokens that injected tools add to the requests of a run. It compares each request with the previous one.
#[derive(Default)]
pub(super) struct InjectionMeter {
    /// The estimated size of the tools that were injected since the last request, in tokens.
    injected_tokens: u64,
    /// The size of the last request; `None` if the next request does not extend it.
    last_request: Option<RequestSize>,
}

/// The size of a request, in tokens.
#[derive(Clone, Copy)]
struct RequestSize {
    /// The size that the provider reported.
    reported: u64,
    /// The estimated size of the messages.
    messages: u64,
}

impl InjectionMeter {
    /// Adds injected tools. `prompt_bytes` is the size of their definitions in the prompt.
    pub(super) fn add_injected(&mut self, prompt_bytes: u64) {
        let bytes = usize::try_from(prompt_bytes).unwrap_or(usize::MAX);
        self.injected_tokens = self.injected_tokens.saturating_add(estimated_tokens(bytes) as u64);
    }

    /// Forgets the last request, because the next request does not extend it.
    pub(super) fn restart(&mut self) {
        self.last_request = None;
    }

    /// Compares a request with the last request. Returns the cost of the tools that were injected between the two
    /// requests, or `None` if no tool was injected. `message_tokens` is the estimated size of the messages of the request.
    pub(super) fn measure(&mut self, message_tokens: usize, usage: &TokenUsage) -> Option<InjectionCost> {
        let size = RequestSize {
            reported: usage.input_tokens,
            messages: message_tokens as u64,
        };
        let last = self.last_request.replace(size);
        let estimated = std::mem::take(&mut self.injected_tokens);
        let measured = last.filter(|last| last.reported > 0 && size.reported > 0).map(|last| {
            // The request also grew by its new messages. Their size is estimated.
            let growth = size.reported.saturating_sub(last.reported);
            growth.saturating_sub(size.messages.saturating_sub(last.messages))
        });
        (estimated > 0).then_some(InjectionCost {
            estimated_tokens: estimated,
            measured_tokens: measured,
            cached_tokens: usage.cached_tokens,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cost_is_the_growth_of_the_request_without_its_messages() {
        let mut meter = InjectionMeter::default();
        assert_eq!(meter.measure(20, &TokenUsage::new(100, 0, 5)), None);
        meter.add_injected(160);
        let cost = meter.measure(30, &TokenUsage::new(155, 96, 5));
        let expected = InjectionCost {
            estimated_tokens: 40,
            measured_tokens: Some(45),
            cached_tokens: 96,
        };
        assert_eq!(cost, Some(expected));
        assert_eq!(
            meter.measure(40, &TokenUsage::new(170, 150, 5)),
            None,
            "nothing was injected"
        );
    }

    #[test]
    fn a_cost_is_measured_only_if_the_provider_reports_the_sizes_of_both_requests() {
        let mut meter = InjectionMeter::default();
        let measured_tokens = |meter: &mut InjectionMeter, input_tokens| {
            meter.add_injected(4);
            let cost = meter.measure(10, &TokenUsage::new(input_tokens, 0, 0));
            cost.and_then(|cost| cost.measured_tokens)
        };
        assert_eq!(measured_tokens(&mut meter, 50), None, "the first request");
        assert_eq!(measured_tokens(&mut meter, 40), Some(0));
        assert_eq!(measured_tokens(&mut meter, 0), None, "no usage was reported");
        assert_eq!(
            measured_tokens(&mut meter, 50),
            None,
            "no usage was reported for the last request"
        );
        meter.restart();
        assert_eq!(measured_tokens(&mut meter, 60), None, "the history was compacted");
    }
}
