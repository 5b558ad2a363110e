//! Calls of a component that was built for another host. The calls use the functions that the other host's contract defines.

use super::guarded_call::{GuestWork, RunningCall};
use super::instance::Instance;
use super::tool_result::require_within;
use crate::contract::{act, near};
use crate::values::dynamic_export::{ForeignContract, ListedTool, NearResponse};
use toolwit_core::Error;
use toolwit_core::text::snake_case;
use toolwit_core::{Arguments, ToolResult};

/// Lists the tools of a component that was built for another host, or calls one of its tools, in a fresh instance.
pub(crate) struct ContractCall<'a> {
    contract: ForeignContract,
    request: ContractRequest<'a>,
}

/// A request to a component that was built for another host.
pub(crate) enum ContractRequest<'a> {
    /// Lists the tools. The result is the list as JSON.
    List,
    /// Calls a tool. The arguments have been validated against its schema.
    Call { tool: &'a str, arguments: Arguments },
}

impl<'a> ContractCall<'a> {
    pub(crate) fn new(contract: ForeignContract, request: ContractRequest<'a>) -> Self {
        Self { contract, request }
    }
}

impl GuestWork for ContractCall<'_> {
    async fn run(&mut self, instance: &mut Instance, call: &RunningCall<'_>) -> Result<ToolResult, Error> {
        let mut guest = ForeignGuest { instance, call };
        let result = match &self.request {
            ContractRequest::List => match guest.list(self.contract).await? {
                // Serialization cannot fail, because the list contains only texts and enums.
                Ok(tools) => ToolResult::value(serde_json::to_value(tools).unwrap_or_default()),
                Err(reason) => ToolResult::error(reason),
            },
            ContractRequest::Call { tool, arguments } => guest.call(self.contract, tool, arguments).await?,
        };
        require_within(&result, call.clock.limits)?;
        Ok(result)
    }
}

/// A running component that was built for another host.
struct ForeignGuest<'a, 'b> {
    instance: &'a mut Instance,
    call: &'a RunningCall<'b>,
}

impl ForeignGuest<'_, '_> {
    /// Lists the tools. The inner error is the reason that the component returned instead of a list.
    async fn list(&mut self, contract: ForeignContract) -> Result<Result<Vec<ListedTool>, String>, Error> {
        let RunningCall { component, clock, .. } = self.call;
        match contract {
            ForeignContract::Act { list: index, .. } => {
                let list_tools = act::ListTools { index };
                Ok(act::listed_tools(
                    self.instance.call_contract(component, list_tools, clock).await?,
                ))
            }
            ForeignContract::Near {
                schema, description, ..
            } => {
                let schema_function = near::TextFunction { index: schema };
                let input_schema = self.instance.call_contract(component, schema_function, clock).await?;
                let description_function = near::TextFunction { index: description };
                let description = self
                    .instance
                    .call_contract(component, description_function, clock)
                    .await?;
                Ok(Ok(vec![ListedTool {
                    name: snake_case(self.call.plugin.name()),
                    description,
                    input_schema: near::with_object_type(input_schema),
                    output_schema: None,
                    effect: None,
                }]))
            }
        }
    }

    async fn call(
        &mut self,
        contract: ForeignContract,
        tool: &str,
        arguments: &Arguments,
    ) -> Result<ToolResult, Error> {
        let RunningCall { component, clock, .. } = self.call;
        match contract {
            ForeignContract::Act { call: index, .. } => {
                let call_tool = act::CallTool::new(index, tool, arguments);
                act::tool_result(self.instance.call_contract(component, call_tool, clock).await?)
            }
            ForeignContract::Near {
                execute,
                response: NearResponse::Fields,
                ..
            } => {
                let execute = near::ExecuteReturningFields::new(execute, arguments);
                near::tool_result(self.instance.call_contract(component, execute, clock).await?)
            }
            ForeignContract::Near {
                execute,
                response: NearResponse::Outcome,
                ..
            } => {
                let execute = near::ExecuteReturningOutcome::new(execute, arguments);
                near::tool_result(self.instance.call_contract(component, execute, clock).await?)
            }
        }
    }
}
