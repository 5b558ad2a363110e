//! The JSON Schema of a manifest, for editors.

use super::Manifest;

impl Manifest {
    /// Returns the JSON Schema of a manifest. The repository has it as `host/registry/manifest.schema.json`.
    #[must_use]
    pub fn json_schema() -> serde_json::Value {
        schemars::schema_for!(Manifest).to_value()
    }
}
