//! The attributes `#[tools]` and `#[tool]`, which turn Rust functions and types into the tools of a plugin.
//!
//! The crate `toolwit-guest` re-exports them. `expand` reads the author's item into a `model::Plugin`, and two modules generate
//! the output from it:
//!
//! ```text
//! expand ── model ──┬─ wit_text ── WIT with doc comments, for `wit_bindgen::generate!` and for `toolwit build`
//!                   └─ glue ────── conversions between the author's types and the generated ones
//! ```

use proc_macro::TokenStream;

mod attributes;
mod data;
mod entity;
mod errors;
mod expand;
mod glue;
mod glue_types;
mod model;
mod names;
mod scope;
mod signature;
mod types;
mod wit_text;

#[cfg(test)]
mod tests;

// The docs of both are in `toolwit-guest`, where their examples run.
#[allow(missing_docs)]
#[proc_macro_attribute]
pub fn tools(attribute: TokenStream, item: TokenStream) -> TokenStream {
    expand::tools(attribute.into(), item.into()).into()
}

#[allow(missing_docs)]
#[proc_macro_attribute]
pub fn tool(attribute: TokenStream, item: TokenStream) -> TokenStream {
    expand::tool(attribute.into(), item.into()).into()
}
