//! Recognizes the type `tool-result` of `toolwit:plugin`.

use super::types::{Field, WitType};

/// Whether a type is the record `tool-result` of `toolwit:plugin`: the one record with exactly these fields.
pub(crate) fn is_tool_result(ty: &WitType) -> bool {
    let is_record = |ty: &WitType, names: &[&str], fits: &dyn Fn(&[Field]) -> bool| {
        matches!(ty, WitType::Record(fields)
            if fields.iter().map(|field| field.label.wit.as_str()).eq(names.iter().copied()) && fits(fields))
    };
    let are_texts = |fields: &[Field]| fields.iter().all(|field| field.ty == WitType::String);
    let names = ["for-llm", "for-user", "silent", "is-error", "artifacts", "background"];
    is_record(ty, &names, &|fields| {
        let [for_llm, for_user, silent, is_error, artifacts, background] = fields else {
            return false;
        };
        for_llm.ty == WitType::String
            && for_user.ty == WitType::Option(Box::new(WitType::String))
            && silent.ty == WitType::Bool
            && is_error.ty == WitType::Bool
            && matches!(&artifacts.ty, WitType::List(item) if is_record(item, &["kind", "value"], &are_texts))
            && matches!(&background.ty, WitType::Option(item) if is_record(item, &["tool", "arguments"], &are_texts))
    })
}
