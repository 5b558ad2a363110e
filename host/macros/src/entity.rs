//! The derive macro `Entity`.

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote};
use syn::spanned::Spanned;
use syn::{Attribute, Data, DeriveInput, Error, Fields, Path, Result, parse2};

use crate::attributes::library_path;

/// Expands `#[derive(Entity)]`. An error becomes a `compile_error!`.
pub(crate) fn derive(item: TokenStream) -> TokenStream {
    parse2(item)
        .and_then(|item| expand(&item))
        .unwrap_or_else(|error| error.to_compile_error())
}

/// Generates an implementation of `Serialize`. A local struct with the same fields serializes the fields: it is the
/// `remote` definition of the type for serde. Then `serialize_entity` of the library adds the properties of the entity.
fn expand(item: &DeriveInput) -> Result<TokenStream> {
    if !item.generics.params.is_empty() {
        let message = "an entity cannot be generic: the model needs one schema for its methods";
        return Err(Error::new(item.generics.span(), message));
    }
    let fields = struct_body(item)?;
    let library_option = library_option(&item.attrs)?;
    let library = library_path(library_option.as_ref());
    let (name, serde) = (&item.ident, quote!(#library::__private::serde));
    let (serde_path, remote) = (serde.to_string(), name.to_string());
    let attributes = serde_attributes(&item.attrs);
    Ok(quote! {
        impl #serde::Serialize for #name {
            fn serialize<__S: #serde::Serializer>(
                &self,
                __serializer: __S,
            ) -> ::core::result::Result<__S::Ok, __S::Error> {
                #[derive(#serde::Serialize)]
                #[serde(crate = #serde_path, remote = #remote)]
                #(#attributes)*
                #[allow(dead_code)]
                struct __Fields #fields

                struct __Json<'a>(&'a #name);

                impl #serde::Serialize for __Json<'_> {
                    fn serialize<__S: #serde::Serializer>(
                        &self,
                        __serializer: __S,
                    ) -> ::core::result::Result<__S::Ok, __S::Error> {
                        __Fields::serialize(self.0, __serializer)
                    }
                }

                #library::__private::serialize_entity(self, &__Json(self), __serializer)
            }
        }
    })
}

/// Returns the body of a struct with the same fields and their attributes for serde.
fn struct_body(item: &DeriveInput) -> Result<TokenStream> {
    let reject = |span: Span| {
        let message =
            "an entity must be a struct with named fields, which become the properties of its JSON, or a unit struct";
        Err(Error::new(span, message))
    };
    let Data::Struct(data) = &item.data else {
        return reject(item.ident.span());
    };
    match &data.fields {
        Fields::Named(fields) => {
            let fields = fields.named.iter().map(|field| {
                let (name, ty, attributes) = (&field.ident, &field.ty, serde_attributes(&field.attrs));
                quote!(#(#attributes)* #name: #ty)
            });
            Ok(quote!({ #(#fields),* }))
        }
        Fields::Unit => Ok(quote!(;)),
        Fields::Unnamed(fields) => reject(fields.span()),
    }
}

fn serde_attributes(attributes: &[Attribute]) -> Vec<TokenStream> {
    let serde = attributes.iter().filter(|attribute| attribute.path().is_ident("serde"));
    serde.map(ToTokens::to_token_stream).collect()
}

/// Returns the option `crate` of `#[entity(crate = …)]`.
fn library_option(attributes: &[Attribute]) -> Result<Option<Path>> {
    let mut library = None;
    for attribute in attributes
        .iter()
        .filter(|attribute| attribute.path().is_ident("entity"))
    {
        attribute.parse_nested_meta(|meta| {
            if !meta.path.is_ident("crate") {
                return Err(
                    meta.error("the option of an entity is `crate`; `prefix` and `id` belong to `#[tool] impl`")
                );
            }
            library = Some(meta.value()?.call(Path::parse_mod_style)?);
            Ok(())
        })?;
    }
    Ok(library)
}
