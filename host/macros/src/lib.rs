//! The `#[tool]` attribute.
//!
//! The crate `toolwit` re-exports it with examples that run. With another crate of the workspace alone, name that crate in the
//! option `crate`: `#[tool(crate = toolwit_core)]`.

use proc_macro::TokenStream;

#[cfg(feature = "expand")]
mod attributes;
#[cfg(feature = "expand")]
mod expand;
#[cfg(feature = "expand")]
mod method;
#[cfg(feature = "expand")]
mod parameter;
#[cfg(feature = "expand")]
mod unsupported;

#[cfg(all(test, feature = "expand"))]
mod tests;

/// Generates a tool from a function, or tools from the methods of an `impl` block.
///
/// Generated code refers to the crate `toolwit`, unless the option `crate` names another path:
/// `#[tool(crate = toolwit_core)]`. For an `impl` block, the option belongs to the attribute of the block. The documentation of
/// `toolwit::tool` describes all options with examples that run.
#[cfg(feature = "expand")]
#[proc_macro_attribute]
pub fn tool(attribute: TokenStream, item: TokenStream) -> TokenStream {
    expand::tool(attribute.into(), item.into()).into()
}

/// Reports that the feature `macros` is missing.
#[cfg(not(feature = "expand"))]
#[proc_macro_attribute]
pub fn tool(_attribute: TokenStream, item: TokenStream) -> TokenStream {
    const MISSING: &str = "compile_error!(\"`#[tool]` needs the feature `macros` of the crate `toolwit`\");";
    let mut tokens: TokenStream = MISSING.parse().unwrap_or_default();
    tokens.extend(item);
    tokens
}
