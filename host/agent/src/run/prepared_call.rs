//! Preparation of the calls of a response: their arguments are parsed, and the calls are converted for the history.

use crate::model::FinishReason;
use crate::state::History;
use crate::toolbox::{CALL_TOOL, gateway_target};
use toolwit_core::{
    Arguments, Error, ErrorKind, NamedTool, ParsedArguments, Phase, ToolCall, ToolName, parse_arguments,
};

/// A call of a response that is prepared to run.
pub(super) struct PreparedCall {
    /// The call for the history. It has a unique id, a name that providers accept, and a JSON object as arguments.
    pub(super) history_call: ToolCall,
    /// The name with which the tool is looked up.
    pub(super) requested_name: String,
    /// The arguments for the tool. If they are invalid or may be incomplete, the error with which the call is refused.
    pub(super) arguments: Result<Arguments, Error>,
    /// Whether the JSON of the arguments was repaired.
    pub(super) is_repaired: bool,
}

/// Prepares the calls of a response.
///
/// A call does not run if its arguments are invalid or may be incomplete. The history then contains `{}` as its
/// arguments, because some model servers parse the arguments in the history.
pub(super) fn prepare_calls(calls: Vec<ToolCall>, finish: &FinishReason, history: &mut History) -> Vec<PreparedCall> {
    calls
        .into_iter()
        .map(|call| {
            let parsed = parse_complete_arguments(&call.arguments, finish);
            let arguments = match &parsed {
                Ok(parsed) if !parsed.is_repaired => call.arguments,
                Ok(parsed) => serde_json::to_string(&parsed.arguments).unwrap_or_else(|_| "{}".to_owned()),
                Err(_) => "{}".to_owned(),
            };
            PreparedCall {
                history_call: ToolCall {
                    id: history.claim_id(&call.id),
                    name: history_name(&call.name),
                    arguments,
                },
                requested_name: call.name,
                is_repaired: parsed.as_ref().is_ok_and(|parsed| parsed.is_repaired),
                arguments: parsed.map(|parsed| parsed.arguments),
            }
        })
        .collect()
}

impl PreparedCall {
    /// Returns the serial group of this call of `tool`. Calls of one group run one after the other. Returns `None` if the
    /// call can run at the same time as any other call.
    pub(super) fn serial_group(&self, tool: &NamedTool) -> Option<u64> {
        match &self.arguments {
            Ok(arguments) => tool.tool.serial_group_for(arguments),
            Err(_) => tool.tool.serial_group(),
        }
    }

    /// Replaces the name and the arguments of a call of the gateway tool [`CALL_TOOL`] by those of its target. The call in the
    /// history remains a call of the gateway tool. Other calls are not changed.
    pub(super) fn resolve_gateway(mut self) -> Self {
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

/// Parses the arguments of a call. If the response ended before its calls were complete, only arguments that need no
/// repair are accepted, because the others may be incomplete.
fn parse_complete_arguments(text: &str, finish: &FinishReason) -> Result<ParsedArguments, Error> {
    let parsed = parse_arguments(text);
    let is_valid = parsed.as_ref().is_ok_and(|parsed| !parsed.is_repaired);
    if !finish.is_complete() && !is_valid {
        let message = "the response was cut before this call was complete; the call was not executed";
        return Err(Error::new(ErrorKind::InvalidArguments, Phase::Validate, message)
            .with_suggestion("call the tool again with shorter arguments"));
    }
    parsed.map_err(Error::from)
}

/// Returns the requested name if providers accept it, otherwise a sanitised or hashed form of it.
fn history_name(name: &str) -> String {
    let valid = ToolName::parse(name).or_else(|| ToolName::sanitised(name));
    valid.unwrap_or_else(|| ToolName::hashed(name, name)).to_string()
}
