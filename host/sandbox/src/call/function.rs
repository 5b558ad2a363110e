//! A call of a function in a fresh instance.

use wasmtime::component::Val;

use super::guarded_call::{GuardedCall, GuestWork, RunningCall};
use super::instance::Instance;
use super::tool_result::tool_result;
use crate::values::decode::{DecodeError, NoHandles, decode_arguments};
use crate::values::types::Function;
use toolwit_core::{Arguments, ToolResult};
use toolwit_core::{Error, ErrorKind, Phase};

/// Calls a function in a fresh instance, which is dropped after the call.
pub(crate) struct FunctionCall<'a> {
    function: &'a Function,
    /// The index of the function in the shape.
    function_index: usize,
    arguments: Arguments,
    /// The decoded arguments. Empty before the arguments are checked.
    params: Vec<Val>,
}

impl<'a> FunctionCall<'a> {
    pub(crate) fn new(function: &'a Function, function_index: usize, arguments: Arguments) -> Self {
        Self {
            function,
            function_index,
            arguments,
            params: Vec::new(),
        }
    }
}

impl GuestWork for FunctionCall<'_> {
    fn check(&mut self, _call: &GuardedCall<'_>) -> Result<(), Error> {
        self.params =
            decode_arguments(&self.function.params, &self.arguments, &mut NoHandles).map_err(invalid_arguments)?;
        Ok(())
    }

    async fn run(&mut self, instance: &mut Instance, call: &RunningCall<'_>) -> Result<ToolResult, Error> {
        let value = instance
            .call(call.component, self.function_index, &self.params, &call.clock)
            .await?;
        tool_result(self.function, value, &mut std::iter::empty(), call.clock.limits)
    }
}

/// Creates the error for arguments that do not match the parameters of a function.
pub(crate) fn invalid_arguments(error: DecodeError) -> Error {
    Error::new(ErrorKind::InvalidArguments, Phase::Validate, error.to_string())
}
