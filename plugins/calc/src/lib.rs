//! Evaluates expressions exactly, as a Toolwit plugin.
//!
//! ```
//! use calc::evaluate;
//!
//! assert_eq!(evaluate("0.1 + 0.2", &[])?.value, "0.3");
//! assert_eq!(evaluate("1/3", &[])?.fraction.as_deref(), Some("1/3"));
//! # Ok::<(), calc::EvalError>(())
//! ```
//!
//! An expression is parsed into a program for a stack machine. Neither evaluating nor dropping a program recurses, so only the
//! parser needs a depth limit. The model reads the WIT in `wit/calc.wit`.

mod answer;
mod error;
mod functions;
mod machine;
mod number;
mod program;
mod reader;
mod token;

pub use answer::Answer;
pub use error::EvalError;
pub use functions::{FUNCTIONS, Function};
pub use machine::{Variable, evaluate};

#[cfg(target_family = "wasm")]
mod plugin;
