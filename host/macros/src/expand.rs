//! The expansion of the attribute `#[tool]` on functions and `impl` blocks.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::spanned::Spanned;
use syn::{Error, Expr, ImplItem, Item, ItemFn, ItemImpl, Member, Result, parse2};

use crate::attributes::{ImplOptions, ToolOptions, library_path, take_tool_attribute};
use crate::method::{Method, Owner};

/// Expands `#[tool(attribute)] item`. An error becomes a `compile_error!` in place of the item.
pub(crate) fn tool(attribute: TokenStream, item: TokenStream) -> TokenStream {
    match expand(attribute, item.clone()) {
        Ok(expanded) => expanded,
        Err(error) => error.to_compile_error(),
    }
}

fn expand(attribute: TokenStream, item: TokenStream) -> Result<TokenStream> {
    match parse2::<Item>(item)? {
        Item::Fn(function) => tool_of_function(ToolOptions::parse(attribute)?, function),
        Item::Impl(block) => tools_of_impl(&ImplOptions::parse(attribute)?, block),
        other => Err(Error::new(
            other.span(),
            "`#[tool]` can only be applied to a function or an `impl` block",
        )),
    }
}

fn tool_of_function(options: ToolOptions, mut function: ItemFn) -> Result<TokenStream> {
    if let Some(skip) = options.skip {
        return Err(Error::new(
            skip,
            "`skip` is for the methods of an `impl` block: remove `#[tool]` instead",
        ));
    }
    let library = library_path(options.library.as_ref());
    let method = Method::read(options, &library, &function.attrs, &mut function.sig, Owner::None)?;
    let (tool, visibility) = (method.expand(), &function.vis);
    let constructor = format_ident!("{}_tool", method.plain_name());
    let doc = format!(
        "Creates the tool `{}`.\n\n# Errors\nIf the schema of a parameter's type is not valid.",
        method.name()
    );
    Ok(quote! {
        #function

        #[doc = #doc]
        #visibility fn #constructor() -> ::core::result::Result<#library::NativeTool, #library::Error> {
            #library::__private::ToolMethod::into_tool(#tool)
        }
    })
}

/// Generates the `impl` block itself, and after it an implementation of `ToolMethods` with the methods that are tools.
pub(crate) fn tools_of_impl(options: &ImplOptions, mut block: ItemImpl) -> Result<TokenStream> {
    if let Some((_, path, _)) = &block.trait_ {
        return Err(Error::new(
            path.span(),
            "`#[tool]` can only be applied to an inherent `impl`, not to the `impl` of a trait",
        ));
    }
    if !block.generics.params.is_empty() {
        let message =
            "`#[tool]` cannot be applied to a generic `impl`: the model needs one schema; write it for a concrete type";
        return Err(Error::new(block.generics.span(), message));
    }
    let library = library_path(options.library.as_ref());
    let mut tools = Vec::new();
    for item in &mut block.items {
        let ImplItem::Fn(function) = item else { continue };
        let Some(options) = take_tool_attribute(&mut function.attrs)? else {
            continue;
        };
        if let Some(path) = &options.library {
            return Err(Error::new(
                path.span(),
                "write `crate` in the `#[tool]` of the `impl` block",
            ));
        }
        if options.skip.is_none() {
            let method = Method::read(options, &library, &function.attrs, &mut function.sig, Owner::Object)?;
            tools.push(method.expand());
        }
    }
    if tools.is_empty() {
        let message = "the `impl` block has no tools: write `#[tool]` on its methods";
        return Err(Error::new(block.self_ty.span(), message));
    }
    let owner = &block.self_ty;
    let prefix = options.prefix.as_ref().map(|prefix| {
        quote! {
            fn prefix() -> ::std::string::String {
                #prefix.to_owned()
            }
        }
    });
    let id = match &options.id {
        Some(id) => Some(instance_id(id)?),
        None => has_id_method(&block).then(|| instance_id_from(&quote!(self.id()))),
    };
    let rebinding = options.latest.then(|| {
        quote! {
            fn rebinding() -> #library::__private::Rebinding {
                #library::__private::Rebinding::Latest
            }
        }
    });
    let concurrent = options.concurrent.then(|| {
        quote! {
            fn is_concurrent() -> bool {
                true
            }
        }
    });
    Ok(quote! {
        #block

        impl #library::__private::ToolMethods for #owner {
            #prefix
            #id
            #rebinding
            #concurrent

            fn tool_methods() -> ::std::vec::Vec<#library::__private::ToolMethod<Self>> {
                // Created once, because schemas and validators are the same for all objects.
                static __METHODS: ::std::sync::OnceLock<::std::vec::Vec<#library::__private::ToolMethod<#owner>>> =
                    ::std::sync::OnceLock::new();
                ::core::clone::Clone::clone(__METHODS.get_or_init(|| ::std::vec![#(#tools),*]))
            }
        }
    })
}

/// Generates the method `instance_id` from the option `id`: a field, or a call of a method without arguments.
fn instance_id(id: &Expr) -> Result<TokenStream> {
    let source = match id {
        Expr::Path(path) if path.path.get_ident().is_some() => {
            let member = Member::Named(path.path.require_ident()?.clone());
            quote!(self.#member)
        }
        Expr::Call(call) if call.args.is_empty() => {
            let method = &call.func;
            quote!(self.#method())
        }
        _ => {
            return Err(Error::new(
                id.span(),
                "`id` must be a field or a method: `id = name` or `id = name()`",
            ));
        }
    };
    Ok(instance_id_from(&source))
}

/// Generates the method `instance_id` from an expression.
fn instance_id_from(source: &TokenStream) -> TokenStream {
    quote! {
        fn instance_id(&self) -> ::core::option::Option<::std::string::String> {
            ::core::option::Option::Some(::std::string::ToString::to_string(&#source))
        }
    }
}

/// Returns whether the block has a method `id` that takes only `self` and is not `async`. This method is the default of
/// the option `id`.
fn has_id_method(block: &ItemImpl) -> bool {
    block.items.iter().any(|item| match item {
        ImplItem::Fn(function) => {
            let signature = &function.sig;
            let is_shared_reference =
                |receiver: &syn::Receiver| receiver.reference.is_some() && receiver.mutability.is_none();
            let takes_self_only = signature.inputs.len() == 1 && signature.receiver().is_some_and(is_shared_reference);
            signature.ident == "id" && takes_self_only && signature.asyncness.is_none()
        }
        _ => false,
    })
}
