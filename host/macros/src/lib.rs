//! The `#[tool]` attribute. Use it through the crate `toolwit`, which documents it with examples that run.

use proc_macro::TokenStream;

mod attributes;
mod expand;
mod method;
mod parameter;
mod unsupported;

#[cfg(test)]
mod tests;

/// Makes a tool of a function, or tools of the methods of an `impl` block.
///
/// `toolwit::tool` says more, with examples that run.
#[proc_macro_attribute]
pub fn tool(attribute: TokenStream, item: TokenStream) -> TokenStream {
    expand::tool(attribute.into(), item.into()).into()
}
