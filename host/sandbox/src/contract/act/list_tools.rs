//! The function `list-tools`, and the conversion of the tools in its response.

use wasmtime::Store;
use wasmtime::component::Func;

use super::types::{ActError, ListToolsResponse, Metadata, ToolDefinition};
use crate::contract::{ContractFunction, cbor, printable_reason};
use crate::link::host::host_state::HostState;
use crate::values::dynamic_export::ListedTool;
use serde_json::Value;
use toolwit_core::EffectClass;

/// The metadata key that marks a tool that changes nothing.
const READ_ONLY: &str = "std:read-only";
/// The metadata key that marks a tool that has no further effect if it is called again with the same arguments.
const IDEMPOTENT: &str = "std:idempotent";
/// The metadata key that marks a tool that can delete or overwrite data.
const DESTRUCTIVE: &str = "std:destructive";
/// The metadata keys of texts about when to use a tool, and when not to use it.
const HINT_KEYS: [&str; 2] = ["std:usage-hints", "std:anti-usage-hints"];

/// The function `list-tools`.
pub(crate) struct ListTools {
    pub(crate) index: usize,
}

impl ContractFunction for ListTools {
    type Output = Result<ListToolsResponse, ActError>;

    fn index(&self) -> usize {
        self.index
    }

    async fn run(self, store: &mut Store<HostState>, func: Func, _: u64) -> wasmtime::Result<Self::Output> {
        let list_tools = func.typed::<(Metadata,), (Self::Output,)>(&*store)?;
        let (response,) = list_tools.call_async(store, (Metadata::new(),)).await?;
        Ok(response)
    }
}

/// Returns the listed tools, or the reason that the component returned instead of a list.
pub(crate) fn listed_tools(response: Result<ListToolsResponse, ActError>) -> Result<Vec<ListedTool>, String> {
    match response {
        Ok(response) => Ok(response.tools.into_iter().map(listed_tool).collect()),
        Err(error) => Err(printable_reason(&error.message.into_text())),
    }
}

fn listed_tool(definition: ToolDefinition) -> ListedTool {
    let effect = claimed_effect(&definition.metadata);
    let mut description = definition.description.into_text();
    for hint in HINT_KEYS
        .iter()
        .filter_map(|key| metadata_value(&definition.metadata, key))
    {
        if let Some(hint) = localized_text(hint) {
            description.push_str("\n\n");
            description.push_str(&hint);
        }
    }
    ListedTool {
        name: definition.name,
        description,
        input_schema: definition.parameters_schema,
        output_schema: None,
        effect,
    }
}

/// Returns the effect class that the metadata claims, or `None` without a claim. If several keys are set, [`DESTRUCTIVE`]
/// takes precedence over [`READ_ONLY`], which takes precedence over [`IDEMPOTENT`].
fn claimed_effect(metadata: &Metadata) -> Option<EffectClass> {
    let is_set = |key: &str| metadata_value(metadata, key) == Some(Value::Bool(true));
    if is_set(DESTRUCTIVE) {
        Some(EffectClass::Write)
    } else if is_set(READ_ONLY) {
        Some(EffectClass::Read)
    } else if is_set(IDEMPOTENT) {
        Some(EffectClass::Idempotent)
    } else {
        None
    }
}

/// Returns the decoded value of a metadata key, or `None` if the key is missing or its value cannot be decoded.
fn metadata_value(metadata: &Metadata, key: &str) -> Option<Value> {
    let (_, encoded) = metadata.iter().find(|(name, _)| name == key)?;
    cbor::decode(encoded).ok()
}

/// Returns the text of a metadata value, which is a string or a map of translations. From a map, returns the text with
/// the key `en`, or else the first text. Returns `None` for any other value.
fn localized_text(value: Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text),
        Value::Object(texts) => {
            let text = texts.get("en").or_else(|| texts.values().next())?;
            text.as_str().map(str::to_owned)
        }
        _ => None,
    }
}
