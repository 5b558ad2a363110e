//! The limits and the budget of the HTTP requests of one call.

use std::sync::Arc;
use std::time::Duration;

use crate::link::limits::nested_budget::{BudgetExceeded, NestedBudget};
use toolwit_core::limits::{
    BETWEEN_BYTES_WALL_MAX, CallLimits, FIRST_BYTE_WALL_MAX, HEADER_BYTES_MAX, REQUEST_WALL_MAX,
};

/// The limits of the HTTP requests of one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HttpLimits {
    pub(crate) requests_max: u32,
    /// The maximum total size of all requests and responses, headers and bodies included, in bytes.
    pub(crate) bytes_max: u64,
    /// The time limit of one request, from the name lookup to the last byte of the response.
    pub(crate) request_wall_max: Duration,
    /// The time limit from sending the request until the head of the response arrives.
    pub(crate) first_byte_wall_max: Duration,
    /// The time limit between two reads of the response body.
    pub(crate) between_bytes_wall_max: Duration,
    /// The maximum size of the head of a request and of a response, in bytes.
    pub(crate) header_bytes_max: usize,
}

impl HttpLimits {
    pub(crate) fn of(limits: &CallLimits) -> Self {
        Self {
            requests_max: limits.http_requests_max,
            bytes_max: limits.http_bytes_max,
            request_wall_max: REQUEST_WALL_MAX,
            first_byte_wall_max: FIRST_BYTE_WALL_MAX,
            between_bytes_wall_max: BETWEEN_BYTES_WALL_MAX,
            header_bytes_max: HEADER_BYTES_MAX,
        }
    }
}

/// The remaining requests and bytes of a call, shared with its nested calls.
#[derive(Debug)]
pub(crate) struct HttpBudget {
    pub(crate) limits: HttpLimits,
    request_budget: Arc<NestedBudget>,
    byte_budget: Arc<NestedBudget>,
}

impl HttpBudget {
    /// Creates the budget of a call. The call also draws on `outer`, the budget of the surrounding call.
    pub(crate) fn new(limits: HttpLimits, outer: Option<&Self>) -> Self {
        let create_budget =
            |max: u64, outer: Option<&Arc<NestedBudget>>| Arc::new(NestedBudget::new(max, outer.cloned()));
        Self {
            limits,
            request_budget: create_budget(limits.requests_max.into(), outer.map(|outer| &outer.request_budget)),
            byte_budget: create_budget(limits.bytes_max, outer.map(|outer| &outer.byte_budget)),
        }
    }

    /// Takes one request from the budget.
    pub(crate) fn take_request(&self) -> Result<(), BudgetExceeded> {
        self.request_budget.take(1)
    }

    /// Takes transferred bytes from the budget.
    pub(crate) fn take_bytes(&self, bytes: usize) -> Result<(), BudgetExceeded> {
        self.byte_budget.take(bytes as u64)
    }
}
