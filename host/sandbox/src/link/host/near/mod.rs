//! `near:agent/host`: the interface that components import if they were built for the host IronClaw. Each function does the
//! same as a function of WASI or of `toolwit:plugin`, under the same grants and limits, and denials are recorded in the same way.

mod http_request;
mod tool_invoke;
mod types;

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use wasmtime::StoreContextMut;
use wasmtime::component::Linker;

use self::types::{HttpFailure, HttpResponse, LogLevel, RequestParameters};
use super::files::read_text_file;
use super::host_state::HostState;
use super::wasi::frozen_second;
use crate::grants::AccessRequest;
use crate::inspect::interfaces::{NEAR_HOST, NEAR_HOST_VERSIONS};

/// The path of the workspace directory, as the guest sees it.
const WORKSPACE: &str = "/workspace";

type Context<'a> = StoreContextMut<'a, HostState>;

/// Links the interface in all versions of [`NEAR_HOST_VERSIONS`].
pub(crate) fn add_to_linker(linker: &mut Linker<HostState>) -> wasmtime::Result<()> {
    for version in NEAR_HOST_VERSIONS {
        let mut host = linker.instance(&format!("{NEAR_HOST}@{version}"))?;
        host.func_wrap("log", |mut store: Context<'_>, (level, message): (LogLevel, String)| {
            let state = store.data_mut();
            state.meter.count_host_call();
            state.log.push(format!("{level}: {message}\n").as_bytes());
            Ok(())
        })?;
        host.func_wrap("now-millis", |mut store: Context<'_>, (): ()| {
            let rights = &store.data_mut().authority()?.rights;
            Ok((now_millis(frozen_second(&rights.effective)),))
        })?;
        host.func_wrap_async("workspace-read", |mut store: Context<'_>, (path,): (String,)| {
            Box::new(async move { Ok((workspace_read(&mut store, &path).await?,)) })
        })?;
        host.func_wrap("secret-exists", |mut store: Context<'_>, (name,): (String,)| {
            let request = AccessRequest::Secret(&name);
            Ok((store.data_mut().authority()?.require_access(&request).is_ok(),))
        })?;
        host.func_wrap_async(
            "tool-invoke",
            |mut store: Context<'_>, (alias, arguments): (String, String)| {
                Box::new(async move { Ok((tool_invoke::invoke(&mut store, &alias, &arguments).await?,)) })
            },
        )?;
        if has_failure_record(version) {
            host.func_wrap_async(
                "http-request",
                |mut store: Context<'_>, parameters: RequestParameters| {
                    Box::new(async move {
                        let response: Result<HttpResponse, HttpFailure> =
                            http_request::send(&mut store, parameters).await?;
                        Ok((response,))
                    })
                },
            )?;
        } else {
            host.func_wrap_async(
                "http-request",
                |mut store: Context<'_>, parameters: RequestParameters| {
                    Box::new(async move {
                        let response = http_request::send(&mut store, parameters).await?;
                        let response: Result<HttpResponse, String> = response.map_err(HttpFailure::into_text);
                        Ok((response,))
                    })
                },
            )?;
        }
    }
    Ok(())
}

/// Returns whether a version of the interface declares the failure of `http-request` as a record. Versions before 0.4 declare
/// it as a string.
fn has_failure_record(version: &str) -> bool {
    version.starts_with("0.4.")
}

/// Returns the milliseconds since 1970: of the frozen clock if its second is given, otherwise of the real time.
fn now_millis(frozen_second: Option<u64>) -> u64 {
    let now = match frozen_second {
        Some(second) => Duration::from_secs(second),
        None => SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default(),
    };
    u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
}

/// Reads a text file in the workspace, the granted directory [`WORKSPACE`]. Returns `None` for an absolute path, for a path
/// with `..`, and in the cases of [`read_text_file`].
async fn workspace_read(store: &mut Context<'_>, path: &str) -> wasmtime::Result<Option<String>> {
    let bytes_max = store.data().meter.host_call_bytes_max();
    let is_relative = !path.starts_with('/') && !path.split('/').any(|segment| segment == "..");
    // This counts the call into the host, so it comes before a path is refused.
    let mut files = store.data_mut().files();
    if !is_relative {
        return Ok(None);
    }
    read_text_file(&mut files, &format!("{WORKSPACE}/{path}"), bytes_max).await
}
