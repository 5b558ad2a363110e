//! The outcome of a call of `execute`, and its conversion to the result of a tool.

use serde_json::{Value, json};
use wasmtime::component::{ComponentType, Lift};

use crate::contract::printable_reason;
use toolwit_core::limits::ARTIFACT_WEIGHT_MAX;
use toolwit_core::text::{json_weight, parse_json};
use toolwit_core::{Error, ErrorKind, Phase, ToolResult};

/// The outcome of a call of `execute`.
pub(crate) enum NearOutcome {
    /// The output, as JSON or as a text; `None` if the tool returned no output.
    Success(Option<String>),
    Failure(GuestFailure),
}

/// The failure of a call.
#[derive(ComponentType, Lift)]
#[component(record)]
pub(crate) struct GuestFailure {
    kind: FailureKind,
    /// The error code of the service that the tool uses.
    code: Option<String>,
    message: Option<String>,
}

/// The cause of a failure.
#[derive(Clone, Copy, ComponentType, Lift)]
#[component(enum)]
#[repr(u8)]
#[allow(
    dead_code,
    reason = "wasmtime constructs the variants when it lifts the value of a guest"
)]
pub(crate) enum FailureKind {
    #[component(name = "auth-required")]
    AuthRequired,
    #[component(name = "input")]
    Input,
    #[component(name = "output-too-large")]
    OutputTooLarge,
    #[component(name = "executor")]
    Executor,
    #[component(name = "network-denied")]
    NetworkDenied,
    #[component(name = "client")]
    Client,
    #[component(name = "operation-failed")]
    OperationFailed,
}

impl FailureKind {
    fn wit_name(self) -> &'static str {
        match self {
            Self::AuthRequired => "auth-required",
            Self::Input => "input",
            Self::OutputTooLarge => "output-too-large",
            Self::Executor => "executor",
            Self::NetworkDenied => "network-denied",
            Self::Client => "client",
            Self::OperationFailed => "operation-failed",
        }
    }
}

impl GuestFailure {
    /// Creates a failure from an error message of the versions before 0.4, which have no kinds.
    pub(super) fn from_message(message: String) -> Self {
        Self {
            kind: FailureKind::OperationFailed,
            code: None,
            message: Some(message),
        }
    }
}

/// Converts the outcome of a call.
///
/// # Errors
/// [`ErrorKind::InvalidArguments`] for the kind `input`, and [`ErrorKind::Denied`] for `network-denied`. Every other
/// failure becomes a failed result.
pub(crate) fn tool_result(outcome: NearOutcome) -> Result<ToolResult, Error> {
    match outcome {
        NearOutcome::Success(None) => Ok(ToolResult::value(Value::Null)),
        NearOutcome::Success(Some(output)) => Ok(convert_output(output)),
        NearOutcome::Failure(failure) => convert_failure(failure),
    }
}

/// Converts an output to the value of its JSON, or to a text if it is not JSON, as IronClaw does. JSON that would take
/// more than [`ARTIFACT_WEIGHT_MAX`] bytes of memory also becomes a text.
fn convert_output(output: String) -> ToolResult {
    let parsed = (json_weight(output.as_bytes()) <= ARTIFACT_WEIGHT_MAX).then(|| parse_json(&output).ok());
    match parsed.flatten() {
        Some(value) => ToolResult::value(value),
        None => ToolResult::text(output),
    }
}

/// Converts a failure to an error if its kind has a corresponding [`ErrorKind`], and otherwise to a failed result.
fn convert_failure(failure: GuestFailure) -> Result<ToolResult, Error> {
    let code = failure.code.as_deref().map(printable_reason);
    let message = printable_reason(
        failure
            .message
            .as_deref()
            .or(failure.code.as_deref())
            .unwrap_or_default(),
    );
    let kind = match failure.kind {
        FailureKind::Input => Some(ErrorKind::InvalidArguments),
        FailureKind::NetworkDenied => Some(ErrorKind::Denied),
        _ => None,
    };
    if let Some(kind) = kind {
        return Err(Error::new(kind, Phase::Execute, message));
    }
    let mut result = match failure.kind {
        FailureKind::AuthRequired => ToolResult::error(format!("the tool needs credentials: {message}")),
        _ => ToolResult::error(message.clone()),
    };
    result.value = Some(json!({"kind": failure.kind.wit_name(), "code": code, "message": message}));
    Ok(result)
}
