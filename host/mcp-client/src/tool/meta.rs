//! The values of the caller's context that a server receives.

use serde_json::{Map, Value};

use crate::session::{Connection, SessionPool};
use toolwit_core::ToolContext;

/// Prefixes of keys that belong to the protocol.
const RESERVED_PREFIXES: [&str; 3] = ["io.modelcontextprotocol/", "modelcontextprotocol", "mcp."];

/// The only key of the protocol without a prefix.
const PROGRESS_TOKEN: &str = "progressToken";

/// Returns the values that a server receives as `_meta`. The keys of the protocol, the keys of
/// credentials and values with secrets are removed, even if the configured filter allows them.
pub(super) fn outgoing(pool: &SessionPool, connection: &Connection, context: &ToolContext) -> Map<String, Value> {
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
