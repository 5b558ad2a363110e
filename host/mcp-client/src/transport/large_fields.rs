//! The fields of a result that can be large.

use rmcp::model::{ContentBlock, ServerJsonRpcMessage, ServerResult, Tool};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// The fields of a result that can be large. To save memory, they are deserialized separately from the result: the
/// protocol library tries one type after another for a result, and copies the complete result for each type.
#[derive(Default)]
pub(super) struct LargeFields {
    tools: Option<Vec<Tool>>,
    content: Option<Vec<ContentBlock>>,
    structured_content: Option<Value>,
}

impl LargeFields {
    /// Takes the large fields out of the result of a message, and leaves empty values in their place.
    ///
    /// # Errors
    /// If an item of `tools` or `content` cannot be deserialized.
    pub(super) fn take(message: &mut Value) -> serde_json::Result<Self> {
        let result = message.get_mut("result").and_then(Value::as_object_mut);
        // A result of another `resultType` may use these names for other fields.
        let is_complete = |result: &&mut Map<String, Value>| {
            let result_type = result.get("resultType");
            result_type.is_none_or(|result_type| result_type == "complete")
        };
        let Some(result) = result.filter(is_complete) else {
            return Ok(Self::default());
        };
        Ok(Self {
            tools: take_list(result, "tools")?,
            content: take_list(result, "content")?,
            structured_content: result.get_mut("structuredContent").map(Value::take),
        })
    }

    /// Puts the fields into the deserialized message.
    pub(super) fn put_back(self, message: &mut ServerJsonRpcMessage) {
        let ServerJsonRpcMessage::Response(response) = message else {
            return;
        };
        match &mut response.result {
            ServerResult::ListToolsResult(list) => list.tools = self.tools.unwrap_or_default(),
            ServerResult::CallToolResult(call_result) => {
                call_result.content = self.content.unwrap_or_default();
                call_result.structured_content = self.structured_content;
            }
            _ => {}
        }
    }
}

/// Takes and deserializes the items of a list, and leaves an empty list. Returns `None` if there is no such list.
fn take_list<T: DeserializeOwned>(fields: &mut Map<String, Value>, name: &str) -> serde_json::Result<Option<Vec<T>>> {
    let Some(Value::Array(items)) = fields.get_mut(name) else {
        return Ok(None);
    };
    let items = std::mem::take(items).into_iter();
    items.map(serde_json::from_value).collect::<Result<_, _>>().map(Some)
}
