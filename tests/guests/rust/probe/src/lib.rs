//! A hostile guest: makes the attempts that a test requests, and returns their outcome.

wit_bindgen::generate!({ path: "wit", world: "probe" });

mod files;
mod process;
mod web;

struct Probe;

export!(Probe);

/// How an attempt ended.
fn told<T>(outcome: std::io::Result<T>) -> Result<T, String> {
    outcome.map_err(|error| error.to_string())
}
