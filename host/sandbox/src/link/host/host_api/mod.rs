//! `toolwit:plugin`: the host interfaces in addition to WASI, defined in `wit/plugin.wit`.

mod ask;
mod conversation_access;
mod http;
mod log;
mod nested_call;
mod wit_types;

pub(crate) use conversation_access::ConversationAccess;
pub(super) use nested_call::call as call_tool;
pub(crate) use nested_call::{CallStack, FuelMeter};

use wasmtime::StoreContextMut;
use wasmtime::component::Linker;

use self::ask::{WitAnswer, WitAskError, WitForm};
use self::http::{WitHttpError, WitRequest, WitResponse};
use self::log::WitLogLevel;
use self::wit_types::{WitArtifact, WitBlackboardEntry, WitToolError, WitToolResult};
use super::host_state::HostState;
use crate::inspect::interfaces::{PLUGIN_PACKAGE, PLUGIN_VERSION};

type Context<'a> = StoreContextMut<'a, HostState>;

/// Links all interfaces of `toolwit:plugin`.
pub(crate) fn add_to_linker(linker: &mut Linker<HostState>) -> wasmtime::Result<()> {
    let name = |interface: &str| format!("{PLUGIN_PACKAGE}{interface}@{PLUGIN_VERSION}");

    let mut context = linker.instance(&name("context"))?;
    context.func_wrap("get", |mut store: Context<'_>, (key,): (String,)| {
        Ok((store.data_mut().conversation()?.context_value(&key),))
    })?;

    let mut output = linker.instance(&name("output"))?;
    output.func_wrap("progress", |mut store: Context<'_>, (text,): (String,)| {
        store.data_mut().conversation()?.report_progress(&text);
        Ok(())
    })?;
    output.func_wrap("communicate", |mut store: Context<'_>, (text,): (String,)| {
        store.data_mut().conversation()?.send_message(&text);
        Ok(())
    })?;
    output.func_wrap("attach", |mut store: Context<'_>, (artifact,): (WitArtifact,)| {
        Ok((store.data_mut().conversation()?.attach(artifact.parse()),))
    })?;

    let mut blackboard = linker.instance(&name("blackboard"))?;
    blackboard.func_wrap("get", |mut store: Context<'_>, (name,): (String,)| {
        let artifact = store.data_mut().conversation()?.blackboard_get(&name);
        Ok((artifact.as_ref().map(WitArtifact::from),))
    })?;
    blackboard.func_wrap(
        "put",
        |mut store: Context<'_>, (name, artifact): (Option<String>, WitArtifact)| {
            // `blackboard_put` parses the artifact only after its access check.
            let parse_artifact = || artifact.parse();
            Ok((store.data_mut().conversation()?.blackboard_put(name, parse_artifact),))
        },
    )?;
    blackboard.func_wrap("list", |mut store: Context<'_>, (): ()| {
        let entries = store.data_mut().conversation()?.blackboard_list();
        Ok((entries.iter().map(WitBlackboardEntry::from).collect::<Vec<_>>(),))
    })?;

    let mut tools = linker.instance(&name("tools"))?;
    tools.func_wrap_async("call", |mut store: Context<'_>, (tool, arguments): (String, String)| {
        Box::new(async move {
            let outcome = nested_call::call(&mut store, &tool, &arguments).await?;
            let outcome = outcome.map(WitToolResult::from).map_err(WitToolError::from);
            Ok((outcome,))
        })
    })?;

    let mut log = linker.instance(&name("log"))?;
    log.func_wrap("log", |mut store: Context<'_>, (level, text): (WitLogLevel, String)| {
        log::write(&mut store, level, &text)
    })?;

    let mut ask = linker.instance(&name("ask"))?;
    ask.func_wrap_async("ask", |mut store: Context<'_>, (form,): (WitForm,)| {
        Box::new(async move {
            let answer: Result<WitAnswer, WitAskError> = ask::ask(&mut store, form).await?;
            Ok((answer,))
        })
    })?;

    let mut http = linker.instance(&name("http"))?;
    http.func_wrap_async("send", |mut store: Context<'_>, (request,): (WitRequest,)| {
        Box::new(async move {
            let response: Result<WitResponse, WitHttpError> = http::send(&mut store, request).await;
            Ok((response,))
        })
    })?;
    Ok(())
}
