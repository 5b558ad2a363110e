//! The WIT bindings of the interceptor.

use std::time::{SystemTime, UNIX_EPOCH};

use self::bindings::exports::toolwit::plugin::interceptor::{Decision, Guest, Outcome, Review, ToolCall};
use self::bindings::wasi::config::store as config;
use self::bindings::wasi::keyvalue::store as keyvalue;
use crate::count::Count;
use crate::settings::{Per, Settings};

#[allow(missing_docs, unreachable_pub, unsafe_code, unused_qualifications)]
mod bindings {
    toolwit_guest::bindings!();
}

bindings::export!(Quota with_types_in bindings);

/// The bucket of the counts.
const BUCKET: &str = "quota";

struct Quota;

impl Guest for Quota {
    fn before(call: ToolCall) -> Decision {
        match count_call(&call.tool) {
            Ok(()) => Decision::Continue,
            Err(reason) => Decision::Deny(reason),
        }
    }

    fn after(_: ToolCall, _: Outcome) -> Review {
        Review::Keep
    }
}

/// Counts a call of a tool, or returns the reason why the call is denied.
fn count_call(tool: &str) -> Result<(), String> {
    let entries = config::get_all().map_err(|_| "the settings of the quota cannot be read".to_owned())?;
    let settings = Settings::read(entries.iter().map(|(key, value)| (key.as_str(), value.as_str())))?;
    let key = match settings.per {
        Per::Tool => key_of(tool),
        Per::All => "all".to_owned(),
    };
    let bucket = keyvalue::open(BUCKET).map_err(unusable)?;
    let stored_bytes = bucket.get(&key).map_err(unusable)?;
    let stored_count = stored_bytes.map(|bytes| Count::parse(&bytes)).transpose()?;
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |now| now.as_secs());
    let new_count = Count::add_call(stored_count, now, &settings)?;
    bucket.set(&key, new_count.to_text().as_bytes()).map_err(unusable)
}

/// Returns the key of a tool. A long id is cut, so that tools with the same beginning share a count.
fn key_of(tool: &str) -> String {
    const BYTES_MAX: usize = 900;
    let mut end = tool.len().min(BYTES_MAX);
    while !tool.is_char_boundary(end) {
        end -= 1;
    }
    format!("tool {}", &tool[..end])
}

fn unusable(error: keyvalue::Error) -> String {
    match error {
        keyvalue::Error::AccessDenied => {
            "the quota has no access to its store; an operator can grant `keyvalue = { quota = \"1MiB\" }`".to_owned()
        }
        _ => "the store of the quota cannot be used".to_owned(),
    }
}
