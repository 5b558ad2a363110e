//! The JSON Schema of a manifest, for editors.

use super::Manifest;

impl Manifest {
    /// Returns the JSON Schema of a manifest. A test checks that `host/registry/manifest.schema.json` is equal to it.
    #[must_use]
    pub fn json_schema() -> serde_json::Value {
        schemars::schema_for!(Manifest).to_value()
    }
}
