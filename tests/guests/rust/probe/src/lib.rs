//! A hostile guest: tries whatever it is told to try, and says what came of it.

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
