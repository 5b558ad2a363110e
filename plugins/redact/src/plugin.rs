//! The WIT bindings of the interceptor.

use self::bindings::exports::toolwit::plugin::interceptor::{Artifact, Decision, Guest, Outcome, Review, ToolCall};
use self::bindings::wasi::config::store as config;
use crate::json::{json, text_or_json};
use crate::masks::Masks;

#[allow(missing_docs, unreachable_pub, unsafe_code, unused_qualifications)]
mod bindings {
    toolwit_guest::bindings!();
}

bindings::export!(Redact with_types_in bindings);

struct Redact;

impl Guest for Redact {
    fn before(_: ToolCall) -> Decision {
        Decision::Continue
    }

    fn after(_: ToolCall, outcome: Outcome) -> Review {
        match mask_outcome(outcome) {
            Ok(Some(outcome)) => Review::Replace(outcome),
            Ok(None) => Review::Keep,
            Err(reason) => Review::Withhold(reason),
        }
    }
}

/// Masks the texts of an outcome. Returns `None` if nothing changes.
fn mask_outcome(mut outcome: Outcome) -> Result<Option<Outcome>, String> {
    let entries = config::get_all().map_err(|_| "the settings of the redaction cannot be read".to_owned())?;
    let entries = entries.iter().map(|(key, value)| (key.as_str(), value.as_str()));
    let masks = Masks::read(entries).map_err(|error| format!("the settings of the redaction are invalid: {error}"))?;
    let mut is_changed = false;
    let mut replace = |text: &mut String, clean: Option<String>| {
        if let Some(clean) = clean {
            *text = clean;
            is_changed = true;
        }
    };
    let clean = text_or_json(&masks, &outcome.for_llm);
    replace(&mut outcome.for_llm, clean);
    if let Some(text) = &mut outcome.for_user {
        let clean = text_or_json(&masks, text);
        replace(text, clean);
    }
    let unreadable = |_| "a value is not JSON".to_owned();
    if let Some(value) = &mut outcome.value {
        let clean = json(&masks, value).map_err(unreadable)?;
        replace(value, clean);
    }
    for Artifact { kind, value } in &mut outcome.artifacts {
        let clean = masks.mask_text(kind).into_owned();
        let clean = (clean != *kind).then_some(clean);
        replace(kind, clean);
        let clean = json(&masks, value).map_err(unreadable)?;
        replace(value, clean);
    }
    Ok(is_changed.then_some(outcome))
}
