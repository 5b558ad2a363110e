//! The customers of a small shop, as a Toolwit plugin.
//!
//! It shows what a plugin can be: entities that lead to entities (customer, order, line item), one that keeps its state
//! between calls (cart), one that a call uses up (checkout, which speaks to the user and hands over the order), a constructor,
//! a static function, and errors that tell the model what to do next. The WIT in `wit/customers.wit` is what the model gets to read; the data lies in `seed/`.
//!
//! Everything but `plugin`, which speaks WIT, is ordinary Rust and tested natively.

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
