//! The values of the caller's context that a server receives as `_meta`.

use serde_json::{Map, Value};

use crate::session::{Connection, SessionPool};
use toolwit_core::ToolContext;

/// The prefixes of keys that the protocol reserves.
const RESERVED_PREFIXES: [&str; 3] = ["io.modelcontextprotocol/", "modelcontextprotocol", "mcp."];

/// The only reserved key without a prefix.
const PROGRESS_TOKEN: &str = "progressToken";

/// Returns the context values that a server receives as `_meta` of a request. Reserved keys, the keys of credentials and
/// values with secrets are removed, even if the configured filter allows them.
pub(super) fn request_meta(pool: &SessionPool, connection: &Connection, context: &ToolContext) -> Map<String, Value> {
    let mut meta = pool.config.meta.outgoing(context);
    let credentials = pool.credential_keys();
    let is_reserved =
        |key: &str| key == PROGRESS_TOKEN || RESERVED_PREFIXES.iter().any(|prefix| key.starts_with(prefix));
    meta.retain(|key, value| {
        !credentials.contains(&key.as_str())
            && !is_reserved(key)
            && !connection.redaction().applies_to(&value.to_string())
            && !connection.redaction().applies_to(value.as_str().unwrap_or_default())
    });
    meta
}
