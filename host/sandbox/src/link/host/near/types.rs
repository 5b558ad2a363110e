//! The types of `near:agent/host`.

use std::fmt;

use wasmtime::component::{ComponentType, Lift, Lower};

/// The level of a log message.
#[derive(Clone, Copy, ComponentType, Lift)]
#[component(enum)]
#[repr(u8)]
#[allow(
    dead_code,
    reason = "the host only receives levels: wasmtime creates the variants from numbers of the guest"
)]
pub(super) enum LogLevel {
    #[component(name = "trace")]
    Trace,
    #[component(name = "debug")]
    Debug,
    #[component(name = "info")]
    Info,
    #[component(name = "warn")]
    Warn,
    #[component(name = "error")]
    Error,
}

impl fmt::Display for LogLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Trace => "trace",
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Warn => "warn",
            Self::Error => "error",
        })
    }
}

/// The parameters of `http-request`: method, URL, headers as JSON, body, and time limit in milliseconds.
pub(super) type RequestParameters = (String, String, String, Option<Vec<u8>>, Option<u32>);

/// The response of `http-request`.
#[derive(ComponentType, Lower)]
#[component(record)]
pub(super) struct HttpResponse {
    pub(super) status: u16,
    /// The headers as a JSON object.
    #[component(name = "headers-json")]
    pub(super) headers: String,
    pub(super) body: Vec<u8>,
}

/// The cause of a failed request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ComponentType, Lower)]
#[component(enum)]
#[repr(u8)]
pub(super) enum HttpErrorKind {
    #[component(name = "auth-required")]
    #[expect(
        dead_code,
        reason = "the host never returns this kind: it never asks for credentials"
    )]
    AuthRequired,
    #[component(name = "input")]
    Input,
    #[component(name = "output-too-large")]
    OutputTooLarge,
    #[component(name = "executor")]
    #[expect(dead_code, reason = "the interface declares this kind, which the host never returns")]
    Executor,
    #[component(name = "network-denied")]
    NetworkDenied,
    #[component(name = "client")]
    Client,
    #[component(name = "operation-failed")]
    #[expect(dead_code, reason = "the interface declares this kind, which the host never returns")]
    OperationFailed,
}

/// The failure of `http-request`.
#[derive(ComponentType, Lower)]
#[component(record)]
pub(super) struct HttpFailure {
    kind: HttpErrorKind,
    code: Option<String>,
    message: Option<String>,
    #[component(name = "request-sent")]
    request_sent: bool,
}

impl HttpFailure {
    /// Creates the failure of a request that was not sent.
    pub(super) fn unsent(kind: HttpErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            code: None,
            message: Some(message.into()),
            request_sent: false,
        }
    }

    /// Creates the failure of a request that may have been sent.
    pub(super) fn sent(kind: HttpErrorKind, message: impl Into<String>) -> Self {
        Self {
            request_sent: true,
            ..Self::unsent(kind, message)
        }
    }

    /// Returns the message, for the versions of the interface in which the failure is a string.
    pub(super) fn into_text(self) -> String {
        self.message.unwrap_or_default()
    }
}
