//! A guest of WASI 0.3: async functions, streams and futures, and the attempts that a test requests.

wit_bindgen::generate!({ path: "wit", world: "river" });

mod attempts;
mod files;
mod flow;
mod web;

struct River;

export!(River);
