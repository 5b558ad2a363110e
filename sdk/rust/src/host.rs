//! The functions of `toolwit:plugin`, and their substitutes in native tests.

#[cfg(target_family = "wasm")]
pub(crate) use wasm::*;

#[cfg(not(target_family = "wasm"))]
pub(crate) use native::*;

/// The bindings. The linker removes the imports of functions that a plugin does not call.
#[cfg(target_family = "wasm")]
#[allow(
    clippy::all,
    missing_docs,
    unreachable_pub,
    unsafe_code,
    unused_qualifications,
    reason = "generated code"
)]
pub mod bindings {
    wit_bindgen::generate!({ path: "../../wit/0.1.0", world: "imports" });
}

/// The bindings of the interfaces that version 0.1.2 added. A plugin that uses none of them runs on every host of version 0.1.
#[cfg(target_family = "wasm")]
#[allow(
    clippy::all,
    dead_code,
    missing_docs,
    unreachable_pub,
    unsafe_code,
    unused_qualifications,
    reason = "generated code"
)]
mod bindings_0_1_2 {
    wit_bindgen::generate!({ path: "../../wit/0.1.2", world: "imports" });
}

#[cfg(target_family = "wasm")]
mod wasm {
    use super::bindings::toolwit::plugin::{self as wit, types};
    use super::bindings_0_1_2::toolwit::plugin as wit_0_1_2;
    use crate::ask::{Answer, AskError};
    use crate::log::Level;
    use crate::result::{Artifact, BackgroundCall, ToolError, ToolResult};

    pub(crate) fn context(key: &str) -> Option<String> {
        wit::context::get(key)
    }

    pub(crate) fn progress(text: &str) {
        wit::output::progress(text);
    }

    pub(crate) fn communicate(text: &str) {
        wit::output::communicate(text);
    }

    pub(crate) fn attach(artifact: Artifact) -> Result<(), String> {
        wit::output::attach(&artifact.into())
    }

    pub(crate) fn blackboard_get(name: &str) -> Option<Artifact> {
        wit::blackboard::get(name).map(Into::into)
    }

    pub(crate) fn blackboard_put(name: Option<&str>, artifact: Artifact) -> Result<(), String> {
        wit::blackboard::put(name, &artifact.into())
    }

    pub(crate) fn blackboard_list() -> Vec<(Option<String>, Artifact)> {
        let entries = wit::blackboard::list().into_iter();
        entries.map(|entry| (entry.name, entry.artifact.into())).collect()
    }

    pub(crate) fn call_tool(tool: &str, arguments: &str) -> Result<ToolResult, ToolError> {
        match wit::tools::call(tool, arguments) {
            Ok(result) => Ok(result.into()),
            Err(error) => Err(error.into()),
        }
    }

    pub(crate) fn log(level: Level, text: &str) {
        use wit_0_1_2::log;
        let level = match level {
            Level::Debug => log::Level::Debug,
            Level::Info => log::Level::Info,
            Level::Notice => log::Level::Notice,
            Level::Warning => log::Level::Warning,
            Level::Error => log::Level::Error,
            Level::Critical => log::Level::Critical,
            Level::Alert => log::Level::Alert,
            Level::Emergency => log::Level::Emergency,
        };
        log::log(level, text);
    }

    pub(crate) fn ask(key: String, message: String, schema: String) -> Result<Answer<String>, AskError> {
        use wit_0_1_2::ask;
        match ask::ask(&ask::Form { key, message, schema }) {
            Ok(ask::Answer::Accepted(values)) => Ok(Answer::Accepted(values)),
            Ok(ask::Answer::Declined) => Ok(Answer::Declined),
            Ok(ask::Answer::Cancelled) => Ok(Answer::Cancelled),
            Err(ask::AskError::InvalidForm(reason)) => Err(AskError::InvalidForm(reason)),
            Err(ask::AskError::Denied(reason)) => Err(AskError::Denied(reason)),
            Err(ask::AskError::Unavailable(reason)) => Err(AskError::Unavailable(reason)),
            Err(ask::AskError::Limit(reason)) => Err(AskError::Limit(reason)),
        }
    }

    impl crate::convert::IntoWit for ToolResult {
        type Wit = types::ToolResult;

        fn into_wit(self) -> types::ToolResult {
            types::ToolResult {
                for_llm: self.text,
                for_user: self.for_user,
                silent: self.silent,
                is_error: self.is_error,
                artifacts: self.artifacts.into_iter().map(Into::into).collect(),
                background: self.background.map(|call| types::BackgroundCall {
                    tool: call.tool,
                    arguments: call.arguments,
                }),
            }
        }
    }

    impl From<types::ToolResult> for ToolResult {
        fn from(result: types::ToolResult) -> Self {
            Self {
                text: result.for_llm,
                for_user: result.for_user,
                silent: result.silent,
                is_error: result.is_error,
                artifacts: result.artifacts.into_iter().map(Into::into).collect(),
                background: result.background.map(|call| BackgroundCall {
                    tool: call.tool,
                    arguments: call.arguments,
                }),
            }
        }
    }

    impl From<types::Artifact> for Artifact {
        fn from(artifact: types::Artifact) -> Self {
            Self {
                kind: artifact.kind,
                json: artifact.value,
            }
        }
    }

    impl From<Artifact> for types::Artifact {
        fn from(artifact: Artifact) -> Self {
            Self {
                kind: artifact.kind,
                value: artifact.json,
            }
        }
    }

    impl From<types::ToolError> for ToolError {
        fn from(error: types::ToolError) -> Self {
            match error {
                types::ToolError::InvalidArguments(message) => Self::InvalidArguments(message),
                types::ToolError::Unavailable(message) => Self::Unavailable(message),
                types::ToolError::Denied(message) => Self::Denied(message),
                types::ToolError::Limit(message) => Self::Limit(message),
                types::ToolError::Failed(message) => Self::Failed(message),
            }
        }
    }
}

/// There is no host in a native test: output is discarded, the context and the blackboard are empty, and nobody can be asked.
#[cfg(not(target_family = "wasm"))]
mod native {
    use crate::ask::{Answer, AskError};
    use crate::log::Level;
    use crate::result::{Artifact, ToolError, ToolResult};

    pub(crate) fn context(_key: &str) -> Option<String> {
        None
    }

    pub(crate) fn progress(_text: &str) {}

    pub(crate) fn communicate(_text: &str) {}

    pub(crate) fn attach(_artifact: Artifact) -> Result<(), String> {
        Ok(())
    }

    pub(crate) fn blackboard_get(_name: &str) -> Option<Artifact> {
        None
    }

    pub(crate) fn blackboard_put(_name: Option<&str>, _artifact: Artifact) -> Result<(), String> {
        Ok(())
    }

    pub(crate) fn blackboard_list() -> Vec<(Option<String>, Artifact)> {
        Vec::new()
    }

    pub(crate) fn log(_level: Level, _text: &str) {}

    pub(crate) fn ask(_key: String, _message: String, _schema: String) -> Result<Answer<String>, AskError> {
        Err(AskError::Unavailable("there is no host in a native test".to_owned()))
    }

    pub(crate) fn call_tool(tool: &str, _arguments: &str) -> Result<ToolResult, ToolError> {
        Err(ToolError::Unavailable(format!(
            "`{tool}`: there is no host in a native test"
        )))
    }
}
