//! The customers of a small shop, as a Toolwit plugin.
//!
//! It demonstrates the features of plugins: entities that return entities (customer, order, line item), one that keeps state
//! between calls (cart), a call that consumes an entity (checkout, which sends a message and attaches the order), a constructor,
//! a static function, and errors that guide the model. The model reads the WIT in `wit/customers.wit`. The data is in `seed/`.
//!
//! Everything except the WIT bindings in `plugin` is ordinary Rust and tested natively.

pub mod cart;
pub mod catalogue;
pub mod customer;
pub mod money;
pub mod order;
pub mod receipt;
pub mod seed;
pub mod shop;
pub mod spend;

#[cfg(target_family = "wasm")]
mod plugin;
