//! The `#[tool]` attribute.
//!
//! The crate `toolwit` re-exports it with examples that run. With another crate of the workspace alone, name that crate in the
//! option `crate`: `#[tool(crate = toolwit_core)]`.

use proc_macro::TokenStream;

mod attributes;
mod expand;
mod method;
mod parameter;
mod unsupported;

#[cfg(test)]
mod tests;

/// Generates a tool from a function, or tools from the methods of an `impl` block.
///
/// Generated code refers to the crate `toolwit`, unless the option `crate` names another path:
/// `#[tool(crate = toolwit_core)]`. For an `impl` block, the option belongs to the attribute of the block. The documentation of
/// `toolwit::tool` describes all options with examples that run.
#[proc_macro_attribute]
pub fn tool(attribute: TokenStream, item: TokenStream) -> TokenStream {
    expand::tool(attribute.into(), item.into()).into()
}
