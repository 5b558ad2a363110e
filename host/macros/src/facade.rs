//! The attribute `#[facade]`.

use proc_macro2::{Span, TokenStream};
use quote::quote;
use syn::parse::Parser;
use syn::spanned::Spanned;
use syn::{Attribute, Error, Item, ItemImpl, ItemStruct, LitStr, Path, Result, Type, parse2};

use crate::attributes::{ImplOptions, check_name, doc_of, library_path};
use crate::expand::tools_of_impl;

/// The options of a facade. The field `library` holds the option `crate`.
#[derive(Default)]
struct FacadeOptions {
    name: Option<LitStr>,
    description: Option<LitStr>,
    category: Option<LitStr>,
    category_parameter: Option<LitStr>,
    usage_notes: Option<LitStr>,
    exclusive: bool,
    library: Option<Path>,
}

impl FacadeOptions {
    fn parse(attribute: TokenStream) -> Result<Self> {
        let mut options = Self::default();
        let parser = syn::meta::parser(|meta| {
            let option = if meta.path.is_ident("name") {
                &mut options.name
            } else if meta.path.is_ident("description") {
                &mut options.description
            } else if meta.path.is_ident("category") {
                &mut options.category
            } else if meta.path.is_ident("category_parameter") {
                &mut options.category_parameter
            } else if meta.path.is_ident("usage_notes") {
                &mut options.usage_notes
            } else if meta.path.is_ident("exclusive") {
                options.exclusive = true;
                return Ok(());
            } else if meta.path.is_ident("crate") {
                options.library = Some(meta.value()?.call(Path::parse_mod_style)?);
                return Ok(());
            } else {
                return Err(meta.error(
                    "the options of a facade are `name`, `description`, `category`, `category_parameter`, `usage_notes`, \
                     `exclusive` and `crate`",
                ));
            };
            *option = Some(meta.value()?.parse()?);
            Ok(())
        });
        parser.parse2(attribute)?;
        Ok(options)
    }
}

/// Expands `#[facade(attribute)] item`. An error becomes a `compile_error!` in place of the item.
pub(crate) fn facade(attribute: TokenStream, item: TokenStream) -> TokenStream {
    expand(attribute, item).unwrap_or_else(|error| error.to_compile_error())
}

fn expand(attribute: TokenStream, item: TokenStream) -> Result<TokenStream> {
    let options = FacadeOptions::parse(attribute)?;
    match parse2::<Item>(item)? {
        Item::Impl(block) => expand_impl(&options, block),
        Item::Struct(item) => expand_struct(&options, &item),
        other => Err(Error::new(
            other.span(),
            "`#[facade]` can only be applied to a struct or an `impl` block",
        )),
    }
}

/// Generates the tools of an `impl` block, and a facade that reveals them.
fn expand_impl(options: &FacadeOptions, block: ItemImpl) -> Result<TokenStream> {
    let library = library_path(options.library.as_ref());
    let outline = generate_outline(
        options,
        &library,
        &block.attrs,
        type_name(&block.self_ty),
        block.self_ty.span(),
    )?;
    let owner = block.self_ty.clone();
    let tool_options = ImplOptions {
        library: options.library.clone(),
        ..ImplOptions::default()
    };
    let tools = tools_of_impl(&tool_options, block)?;
    Ok(quote! {
        #tools

        impl #library::__private::FacadeObject for #owner {
            fn facade(
                self: ::std::sync::Arc<Self>,
            ) -> ::core::result::Result<#library::__private::FacadeOutline, #library::__private::Error> {
                use #library::__private::FacadeContent as _;
                let mut __outline = #outline;
                #library::__private::FacadeOwner(&self).add_to(&mut __outline)?;
                ::core::result::Result::Ok(__outline)
            }
        }
    })
}

/// Generates a facade of a struct. The facade reveals the methods that are tools, and the facades in the fields.
fn expand_struct(options: &FacadeOptions, item: &ItemStruct) -> Result<TokenStream> {
    if !item.generics.params.is_empty() {
        let message = "`#[facade]` cannot be applied to a generic struct: write it for a concrete type";
        return Err(Error::new(item.generics.span(), message));
    }
    let library = library_path(options.library.as_ref());
    let name = &item.ident;
    let outline = generate_outline(options, &library, &item.attrs, Some(name.to_string()), name.span())?;
    let fields = item.fields.members();
    Ok(quote! {
        #item

        impl #library::__private::FacadeObject for #name {
            fn facade(
                self: ::std::sync::Arc<Self>,
            ) -> ::core::result::Result<#library::__private::FacadeOutline, #library::__private::Error> {
                #[allow(unused_imports)]
                use #library::__private::{FacadeContent as _, NoFacadeContent as _};
                let mut __outline = #outline;
                (&#library::__private::FacadeOwner(&self)).add_to(&mut __outline)?;
                #((&#library::__private::FacadeField(&self.#fields)).add_to(&mut __outline)?;)*
                ::core::result::Result::Ok(__outline)
            }
        }
    })
}

/// Generates the expression that creates the outline of a facade, without its tools.
fn generate_outline(
    options: &FacadeOptions,
    library: &TokenStream,
    attributes: &[Attribute],
    type_name: Option<String>,
    span: Span,
) -> Result<TokenStream> {
    let description = options.description.as_ref().map(LitStr::value);
    let Some(description) = description
        .or_else(|| doc_of(attributes))
        .filter(|text| !text.is_empty())
    else {
        let message = "the model chooses facades by their description: write a doc comment, or \
                       `#[facade(description = \"…\")]`";
        return Err(Error::new(span, message));
    };
    if let Some(name) = &options.name {
        check_name(name)?;
    }
    let name = options.name.as_ref().map(LitStr::value);
    let Some(name) = name.or_else(|| type_name.map(|name| name.to_lowercase())) else {
        return Err(Error::new(
            span,
            "write the name of the facade: `#[facade(name = \"…\")]`",
        ));
    };
    let text_options = [
        ("category", &options.category),
        ("category_parameter", &options.category_parameter),
        ("usage_notes", &options.usage_notes),
    ];
    let set_texts = text_options.into_iter().filter_map(|(field, text)| {
        let (field, text) = (syn::Ident::new(field, Span::call_site()), text.as_ref()?);
        Some(quote!(__outline.#field = ::core::option::Option::Some(#text.to_owned());))
    });
    let set_exclusive = options.exclusive.then(|| quote!(__outline.is_exclusive = true;));
    Ok(quote! {{
        #[allow(unused_mut)]
        let mut __outline = #library::__private::FacadeOutline::new(#name, #description);
        #(#set_texts)*
        #set_exclusive
        __outline
    }})
}

/// Returns the name of the type that an `impl` block is for, or `None` if the type has no path, such as a tuple.
fn type_name(ty: &Type) -> Option<String> {
    match ty {
        Type::Path(path) => path.path.segments.last().map(|last| last.ident.to_string()),
        _ => None,
    }
}
