//! The parameters of a tool.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{Error, Expr, ExprLit, Ident, Lit, Pat, PatType, Result, Type};

use crate::attributes::ParameterOptions;
use crate::unsupported;

/// A parameter of a function, except `self`.
pub(crate) enum Parameter {
    /// The context of the call, which is not part of the schema.
    Context { is_by_reference: bool },
    /// An argument that the model passes.
    Argument(Box<Argument>),
}

/// A parameter that is a property of the input schema.
pub(crate) struct Argument {
    name: Ident,
    ty: Type,
    description: Option<String>,
    default: Option<Expr>,
}

impl Parameter {
    /// Reads a parameter, and removes its `#[tool]` attributes and its doc comment, which the compiler does not allow there.
    pub(crate) fn read(parameter: &mut PatType) -> Result<Self> {
        let (options, doc) = ParameterOptions::take_from(&mut parameter.attrs)?;
        if let Some(is_by_reference) = is_context_by_reference(&parameter.ty) {
            if let Some(default) = options.default {
                return Err(Error::new(
                    default.span(),
                    "the context of a call cannot have a default",
                ));
            }
            return Ok(Self::Context { is_by_reference });
        }
        let Pat::Ident(pattern) = &*parameter.pat else {
            let message = "give the parameter a plain name, which the model can use";
            return Err(Error::new(parameter.pat.span(), message));
        };
        unsupported::check_parameter(&pattern.ident, &parameter.ty)?;
        Ok(Self::Argument(Box::new(Argument {
            name: pattern.ident.clone(),
            ty: (*parameter.ty).clone(),
            description: options.description.map(|text| text.value()).or(doc),
            default: options.default,
        })))
    }
}

impl Argument {
    pub(crate) fn name(&self) -> &Ident {
        &self.name
    }

    /// Generates the field of the input struct `__Input`.
    pub(crate) fn field(&self) -> TokenStream {
        let (name, ty) = (&self.name, &self.ty);
        let doc = self.description.as_ref().map(|text| quote!(#[doc = #text]));
        let default = match &self.default {
            Some(_) => {
                let path = self.default_function_name().to_string();
                Some(quote!(#[serde(default = #path)]))
            }
            None => is_option(ty).then(|| quote!(#[serde(default)])),
        };
        quote!(#doc #default #name: #ty)
    }

    /// Generates the function that returns the default, if the parameter has one.
    pub(crate) fn default_function(&self) -> Option<TokenStream> {
        let (name, ty, value) = (self.default_function_name(), &self.ty, self.default.as_ref()?);
        let value = match value {
            // A string literal is converted, so that it can be the default of a `String`.
            Expr::Lit(ExprLit { lit: Lit::Str(_), .. }) => quote!(::core::convert::Into::into(#value)),
            _ => quote!(#value),
        };
        Some(quote! {
            fn #name() -> #ty {
                #value
            }
        })
    }

    fn default_function_name(&self) -> Ident {
        format_ident!("__default_{}", self.name.unraw())
    }
}

/// Returns whether a parameter takes the context by reference, or `None` if its type is not `ToolContext`.
fn is_context_by_reference(ty: &Type) -> Option<bool> {
    match ty {
        Type::Reference(reference) if reference.mutability.is_none() => {
            is_context_by_reference(&reference.elem).map(|_| true)
        }
        Type::Path(path) => {
            let last = path.path.segments.last()?;
            (last.ident == "ToolContext" && last.arguments.is_none()).then_some(false)
        }
        _ => None,
    }
}

fn is_option(ty: &Type) -> bool {
    matches!(ty, Type::Path(path) if path.path.segments.last().is_some_and(|last| last.ident == "Option"))
}
