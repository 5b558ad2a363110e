//! Generates the conversions between the author's types and the generated ones.

use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote};

use crate::model::{Case, DataType, Entity, Field, Plugin, Shape};
use crate::names::{binding, type_binding};

/// Returns the name of the generated type that contains an entity.
pub(crate) fn resource_name(entity: &Ident) -> Ident {
    format_ident!("__{}Resource", entity)
}

/// Generates the conversions of all types of the module, in the directions in which they are used.
pub(crate) fn conversions(plugin: &Plugin, wit: &TokenStream) -> TokenStream {
    let types = plugin.types.iter().map(|ty| {
        let into = ty.is_output.then(|| into_wit(ty, wit));
        let from = ty.is_input.then(|| from_wit(ty, wit));
        quote!(#into #from)
    });
    let entities = plugin.entities.iter().map(|entity| entity_conversions(entity, wit));
    quote!(#(#types)* #(#entities)*)
}

fn entity_conversions(entity: &Entity, wit: &TokenStream) -> TokenStream {
    let (ident, name, resource) = (&entity.ident, type_binding(&entity.name), resource_name(&entity.ident));
    quote! {
        impl ::toolwit_guest::__private::IntoWit for super::#ident {
            type Wit = #wit::#name;

            fn into_wit(self) -> #wit::#name {
                #wit::#name::new(#resource(::core::cell::RefCell::new(self)))
            }
        }

        impl ::toolwit_guest::__private::FromWit for super::#ident {
            type Wit = #wit::#name;

            fn from_wit(wit: #wit::#name) -> Self {
                wit.into_inner::<#resource>().0.into_inner()
            }
        }
    }
}

fn into_wit(ty: &DataType, wit: &TokenStream) -> TokenStream {
    let (ident, name) = (&ty.ident, type_binding(&ty.name));
    let (author, generated) = (quote!(super::#ident), quote!(#wit::#name));
    let body = convert(
        &ty.shape,
        &Direction {
            from: &author,
            to: &generated,
            function: &quote!(::toolwit_guest::__private::IntoWit::into_wit),
            is_into: true,
        },
    );
    quote! {
        impl ::toolwit_guest::__private::IntoWit for #author {
            type Wit = #generated;

            fn into_wit(self) -> #generated {
                let value = self;
                #body
            }
        }
    }
}

fn from_wit(ty: &DataType, wit: &TokenStream) -> TokenStream {
    let (ident, name) = (&ty.ident, type_binding(&ty.name));
    let (author, generated) = (quote!(super::#ident), quote!(#wit::#name));
    let body = convert(
        &ty.shape,
        &Direction {
            from: &generated,
            to: &author,
            function: &quote!(::toolwit_guest::__private::FromWit::from_wit),
            is_into: false,
        },
    );
    quote! {
        impl ::toolwit_guest::__private::FromWit for #author {
            type Wit = #generated;

            fn from_wit(value: #generated) -> Self {
                #body
            }
        }
    }
}

/// A conversion between the author's type and the generated one.
struct Direction<'a> {
    from: &'a TokenStream,
    to: &'a TokenStream,
    /// The function that converts a field or a value of a payload.
    function: &'a TokenStream,
    /// Whether the author's type is the source.
    is_into: bool,
}

impl Direction<'_> {
    /// Orders the two names of a field or case: the name in the source type first.
    fn ordered<T>(&self, author: T, generated: T) -> (T, T) {
        if self.is_into {
            (author, generated)
        } else {
            (generated, author)
        }
    }
}

/// Generates an expression that converts `value`.
fn convert(shape: &Shape, direction: &Direction<'_>) -> TokenStream {
    match shape {
        Shape::Record(fields) => convert_record(fields, direction),
        Shape::Enum(cases) | Shape::Variant(cases) => {
            let arms = cases.iter().map(|case| match_arm(case, direction));
            quote!(match value { #(#arms)* })
        }
    }
}

fn convert_record(fields: &[Field], direction: &Direction<'_>) -> TokenStream {
    let (to, function) = (direction.to, direction.function);
    let fields = fields.iter().map(|field| {
        let (from, to) = direction.ordered(field.ident.clone(), binding(&field.name));
        quote!(#to: #function(value.#from))
    });
    quote!(#to { #(#fields),* })
}

fn match_arm(case: &Case, direction: &Direction<'_>) -> TokenStream {
    let (from, to, function) = (direction.from, direction.to, direction.function);
    let (source, target) = direction.ordered(case.ident.clone(), type_binding(&case.name));
    let parts: Vec<Ident> = (0..case.payload.len())
        .map(|index| format_ident!("__v{index}"))
        .collect();
    match parts.as_slice() {
        [] => quote!(#from::#source => #to::#target,),
        [one] => quote!(#from::#source(#one) => #to::#target(#function(#one)),),
        several if direction.is_into => {
            quote!(#from::#source(#(#several),*) => #to::#target((#(#function(#several)),*)),)
        }
        several => quote!(#from::#source((#(#several),*)) => #to::#target(#(#function(#several)),*),),
    }
}
