//! Calls of command-line programs. The arguments of the tool become the program's arguments and standard input. The program's
//! output and exit status become the result.

use serde_json::{Value, json};
use wasmtime::component::Val;

use super::function::invalid_arguments;
use super::guarded_call::{GuardedCall, GuestWork, RunningCall};
use super::instance::Instance;
use super::tool_result::{require_within, result_too_large};
use crate::link::host::log_buffer::LogBuffer;
use crate::link::host::wasi_context::Stdio;
use crate::values::decode::DecodeError;
use toolwit_core::Error;
use toolwit_core::{Arguments, ToolResult, ToolStatus};

/// A call of `wasi:cli/run` in a fresh instance.
pub(crate) struct CommandCall {
    /// The index of the function in the shape.
    function_index: usize,
    /// The arguments of the tool.
    arguments: Arguments,
    /// The arguments of the program, with its name first. Empty before the tool's arguments are checked.
    argv: Vec<String>,
    /// The standard input of the program. Empty before the tool's arguments are checked.
    stdin: Vec<u8>,
    /// The output streams of the program. `None` until the instance is created.
    output: Option<CommandOutput>,
}

/// The output streams of a program.
struct CommandOutput {
    stdout: LogBuffer,
    stderr: LogBuffer,
}

impl CommandCall {
    pub(crate) fn new(function_index: usize, arguments: Arguments) -> Self {
        Self {
            function_index,
            arguments,
            argv: Vec::new(),
            stdin: Vec::new(),
            output: None,
        }
    }
}

impl GuestWork for CommandCall {
    fn check(&mut self, call: &GuardedCall<'_>) -> Result<(), Error> {
        let arguments = std::mem::take(&mut self.arguments);
        // By convention, the first argument of a program is its name.
        (self.argv, self.stdin) = decode_argv_and_stdin(arguments, call.plugin.name()).map_err(invalid_arguments)?;
        Ok(())
    }

    async fn instance(&mut self, call: &RunningCall<'_>) -> Result<Instance, Error> {
        let stdout_bytes_max = usize::try_from(call.clock.limits.result_bytes_max).unwrap_or(usize::MAX);
        let output = self.output.insert(CommandOutput {
            stdout: LogBuffer::new(stdout_bytes_max),
            stderr: LogBuffer::new(call.clock.limits.log_bytes_max),
        });
        let stdio = Stdio::Program {
            args: std::mem::take(&mut self.argv),
            stdin: std::mem::take(&mut self.stdin),
            stdout: output.stdout.clone(),
            stderr: output.stderr.clone(),
        };
        call.fresh_instance(stdio).await
    }

    async fn run(&mut self, instance: &mut Instance, call: &RunningCall<'_>) -> Result<ToolResult, Error> {
        let exit_status = match instance
            .call(call.component, self.function_index, &[], &call.clock)
            .await
        {
            Ok(Some(Val::Result(Err(_)))) => 1,
            Ok(_) => 0,
            // wasmtime reports a call of `exit` as an error, but a program may end by calling `exit`.
            Err(error) => match (instance.exit_status(), &self.output) {
                (Some(exit_status), _) => exit_status,
                (None, Some(output)) => return Err(error.with_log(output.stderr.take_text(&call.authority.redactor))),
                (None, None) => return Err(error),
            },
        };
        match self.output.take() {
            Some(output) => output.into_result(exit_status, call),
            // Not expected, because `instance` has created the output.
            None => Ok(ToolResult::value(Value::Null)),
        }
    }
}

impl CommandOutput {
    fn into_result(self, exit_status: i32, call: &RunningCall<'_>) -> Result<ToolResult, Error> {
        let limits = call.clock.limits;
        let stderr = self.stderr.take_text(&call.authority.redactor);
        // `written_bytes` includes the bytes that the buffer dropped because they exceeded the limit.
        if self.stdout.written_bytes() > limits.result_bytes_max {
            return Err(result_too_large(self.stdout.written_bytes(), limits).with_log(stderr));
        }
        let stdout = self.stdout.take_bytes();
        let stdout = String::from_utf8_lossy(&stdout);
        let failure_text =
            (exit_status != 0).then(|| failure_text(exit_status, &stdout, stderr.as_deref().unwrap_or_default()));
        let value = json!({
            "exit_status": exit_status,
            "stdout": stdout,
            "stderr": stderr.as_deref().unwrap_or_default(),
        });
        let mut result = ToolResult::value(value);
        if let Some(text) = failure_text {
            result.for_llm = text;
            result.status = ToolStatus::Error;
        }
        // The result is checked again, because its JSON also contains the standard error and escape sequences.
        require_within(&result, limits).map_err(|error| error.with_log(stderr))?;
        Ok(result)
    }
}

/// Returns the output of a failed program as a text.
fn failure_text(exit_status: i32, stdout: &str, stderr: &str) -> String {
    let mut text = format!("the program exited with status {exit_status}");
    for (name, output) in [("standard error", stderr), ("standard output", stdout)] {
        let output = output.trim_end();
        if !output.is_empty() {
            text.push_str(&format!("\n{name}:\n{output}"));
        }
    }
    text
}

/// Decodes the arguments of a tool to the command-line arguments and the standard input of a program.
fn decode_argv_and_stdin(mut arguments: Arguments, program: &str) -> Result<(Vec<String>, Vec<u8>), DecodeError> {
    let mut argv = vec![program.to_owned()];
    match arguments.remove("args") {
        None | Some(Value::Null) => {}
        Some(Value::Array(items)) => {
            for item in items {
                match item {
                    Value::String(arg) if !arg.contains('\0') => argv.push(arg),
                    _ => return Err(DecodeError::new("`args` must be an array of strings without NUL")),
                }
            }
        }
        Some(_) => return Err(DecodeError::new("`args` must be an array of strings")),
    }
    let stdin = match arguments.remove("stdin") {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::String(text)) => text.into_bytes(),
        Some(_) => return Err(DecodeError::new("`stdin` must be a string")),
    };
    match arguments.keys().next() {
        None => Ok((argv, stdin)),
        Some(unknown) => Err(DecodeError::new(format!(
            "there is no property `{unknown}`; known are `args`, `stdin`"
        ))),
    }
}
