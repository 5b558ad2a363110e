//! The items that the attributes accept, and the code that replaces them.

use std::collections::BTreeMap;

use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote};
use syn::{AttrStyle, Attribute, Error, Item, ItemFn, ItemMod, Result, Visibility, parse2};

use crate::attributes::{Options, docs};
use crate::errors::Errors;
use crate::model::{Interface, Plugin};
use crate::names::wit_name;
use crate::scope::{Scope, Uses};
use crate::signature::SignatureReader;
use crate::{data, entity, glue};

/// Expands `#[tools(attribute)] mod name { … }`. After an error, the module is emitted too, so that code that uses it compiles.
pub(crate) fn tools(attribute: TokenStream, item: TokenStream) -> TokenStream {
    match expand_module(attribute, item.clone()) {
        Ok(expanded) => expanded,
        Err(error) => errors_and_item(&error, item),
    }
}

/// Expands `#[tool(attribute)] fn name() { … }`.
pub(crate) fn tool(attribute: TokenStream, item: TokenStream) -> TokenStream {
    match expand_function(attribute, item.clone()) {
        Ok(expanded) => expanded,
        Err(error) => errors_and_item(&error, item),
    }
}

/// Emits the errors, and the item without the doc comments of parameters, which the compiler would reject as well.
fn errors_and_item(error: &Error, item: TokenStream) -> TokenStream {
    let errors = error.to_compile_error();
    let item = match parse2::<Item>(item) {
        Ok(Item::Fn(mut function)) => {
            glue::remove_parameter_docs(&mut function.sig);
            quote!(#[allow(unused)] #function)
        }
        Ok(Item::Mod(mut module)) => {
            for item in module.content.iter_mut().flat_map(|(_, items)| items) {
                glue::remove_parameter_docs_of_item(item);
            }
            quote!(#[allow(unused)] #module)
        }
        _ => TokenStream::new(),
    };
    quote!(#errors #item)
}

fn expand_module(attribute: TokenStream, item: TokenStream) -> Result<TokenStream> {
    let options = Options::parse(attribute)?;
    let Item::Mod(mut module) = parse2::<Item>(item)? else {
        return Err(Error::new(
            proc_macro2::Span::call_site(),
            "`#[tools]` can only be applied to a module: write `mod name { … }` around the functions, or `#[toolwit_guest::tool]` on a single function",
        ));
    };
    let Some((_, items)) = &mut module.content else {
        return Err(Error::new_spanned(
            &module,
            "`#[tools]` needs the content of the module in braces: a macro cannot read another file",
        ));
    };
    let plugin = read_module(options, &module.ident, &module.attrs, items)?;
    let glue = glue::expand(&plugin);
    items.push(Item::Verbatim(glue));
    Ok(module_tokens(module))
}

fn read_module(options: Options, ident: &Ident, attributes: &[Attribute], items: &mut [Item]) -> Result<Plugin> {
    let scope = Scope::of_module(items);
    let mut uses = Uses::default();
    let mut errors = Errors::default();
    let mut functions = Vec::new();
    for item in &mut *items {
        let Item::Fn(function) = item else { continue };
        if matches!(function.vis, Visibility::Public(_)) {
            let mut signatures = SignatureReader {
                scope: &scope,
                uses: &mut uses,
                owner: None,
            };
            functions.extend(errors.ok_or_record(signatures.read(&function.attrs, &mut function.sig)));
        }
    }
    let entities = entity::read_all(&scope, &mut uses, items, &mut errors);
    errors.finish()?;
    if functions.is_empty() && entities.is_empty() {
        let message =
            "the module has no tools: write a `pub fn` with a doc comment, or a `pub struct` with an `impl` block";
        return Err(Error::new(ident.span(), message));
    }
    let types = data::read_all(&scope, &mut uses)?;
    let interface = Interface {
        name: wit_name(ident)?,
        docs: docs(attributes),
    };
    let plugin = Plugin {
        package: options.package,
        version: options.version,
        interface: Some(interface),
        functions,
        types,
        entities,
        has_tool_result: uses.has_tool_result,
    };
    refuse_duplicates(&plugin)?;
    Ok(plugin)
}

/// Rejects two items with the same name: functions, types and entities share one namespace in WIT.
fn refuse_duplicates(plugin: &Plugin) -> Result<()> {
    let functions = plugin
        .functions
        .iter()
        .map(|function| (&function.name, &function.ident));
    let types = plugin.types.iter().map(|ty| (&ty.name, &ty.ident));
    let entities = plugin.entities.iter().map(|entity| (&entity.name, &entity.ident));
    let mut names = BTreeMap::new();
    for (name, ident) in types.chain(entities).chain(functions) {
        if let Some(first) = names.insert(name, ident) {
            let message = format!("`{ident}` and `{first}` have the same name in WIT, `{name}`: rename one of them");
            return Err(Error::new(ident.span(), message));
        }
    }
    Ok(())
}

/// Returns the module with its inner doc comments as outer ones. In native builds, the compiler does not warn about tools
/// without a caller.
fn module_tokens(mut module: ItemMod) -> TokenStream {
    for attribute in &mut module.attrs {
        if attribute.path().is_ident("doc") {
            attribute.style = AttrStyle::Outer;
        }
    }
    quote! {
        #[cfg_attr(not(target_family = "wasm"), allow(dead_code))]
        #module
    }
}

fn expand_function(attribute: TokenStream, item: TokenStream) -> Result<TokenStream> {
    let options = Options::parse(attribute)?;
    let Item::Fn(mut function) = parse2::<Item>(item)? else {
        return Err(Error::new(
            proc_macro2::Span::call_site(),
            "`#[tool]` can only be applied to a function: put methods and types into a module with `#[toolwit_guest::tools]`",
        ));
    };
    let plugin = read_function(options, &mut function)?;
    let glue = glue::expand(&plugin);
    let module = format_ident!("__toolwit_{}", function.sig.ident);
    Ok(quote! {
        #[cfg_attr(not(target_family = "wasm"), allow(dead_code))]
        #function

        #[doc(hidden)]
        #[allow(unused_imports)]
        mod #module {
            use super::*;
            #glue
        }
    })
}

fn read_function(options: Options, function: &mut ItemFn) -> Result<Plugin> {
    let mut uses = Uses::default();
    let mut signatures = SignatureReader {
        scope: &Scope::default(),
        uses: &mut uses,
        owner: None,
    };
    let function = signatures.read(&function.attrs, &mut function.sig)?;
    Ok(Plugin {
        package: options.package,
        version: options.version,
        interface: None,
        functions: vec![function],
        types: Vec::new(),
        entities: Vec::new(),
        has_tool_result: uses.has_tool_result,
    })
}
