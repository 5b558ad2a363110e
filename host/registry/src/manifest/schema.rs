//! The JSON Schema of a manifest, for editors.

use super::Manifest;

impl Manifest {
    /// Returns the JSON Schema of a manifest. The file `host/registry/manifest.schema.json` is a copy, which a test compares.
    #[must_use]
    pub fn json_schema() -> serde_json::Value {
        schemars::schema_for!(Manifest).to_value()
    }
}
