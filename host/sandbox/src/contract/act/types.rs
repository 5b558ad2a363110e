//! The types of `act:core` and `act:tools`.

use wasmtime::component::{ComponentType, Lift, StreamReader};

/// Values by name, encoded as CBOR.
pub(super) type Metadata = Vec<(String, Vec<u8>)>;

/// A text, or its translations.
#[derive(ComponentType, Lift)]
#[component(variant)]
pub(crate) enum LocalizedString {
    #[component(name = "plain")]
    Plain(String),
    /// Texts with their language tags.
    #[component(name = "localized")]
    Localized(Vec<(String, String)>),
}

impl LocalizedString {
    /// Returns the text in English if there is one, or else the first text. Returns an empty text if there are no
    /// texts.
    pub(super) fn into_text(self) -> String {
        match self {
            Self::Plain(text) => text,
            Self::Localized(mut texts) => {
                let is_english = |(tag, _): &(String, String)| tag == "en" || tag.starts_with("en-");
                match texts.iter().position(is_english) {
                    Some(index) => texts.swap_remove(index).1,
                    None => texts.into_iter().next().map(|(_, text)| text).unwrap_or_default(),
                }
            }
        }
    }
}

/// An error that a component returns.
#[derive(ComponentType, Lift)]
#[component(record)]
pub(crate) struct ActError {
    pub(super) kind: String,
    pub(super) message: LocalizedString,
    pub(super) metadata: Metadata,
}

/// The response of `list-tools`.
#[derive(ComponentType, Lift)]
#[component(record)]
pub(crate) struct ListToolsResponse {
    #[expect(dead_code, reason = "the contract defines no key that a host needs")]
    metadata: Metadata,
    pub(super) tools: Vec<ToolDefinition>,
}

/// A tool of a component.
#[derive(ComponentType, Lift)]
#[component(record)]
pub(crate) struct ToolDefinition {
    pub(super) name: String,
    pub(super) description: LocalizedString,
    #[component(name = "parameters-schema")]
    pub(super) parameters_schema: String,
    pub(super) metadata: Metadata,
}

/// A piece of the content of a result.
#[derive(ComponentType, Lift)]
#[component(record)]
pub(crate) struct ContentPart {
    pub(super) data: Vec<u8>,
    #[component(name = "mime-type")]
    pub(super) mime_type: Option<String>,
    pub(super) metadata: Metadata,
}

/// A piece of the content of a result, or the error that ends the result.
#[derive(ComponentType, Lift)]
#[component(variant)]
pub(crate) enum ToolEvent {
    #[component(name = "content")]
    Content(ContentPart),
    #[component(name = "error")]
    Error(ActError),
}

/// The result of `call-tool`: a list of all events, or a stream of them.
#[derive(ComponentType, Lift)]
#[component(variant)]
pub(super) enum ToolResult {
    #[component(name = "immediate")]
    Immediate(Vec<ToolEvent>),
    #[component(name = "streaming")]
    Streaming(StreamReader<ToolEvent>),
}
