//! The refusals of components in the store, so that a refused component is validated only once.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::record::content_hash;
use crate::package::stored_path;
use crate::store::PackageRecord;
use toolwit_core::{Error, ErrorKind, Phase};

/// The first line of a stored refusal, which takes the place of the inspection.
const HEADER: &str = "refusal\n";

/// A refusal that depends only on the bytes of the component.
#[derive(Serialize, Deserialize)]
struct StoredRefusal {
    kind: ErrorKind,
    message: String,
    suggestion: Option<String>,
}

/// Creates the record of a component that was refused. `None` if the refusal may depend on more than the component, or if it was
/// found without reading all of it.
pub(super) fn refusal_record(name: &str, path: &Path, error: &Error, stamp: &str) -> Option<PackageRecord> {
    let is_of_component = matches!(error.kind, ErrorKind::MalformedComponent | ErrorKind::Unsupported);
    if !is_of_component || error.phase != Phase::Load || std::error::Error::source(error).is_some() {
        return None;
    }
    let refusal = StoredRefusal {
        kind: error.kind,
        message: error.message.clone(),
        suggestion: error.suggestion.clone(),
    };
    let mut record = PackageRecord {
        path: stored_path(path),
        name: name.to_owned(),
        stamp: stamp.to_owned(),
        tier: "minimal".to_owned(),
        inspection: format!("{HEADER}{}", serde_json::to_string(&refusal).ok()?),
        reason: Some(error.message.clone()),
        ..PackageRecord::default()
    };
    record.content_hash = content_hash(&record).to_string();
    Some(record)
}

/// Returns the error of a stored refusal. `None` if the record is of another kind, or damaged.
pub(super) fn stored_refusal(record: &PackageRecord) -> Option<Error> {
    let refusal: StoredRefusal = serde_json::from_str(record.inspection.strip_prefix(HEADER)?).ok()?;
    let error = Error::new(refusal.kind, Phase::Load, refusal.message);
    Some(match refusal.suggestion {
        Some(suggestion) => error.with_suggestion(suggestion),
        None => error,
    })
}
