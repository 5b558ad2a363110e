//! Calls of a response, ready to run and to store in the history.

use crate::model::FinishReason;
use crate::state::History;
use crate::toolbox::{CALL_TOOL, gateway_target};
use toolwit_core::{Arguments, Error, ErrorKind, NamedTool, Phase, ToolCall, ToolName, parse_arguments};

/// One call of a response, with its parsed arguments.
pub(super) struct PreparedCall {
    /// The call as stored in the history: with a unique id, a name that providers accept, and arguments that are a JSON
    /// object.
    pub(super) history_call: ToolCall,
    /// The name of the tool to call, as the model wrote it.
    pub(super) requested_name: String,
    /// The arguments for the tool, or the error if they are invalid or incomplete, so that the call does not run.
    pub(super) arguments: Result<Arguments, Error>,
    /// Whether the JSON of the arguments was repaired.
    pub(super) is_repaired: bool,
}

/// Prepares the calls of a response.
///
/// Invalid or incomplete arguments are stored as `{}`, because some servers parse the history that they receive. Such a
/// call does not run.
pub(super) fn prepare_calls(calls: Vec<ToolCall>, finish: &FinishReason, history: &mut History) -> Vec<PreparedCall> {
    calls
        .into_iter()
        .map(|call| {
            let parsed = read_arguments(&call.arguments, finish);
            let arguments = match &parsed {
                Ok((_, false)) => call.arguments,
                Ok((arguments, true)) => serde_json::to_string(arguments).unwrap_or_else(|_| "{}".to_owned()),
                Err(_) => "{}".to_owned(),
            };
            PreparedCall {
                history_call: ToolCall {
                    id: history.claim_id(&call.id),
                    name: name_in_history(&call.name),
                    arguments,
                },
                requested_name: call.name,
                is_repaired: matches!(parsed, Ok((_, true))),
                arguments: parsed.map(|(arguments, _)| arguments),
            }
        })
        .collect()
}

impl PreparedCall {
    /// Returns the serial group to which this call of `tool` belongs, or `None` if it can run at the same time as any
    /// other.
    pub(super) fn serial_group(&self, tool: &NamedTool) -> Option<u64> {
        match &self.arguments {
            Ok(arguments) => tool.tool.serial_group_for(arguments),
            Err(_) => tool.tool.serial_group(),
        }
    }

    /// Converts a call of the gateway tool to a call of its target, and returns other calls unchanged. The history
    /// contains the call of the gateway tool.
    pub(super) fn through_gateway(mut self) -> Self {
        if self.requested_name != CALL_TOOL {
            return self;
        }
        let Ok(arguments) = &self.arguments else {
            return self;
        };
        match gateway_target(arguments) {
            Ok((name, arguments)) => {
                self.requested_name = name;
                self.arguments = Ok(arguments);
            }
            Err(error) => self.arguments = Err(Error::from(error)),
        }
        self
    }
}

/// Parses arguments and returns whether they were repaired. In a response that did not end as intended, repaired
/// arguments count as incomplete.
fn read_arguments(text: &str, finish: &FinishReason) -> Result<(Arguments, bool), Error> {
    let parsed = parse_arguments(text);
    if !finish.is_complete() && !matches!(&parsed, Ok(parsed) if !parsed.is_repaired) {
        let message = "the answer was cut before this call was complete; it was not executed";
        return Err(Error::new(ErrorKind::InvalidArguments, Phase::Validate, message)
            .with_suggestion("call it again, with shorter arguments"));
    }
    parsed
        .map(|parsed| (parsed.arguments, parsed.is_repaired))
        .map_err(Error::from)
}

/// Returns a name that providers accept in the history.
fn name_in_history(name: &str) -> String {
    let valid = ToolName::parse(name).or_else(|| ToolName::sanitised(name));
    valid.unwrap_or_else(|| ToolName::hashed(name, name)).to_string()
}
