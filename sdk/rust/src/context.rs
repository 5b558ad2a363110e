//! Values that the host passes with a call and the model never sees, such as a tenant.
//!
//! Each key needs a grant (`--context KEY`).

use serde::de::DeserializeOwned;

use crate::{HostError, host};

/// Returns the value of a key. `None` if the key does not exist or is not granted.
///
/// ```
/// # fn example() -> Result<(), toolwit_guest::HostError> {
/// let tenant: Option<String> = toolwit_guest::context::get("tenant")?;
/// # assert_eq!(tenant, None);
/// # Ok(())
/// # }
/// # example().unwrap();
/// ```
///
/// # Errors
///
/// [`HostError::Json`] if the value is of another type.
pub fn get<T: DeserializeOwned>(key: &str) -> Result<Option<T>, HostError> {
    match host::context(key) {
        Some(json) => Ok(Some(serde_json::from_str(&json)?)),
        None => Ok(None),
    }
}
