//! The reasons why validation refuses a component.

use toolwit_core::{Error, ErrorKind, Phase};

/// The reason why bytes are refused as a component.
pub(super) enum Refusal {
    /// The bytes are not a valid component.
    Invalid {
        message: String,
        /// The position of the error in the bytes.
        offset: usize,
    },
    /// The bytes are not a valid component, but have names that toolchains give to async functions. The component was probably
    /// built for a draft of the component model, in which async functions had other names and types.
    Draft { message: String },
    /// The component is valid, but uses a proposal that no engine of the host supports. The message names the proposal.
    UnsupportedFeature(String),
    /// Compiling the component takes too much work.
    TooMuchWork(String),
}

impl From<wasmparser::Error> for Refusal {
    fn from(error: wasmparser::Error) -> Self {
        Self::Invalid {
            message: error.message().to_owned(),
            offset: error.offset(),
        }
    }
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Invalid { message, offset } => {
                let message = format!("it is not a valid component: {} at byte {offset}", one_line(&message));
                Self::new(ErrorKind::MalformedComponent, Phase::Load, message)
            }
            Refusal::Draft { message } => {
                let message = format!(
                    "it is not a valid component, and was probably built for a draft of async functions, before WASI 0.3.0: {}",
                    one_line(&message)
                );
                Self::new(ErrorKind::MalformedComponent, Phase::Load, message)
                    .with_suggestion("build it again with current tools")
            }
            Refusal::UnsupportedFeature(message) => {
                let message = format!(
                    "it uses a feature of WebAssembly that the host does not support: {}",
                    one_line(&message)
                );
                Self::new(ErrorKind::Unsupported, Phase::Load, message)
                    .with_suggestion("build it without this feature, which is not part of WASI 0.3")
            }
            Refusal::TooMuchWork(message) => Self::new(ErrorKind::Unsupported, Phase::Load, message)
                .with_suggestion("report it to the author of the plugin"),
        }
    }
}

/// Formats a message of the parser as one line of at most 300 characters.
fn one_line(message: &str) -> String {
    const CHARS_MAX: usize = 300;
    message
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .take(CHARS_MAX)
        .collect()
}
