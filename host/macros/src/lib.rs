//! The attributes `#[tool]` and `#[facade]`, and the derive macro `Entity`.
//!
//! The crate `toolwit` re-exports them with examples that run. A program without the crate `toolwit` names another crate
//! of the workspace in the option `crate`: `#[tool(crate = toolwit_core)]`.
//!
//! The feature `macros` of `toolwit` enables the feature `expand` of this crate. Without `expand`, each use of a macro is a
//! compile error.

use proc_macro::TokenStream;

#[cfg(feature = "expand")]
mod attributes;
#[cfg(feature = "expand")]
mod entity;
#[cfg(feature = "expand")]
mod expand;
#[cfg(feature = "expand")]
mod facade;
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
/// `#[tool(crate = toolwit_core)]`. For an `impl` block, the option belongs to the attribute of the block. The
/// documentation of `toolwit::tool` describes all options with examples that run.
#[cfg(feature = "expand")]
#[proc_macro_attribute]
pub fn tool(attribute: TokenStream, item: TokenStream) -> TokenStream {
    expand::tool(attribute.into(), item.into()).into()
}

/// Makes a struct an entity: when a tool returns it, alone or inside another value, its methods become tools of the
/// conversation.
///
/// The macro implements `serde::Serialize`, with the `#[serde(…)]` attributes of the struct and its fields. The struct
/// must be `Clone`, and its `impl` block must have the attribute `#[tool]`. Generated code refers to the crate
/// `toolwit`, unless `#[entity(crate = …)]` names another path. The documentation of `toolwit::Entity` has examples
/// that run.
#[cfg(feature = "expand")]
#[proc_macro_derive(Entity, attributes(entity, serde))]
pub fn entity(item: TokenStream) -> TokenStream {
    entity::derive(item.into()).into()
}

/// Makes an object a facade: a tool that reveals the tools of the object when the model calls it.
///
/// On an `impl` block, the facade reveals the methods with the attribute `#[tool]`. On a struct, the facade reveals the
/// tools of the type's `#[tool] impl` block, and the facade of each field of type `Arc<T>` where `T` is a facade.
/// The documentation of `toolwit::facade` describes all options with examples that run.
#[cfg(feature = "expand")]
#[proc_macro_attribute]
pub fn facade(attribute: TokenStream, item: TokenStream) -> TokenStream {
    facade::facade(attribute.into(), item.into()).into()
}

/// Expands to a compile error: the feature `macros` of the crate `toolwit` is missing.
#[cfg(not(feature = "expand"))]
#[proc_macro_attribute]
pub fn tool(_attribute: TokenStream, item: TokenStream) -> TokenStream {
    missing_feature("#[tool]", item)
}

/// Expands to a compile error: the feature `macros` of the crate `toolwit` is missing.
#[cfg(not(feature = "expand"))]
#[proc_macro_attribute]
pub fn facade(_attribute: TokenStream, item: TokenStream) -> TokenStream {
    missing_feature("#[facade]", item)
}

/// Expands to a compile error: the feature `macros` of the crate `toolwit` is missing.
#[cfg(not(feature = "expand"))]
#[proc_macro_derive(Entity, attributes(entity))]
pub fn entity(_item: TokenStream) -> TokenStream {
    missing_feature("#[derive(Entity)]", TokenStream::new())
}

#[cfg(not(feature = "expand"))]
fn missing_feature(attribute: &str, item: TokenStream) -> TokenStream {
    let error = format!("compile_error!(\"`{attribute}` needs the feature `macros` of the crate `toolwit`\");");
    let mut tokens: TokenStream = error.parse().unwrap_or_default();
    tokens.extend(item);
    tokens
}
