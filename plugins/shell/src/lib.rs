//! A POSIX-like shell with the usual commands in one component, as a Toolwit plugin.
//!
//! ```
//! let mut shell = shell::Shell::new("/".into(), Vec::new());
//! let outcome = shell.run("echo 'a b' c | tr a-z A-Z && false", "")?;
//! assert_eq!((outcome.stdout.as_str(), outcome.status), ("A B C\n", 1));
//! # Ok::<(), String>(())
//! ```
//!
//! A script is parsed completely before it runs: `lexer` and `word` read tokens, `parser` and `compound` build the tree of
//! `syntax`. Then `execute` and `control` walk the tree, and `expand`, `parameter` and `arithmetic` expand its words. Commands
//! are functions, and a pipe is a text that one returns and the next one reads; no process exists. The model reads the WIT in
//! `wit/shell.wit`. Everything except the WIT bindings in `plugin` is ordinary Rust and tested natively. The sandbox decides
//! which directories exist.

mod arithmetic;
mod commands;
mod compound;
mod control;
mod execute;
mod expand;
mod lexer;
mod parameter;
mod parser;
mod redirect;
mod state;
mod syntax;
mod word;

pub use execute::{Outcome, Shell};

#[cfg(target_family = "wasm")]
mod plugin;
