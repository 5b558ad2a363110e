//! Queries and changes SQLite databases in granted directories, as a Toolwit plugin.
//!
//! ```
//! use sqlite::{Database, Value, execute};
//!
//! let dir = tempfile::tempdir()?;
//! let file = dir.path().join("shop.db");
//! let file = file.to_str().ok_or("the path is not text")?;
//! execute(file, "CREATE TABLE cake (name TEXT, price REAL)", &[], true)?;
//! execute(file, "INSERT INTO cake VALUES (?, ?)", &[Value::Text("Torte".into()), Value::Real(4.5)], false)?;
//! let rows = Database::read(file, |database| database.query("SELECT * FROM cake", &[], 9))?;
//! assert_eq!(rows.rows, [[Some("Torte".to_owned()), Some("4.5".to_owned())]]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The model reads the WIT in `wit/sqlite.wit`. Everything except the WIT bindings in `plugin` is ordinary Rust and tested natively.
//! The sandbox decides which files exist. SQLite's own guards are on in addition: no other database, no extensions, no settings.

mod authorizer;
mod change;
mod database;
mod file;
mod query;

pub use change::{Change, execute};
pub use database::Database;
pub use query::Rows;
pub use rusqlite::types::Value;

#[cfg(target_family = "wasm")]
mod plugin;

#[cfg(test)]
mod tests;
