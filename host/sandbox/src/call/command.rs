//! A command-line program as a tool: arguments and standard input in, output and exit status out.

use std::sync::Arc;

use serde_json::{Value, json};
use wasmtime::component::Val;

use super::answer::result_too_large;
use super::instance::{CallClock, Instance};
use super::tool::invalid;
use crate::grants::authority::Authority;
use crate::link::log::LogBuffer;
use crate::link::wasi::Stdio;
use crate::plugin::Plugin;
use crate::values::decode::DecodeError;
use toolwit_core::Error;
use toolwit_core::limits::CallLimits;
use toolwit_core::{Arguments, ToolContext, ToolResult, ToolStatus};

/// Runs `wasi:cli/run` in a fresh instance. Its own name is its first argument, as programs expect.
pub(crate) async fn run(
    plugin: &Arc<Plugin>,
    function: usize,
    arguments: Arguments,
    context: &ToolContext,
    authority: &Authority,
) -> Result<ToolResult, Error> {
    let (args, stdin) = decode(arguments, plugin.name()).map_err(invalid)?;
    let limits = plugin.limits_for(context)?;
    let linked = plugin.linked(context).await?;
    let place = plugin.place(context, &limits).await?;
    let _running = plugin.runtime().engines.ticker.run();
    let clock = CallClock::start(&limits, context);
    // One byte over the bound shows that there was more.
    let output = || {
        LogBuffer::new(
            usize::try_from(limits.result_bytes_max)
                .unwrap_or(usize::MAX)
                .saturating_add(1),
        )
    };
    let (stdout, stderr) = (output(), LogBuffer::new(limits.log_bytes_max));
    let stdio = Stdio::Program {
        args,
        stdin,
        stdout: stdout.clone(),
        stderr: stderr.clone(),
    };
    let mut instance = Instance::new(&linked, &clock, stdio, authority, &plugin.runtime().network).await?;
    let status = match instance.call(&linked, function, &[], &clock).await {
        Ok(Some(Val::Result(Err(_)))) => 1,
        Ok(_) => 0,
        // A program that ends itself is no failure of the host's.
        Err(error) => match instance.exit_status() {
            Some(status) => status,
            None => return Err(error),
        },
    };
    let mut usage = instance.usage(&clock);
    usage.queued = place.queued;
    let mut result = answer(status, &stdout, &stderr, &limits)?;
    result.usage = Some(usage);
    Ok(result)
}

fn decode(mut arguments: Arguments, program: &str) -> Result<(Vec<String>, Vec<u8>), DecodeError> {
    let mut args = vec![program.to_owned()];
    match arguments.remove("args") {
        None | Some(Value::Null) => {}
        Some(Value::Array(items)) => {
            for item in items {
                match item {
                    Value::String(arg) if !arg.contains('\0') => args.push(arg),
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
        None => Ok((args, stdin)),
        Some(extra) => Err(DecodeError::new(format!(
            "there is no property `{extra}`; known are `args`, `stdin`"
        ))),
    }
}

fn answer(status: i32, stdout: &LogBuffer, stderr: &LogBuffer, limits: &CallLimits) -> Result<ToolResult, Error> {
    if stdout.written() > limits.result_bytes_max {
        return Err(result_too_large(stdout.written(), limits));
    }
    let value = json!({
        "exit_status": status,
        "stdout": String::from_utf8_lossy(&stdout.take_bytes()),
        "stderr": stderr.take_text().as_deref().unwrap_or_default(),
    });
    let mut result = ToolResult::value(value);
    if status != 0 {
        result.status = ToolStatus::Error;
    }
    Ok(result)
}
