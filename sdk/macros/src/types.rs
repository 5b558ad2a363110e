//! The types of WIT, in WIT text and in the generated bindings.

use proc_macro2::{Ident, TokenStream};
use quote::quote;

use crate::names::{escaped, kebab, type_binding};

/// A WIT type.
#[derive(Clone)]
pub(crate) enum WitType {
    Plain(Plain),
    Option(Box<WitType>),
    List(Box<WitType>),
    Tuple(Vec<WitType>),
    Result(Option<Box<WitType>>, Option<Box<WitType>>),
    /// A record, variant, enum or owned entity of the module.
    Local(Ident),
    /// A borrowed entity.
    Borrow(Ident),
    /// `tool-result` of `toolwit:plugin/types`.
    ToolResult,
}

/// A primitive type, or `string`.
#[derive(Clone, Copy)]
pub(crate) struct Plain {
    wit: &'static str,
    rust: &'static str,
}

/// The plain types, by their names in Rust.
const PLAIN: [Plain; 13] = [
    plain("bool", "bool"),
    plain("char", "char"),
    plain("u8", "u8"),
    plain("u16", "u16"),
    plain("u32", "u32"),
    plain("u64", "u64"),
    plain("s8", "i8"),
    plain("s16", "i16"),
    plain("s32", "i32"),
    plain("s64", "i64"),
    plain("f32", "f32"),
    plain("f64", "f64"),
    plain("string", "String"),
];

const fn plain(wit: &'static str, rust: &'static str) -> Plain {
    Plain { wit, rust }
}

impl WitType {
    /// Returns the plain type with a name in Rust, if there is one.
    pub(crate) fn plain(rust: &str) -> Option<Self> {
        PLAIN.iter().find(|plain| plain.rust == rust).copied().map(Self::Plain)
    }

    pub(crate) fn string() -> Self {
        Self::Plain(plain("string", "String"))
    }

    /// Writes the type in WIT.
    pub(crate) fn text(&self) -> String {
        let part = |part: &Option<Box<Self>>| part.as_ref().map_or_else(|| "_".to_owned(), |part| part.text());
        match self {
            Self::Plain(plain) => plain.wit.to_owned(),
            Self::Option(inner) => format!("option<{}>", inner.text()),
            Self::List(inner) => format!("list<{}>", inner.text()),
            Self::Tuple(parts) => {
                let parts: Vec<_> = parts.iter().map(Self::text).collect();
                format!("tuple<{}>", parts.join(", "))
            }
            Self::Result(None, None) => "result".to_owned(),
            Self::Result(ok, None) => format!("result<{}>", part(ok)),
            Self::Result(ok, err) => format!("result<{}, {}>", part(ok), part(err)),
            Self::Local(ident) => escaped(&local_name(ident)),
            Self::Borrow(ident) => format!("borrow<{}>", escaped(&local_name(ident))),
            Self::ToolResult => "tool-result".to_owned(),
        }
    }

    /// Writes the type of the generated bindings, which are in the module `wit`.
    pub(crate) fn binding(&self, wit: &TokenStream) -> TokenStream {
        let part = |part: &Option<Box<Self>>| part.as_ref().map_or_else(|| quote!(()), |part| part.binding(wit));
        match self {
            Self::Plain(plain) if plain.rust == "String" => quote!(::std::string::String),
            Self::Plain(plain) => {
                let name = Ident::new(plain.rust, proc_macro2::Span::call_site());
                quote!(::core::primitive::#name)
            }
            Self::Option(inner) => {
                let inner = inner.binding(wit);
                quote!(::core::option::Option<#inner>)
            }
            Self::List(inner) => {
                let inner = inner.binding(wit);
                quote!(::std::vec::Vec<#inner>)
            }
            Self::Tuple(parts) => {
                let parts = parts.iter().map(|part| part.binding(wit));
                quote!((#(#parts,)*))
            }
            Self::Result(ok, err) => {
                let (ok, err) = (part(ok), part(err));
                quote!(::core::result::Result<#ok, #err>)
            }
            Self::Local(ident) => {
                let name = type_binding(&local_name(ident));
                quote!(#wit::#name)
            }
            Self::Borrow(ident) => {
                let name = type_binding(&format!("{}-borrow", local_name(ident)));
                quote!(#wit::#name<'_>)
            }
            Self::ToolResult => quote!(::toolwit_guest::__private::types::ToolResult),
        }
    }
}

/// Returns the WIT name of a type of the module. The name is valid, because `wit_name` has checked it when the type was read.
fn local_name(ident: &Ident) -> String {
    kebab(&ident.to_string()).unwrap_or_default()
}
