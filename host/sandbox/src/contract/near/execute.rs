//! The function `execute`, which calls the tool.

use wasmtime::Store;
use wasmtime::component::{ComponentType, Func, Lift, Lower};

use super::outcome::{GuestFailure, NearOutcome};
use crate::contract::ContractFunction;
use crate::link::host::host_state::HostState;
use serde_json::Value;
use toolwit_core::Arguments;

/// The argument of `execute`.
#[derive(ComponentType, Lower)]
#[component(record)]
struct Request {
    /// The arguments, as JSON.
    params: String,
    /// The context of a job of IronClaw. Always `None`, because this host has no jobs.
    context: Option<String>,
}

impl Request {
    fn new(arguments: &Arguments) -> Self {
        Self {
            params: Value::Object(arguments.clone()).to_string(),
            context: None,
        }
    }
}

/// The response of `execute` in the versions before 0.4.
#[derive(ComponentType, Lift)]
#[component(record)]
struct FieldsResponse {
    output: Option<String>,
    error: Option<String>,
}

/// The response of `execute` in version 0.4.
#[derive(ComponentType, Lift)]
#[component(variant)]
enum OutcomeResponse {
    #[component(name = "success")]
    Success(String),
    #[component(name = "failure")]
    Failure(GuestFailure),
}

/// The function `execute` of the versions before 0.4, whose response has the optional fields `output` and `error`.
pub(crate) struct ExecuteReturningFields {
    index: usize,
    request: Request,
}

impl ExecuteReturningFields {
    pub(crate) fn new(index: usize, arguments: &Arguments) -> Self {
        let request = Request::new(arguments);
        Self { index, request }
    }
}

impl ContractFunction for ExecuteReturningFields {
    type Output = NearOutcome;

    fn index(&self) -> usize {
        self.index
    }

    async fn run(self, store: &mut Store<HostState>, func: Func, _: u64) -> wasmtime::Result<NearOutcome> {
        let execute = func.typed::<(Request,), (FieldsResponse,)>(&*store)?;
        let (response,) = execute.call_async(store, (self.request,)).await?;
        // A response with an error is a failure, even if it has an output.
        Ok(match response.error {
            Some(message) => NearOutcome::Failure(GuestFailure::from_message(message)),
            None => NearOutcome::Success(response.output),
        })
    }
}

/// The function `execute` of version 0.4, whose response is a success or a failure.
pub(crate) struct ExecuteReturningOutcome {
    index: usize,
    request: Request,
}

impl ExecuteReturningOutcome {
    pub(crate) fn new(index: usize, arguments: &Arguments) -> Self {
        let request = Request::new(arguments);
        Self { index, request }
    }
}

impl ContractFunction for ExecuteReturningOutcome {
    type Output = NearOutcome;

    fn index(&self) -> usize {
        self.index
    }

    async fn run(self, store: &mut Store<HostState>, func: Func, _: u64) -> wasmtime::Result<NearOutcome> {
        let execute = func.typed::<(Request,), (OutcomeResponse,)>(&*store)?;
        let (response,) = execute.call_async(store, (self.request,)).await?;
        Ok(match response {
            OutcomeResponse::Success(output) => NearOutcome::Success(Some(output)),
            OutcomeResponse::Failure(failure) => NearOutcome::Failure(failure),
        })
    }
}
