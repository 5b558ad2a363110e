//! The functions that describe the tool, and the completion of its input schema.

use serde_json::Value;
use wasmtime::Store;
use wasmtime::component::Func;

use crate::contract::ContractFunction;
use crate::link::host::host_state::HostState;
use toolwit_core::limits::SCHEMA_BYTES_MAX;
use toolwit_core::text::parse_json;

/// Adds `"type": "object"` to a JSON object without a type. A tool of IronClaw always takes an object, but a schema that
/// was generated from alternatives omits the type. Returns any other text, and a text of more than [`SCHEMA_BYTES_MAX`]
/// bytes, unchanged. Discovery validates all schemas later.
pub(crate) fn with_object_type(text: String) -> String {
    if text.len() > SCHEMA_BYTES_MAX {
        return text;
    }
    match parse_json(&text) {
        Ok(Value::Object(mut schema)) if !schema.contains_key("type") => {
            schema.insert("type".to_owned(), "object".into());
            Value::Object(schema).to_string()
        }
        _ => text,
    }
}

/// `schema` or `description`: a function without parameters that returns a text.
pub(crate) struct TextFunction {
    pub(crate) index: usize,
}

impl ContractFunction for TextFunction {
    type Output = String;

    fn index(&self) -> usize {
        self.index
    }

    async fn run(self, store: &mut Store<HostState>, func: Func, _: u64) -> wasmtime::Result<String> {
        let (text,) = func.typed::<(), (String,)>(&*store)?.call_async(store, ()).await?;
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use super::with_object_type;

    #[test]
    fn a_type_is_added_only_if_it_is_missing() {
        let added = with_object_type(r#"{"oneOf":[{"required":["a"]}]}"#.to_owned());
        assert_eq!(added, r#"{"oneOf":[{"required":["a"]}],"type":"object"}"#);
        for text in [
            r#"{"type": "string"}"#,
            r#"{"type": "object"}"#,
            "[]",
            "true",
            "no schema",
            "",
        ] {
            assert_eq!(with_object_type(text.to_owned()), text);
        }
    }
}
