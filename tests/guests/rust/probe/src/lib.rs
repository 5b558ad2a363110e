//! A hostile guest: makes the attempts that a test requests, and returns their outcome.

wit_bindgen::generate!({ path: "wit", world: "probe" });

mod files;
mod process;
mod web;

struct Probe;

export!(Probe);

/// Converts the error of an attempt to text.
fn with_text_error<T>(outcome: std::io::Result<T>) -> Result<T, String> {
    outcome.map_err(|error| error.to_string())
}
