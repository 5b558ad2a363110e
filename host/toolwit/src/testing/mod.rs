//! Test cases of a plugin: calls with their expected results, from a `tests.toml`.
//!
//! ```toml
//! [[test]]
//! name = "add computes sums"
//! tool = "add"
//! arguments = { a = 2, b = 3 }
//! result = 5
//!
//! [[test]]
//! name = "a host without a grant is refused"
//! tool = "fetch"
//! arguments = { url = "http://127.0.0.1/" }
//! error = "denied"
//!
//! [[test]]
//! name = "a cart keeps its items"
//! grants = { keyvalue = { quota = "1MiB" } }
//!
//! [[test.calls]]
//! tool = "cart_new"
//!
//! [[test.calls]]
//! tool = "cart_count"
//! result = 0
//! ```
//!
//! The calls of a case run in one conversation, so that the next calls can call the methods of a returned entity. Cases
//! with the same grants share the values that the plugin stores.
//!
//! `grants` has the keys of a grant in a grants file. At the top of the file, it applies to the cases without `grants` of
//! their own. A grant that reaches outside of the directory of the file needs the consent of the user.

mod expectation;
mod outside_grants;
mod run;
mod suite;

pub use expectation::Expectation;
pub use run::{CaseOutcome, CaseRunner};
pub use suite::{TestCall, TestCase, TestSuite};
