//! The parts of a result that can be large.

use rmcp::model::{ContentBlock, ServerJsonRpcMessage, ServerResult, Tool};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// The parts of a result that can be large. They are deserialized one by one, apart from the rest of the result.
///
/// The protocol library finds the type of a result by trials, and copies the complete result for each type that it
/// tries. So the large parts are taken out first.
#[derive(Default)]
pub(super) struct LargeParts {
    tools: Option<Vec<Tool>>,
    content: Option<Vec<ContentBlock>>,
    structured: Option<Value>,
}

impl LargeParts {
    /// Takes the parts out of the result of a message, and leaves empty values.
    ///
    /// # Errors
    /// If a part does not have its type.
    pub(super) fn take(message: &mut Value) -> serde_json::Result<Self> {
        let result = message.get_mut("result").and_then(Value::as_object_mut);
        // Another kind of result may have other fields of these names.
        let is_complete = |result: &&mut Map<String, Value>| {
            let kind = result.get("resultType");
            kind.is_none_or(|kind| kind == "complete")
        };
        let Some(result) = result.filter(is_complete) else {
            return Ok(Self::default());
        };
        Ok(Self {
            tools: take_list(result, "tools")?,
            content: take_list(result, "content")?,
            structured: result.get_mut("structuredContent").map(Value::take),
        })
    }

    /// Puts the parts into the deserialized message.
    pub(super) fn put_back(self, message: &mut ServerJsonRpcMessage) {
        let ServerJsonRpcMessage::Response(response) = message else {
            return;
        };
        match &mut response.result {
            ServerResult::ListToolsResult(list) => list.tools = self.tools.unwrap_or_default(),
            ServerResult::CallToolResult(call_result) => {
                call_result.content = self.content.unwrap_or_default();
                call_result.structured_content = self.structured;
            }
            _ => {}
        }
    }
}

/// Takes the items of a list, and leaves an empty list.
fn take_list<T: DeserializeOwned>(fields: &mut Map<String, Value>, name: &str) -> serde_json::Result<Option<Vec<T>>> {
    let Some(Value::Array(items)) = fields.get_mut(name) else {
        return Ok(None);
    };
    let items = std::mem::take(items).into_iter();
    items.map(serde_json::from_value).collect::<Result<_, _>>().map(Some)
}
