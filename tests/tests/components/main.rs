//! Odd, malformed and hostile components. Inspecting them runs no guest code and never panics.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]

mod directory;
mod docs;
mod malformed;
mod names;
mod types;
mod versions;

use toolwit::sandbox::{Inspection, PackageContext};
use toolwit::{Error, ErrorKind};
use toolwit_tests::component_of;

fn inspect(bytes: &[u8]) -> Result<Inspection, Error> {
    Inspection::from_bytes(
        bytes,
        PackageContext {
            name: "odd",
            adjacent_wit: None,
        },
    )
}

fn inspect_text(text: &str) -> Inspection {
    inspect(&component_of(text)).unwrap_or_else(|error| panic!("{error}"))
}

/// Inspects bytes that must be rejected, and returns the error. Its message is a single line.
#[track_caller]
fn refusal(bytes: &[u8]) -> Error {
    let error = inspect(bytes).expect_err("the bytes are not a component");
    assert_eq!(error.kind, ErrorKind::MalformedComponent, "{error:#?}");
    assert!(!error.message.is_empty() && !error.message.contains('\n'), "{error}");
    assert!(error.message.len() < 500, "{error}");
    error
}

/// Returns a component with functions, a resource with methods, and handles in lists and results.
fn token_component() -> Vec<u8> {
    component_of(include_str!("../../guests/wat/token.wat"))
}
