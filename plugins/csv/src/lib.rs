//! Filters, groups and joins tables in CSV, as a Toolwit plugin.
//!
//! ```
//! use csv::{Condition, Comparison, Table};
//!
//! let table = Table::parse("name;price\nTea;2.50\nCake;4\n")?;
//! let cheap = Condition { column: "price".into(), comparison: Comparison::Less, value: "3".into() };
//! assert_eq!(table.filter(&[cheap])?.to_csv(9), "name,price\nTea,2.50\n");
//! # Ok::<(), String>(())
//! ```
//!
//! The model reads the WIT in `wit/csv.wit`. Everything except the WIT bindings in `plugin` is ordinary Rust and tested natively.

mod group;
mod join;
mod records;
mod select;
mod table;
mod value;

pub use group::{Aggregate, Function};
pub use join::JoinKind;
pub use select::{Comparison, Condition};
pub use table::{Column, Table};

#[cfg(target_family = "wasm")]
mod plugin;
