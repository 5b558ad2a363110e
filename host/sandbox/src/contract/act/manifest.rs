//! The manifest in a component that was built for ACT.

use serde_json::Value;
use wasmparser::{Parser, Payload};

use crate::contract::cbor;
use toolwit_core::limits::{ByteCount, REQUESTS_BYTES_MAX};
use toolwit_core::{Error, ErrorKind, Phase};

/// The custom section with the manifest, as CBOR.
const MANIFEST_SECTION: &str = "act:component";

/// Returns the manifest that a component has in a section `act:component`, as JSON. Returns `None` if there is no such
/// section before the end of the component, or before its first invalid byte.
///
/// The capabilities in the manifest are requests of the author. They grant nothing. Blocks for some
/// milliseconds per megabyte of the component.
///
/// # Errors
/// [`ErrorKind::Configuration`] if the section is larger than [`REQUESTS_BYTES_MAX`], is not valid CBOR, nests too
/// deeply, has too many parts, or has a key that is a list or a map.
pub fn act_manifest(component: &[u8]) -> Result<Option<Value>, Error> {
    let Some(section) = find_manifest_section(component) else {
        return Ok(None);
    };
    let unusable = |why: String| {
        let message = format!("the section `{MANIFEST_SECTION}` of the component cannot be used: {why}");
        Error::new(ErrorKind::Configuration, Phase::Registry, message)
    };
    if section.len() as u64 > REQUESTS_BYTES_MAX {
        let why = format!(
            "it has {} and may have {}",
            ByteCount(section.len() as u64),
            ByteCount(REQUESTS_BYTES_MAX)
        );
        return Err(unusable(why));
    }
    let manifest = cbor::decode(section).map_err(|error| unusable(error.to_string()))?;
    Ok(Some(manifest))
}

/// Finds the section with the manifest, in the component itself or in a core module inside it. Build tools write the
/// section into the component, and a Rust macro writes it into the core module.
fn find_manifest_section(component: &[u8]) -> Option<&[u8]> {
    Parser::new(0)
        .parse_all(component)
        .map_while(Result::ok)
        .find_map(|payload| match payload {
            Payload::CustomSection(section) if section.name() == MANIFEST_SECTION => Some(section.data()),
            _ => None,
        })
}
