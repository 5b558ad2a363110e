//! A function that becomes a tool.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{Attribute, Error, FnArg, Ident, Receiver, Result, ReturnType, Signature, Type};

use crate::attributes::{EFFECTS, ToolOptions, doc_of};
use crate::parameter::{Argument, Parameter};
use crate::unsupported;

/// The owner of a function.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Owner {
    /// A free function has no owner.
    None,
    /// The type of an `impl` block. In generated code, `__this` holds the object.
    Object,
}

/// A function that becomes a tool.
pub(crate) struct Method {
    options: ToolOptions,
    library: TokenStream,
    function: Ident,
    description: String,
    parameters: Vec<Parameter>,
    call: CallForm,
    is_async: bool,
    is_fallible: bool,
}

/// The form in which generated code calls the function.
enum CallForm {
    /// `name(…)`.
    Plain,
    /// `Self::name(…)`.
    Associated,
    /// `Self::name(&object, …)`.
    Reference,
    /// `Self::name(object, …)`, where `object` is an `Arc`.
    Shared,
}

impl Method {
    /// Reads a signature. Removes the `#[tool]` attributes and doc comments of its parameters, which the compiler does not allow
    /// there.
    pub(crate) fn read(
        options: ToolOptions,
        library: &TokenStream,
        attributes: &[Attribute],
        signature: &mut Signature,
        owner: Owner,
    ) -> Result<Self> {
        check_signature(signature)?;
        let description = options.description.as_ref().map(|text| text.value());
        let Some(description) = description
            .or_else(|| doc_of(attributes))
            .filter(|text| !text.is_empty())
        else {
            let message =
                "the model chooses tools by their description: write a doc comment, or `#[tool(description = \"…\")]`";
            return Err(Error::new(signature.ident.span(), message));
        };
        if let (Some(blocking), Some(_)) = (options.blocking, &signature.asyncness) {
            let message =
                "`blocking` is for functions that are not `async`: in an `async` function, use `spawn_blocking`";
            return Err(Error::new(blocking, message));
        }
        let mut call = match owner {
            Owner::None => CallForm::Plain,
            Owner::Object => CallForm::Associated,
        };
        let mut parameters = Vec::new();
        for input in &mut signature.inputs {
            match input {
                FnArg::Receiver(receiver) => call = read_receiver(receiver, owner)?,
                FnArg::Typed(parameter) => parameters.push(Parameter::read(parameter)?),
            }
        }
        if let ReturnType::Type(_, output) = &signature.output {
            unsupported::check_output(output)?;
        }
        Ok(Self {
            options,
            library: library.clone(),
            function: signature.ident.clone(),
            description,
            parameters,
            call,
            is_async: signature.asyncness.is_some(),
            is_fallible: returns_result(&signature.output),
        })
    }

    /// Returns the name of the function without `r#`.
    pub(crate) fn plain_name(&self) -> Ident {
        self.function.unraw()
    }

    /// Returns the name of the tool.
    pub(crate) fn name(&self) -> String {
        let explicit = self.options.name.as_ref().map(|name| name.value());
        explicit.unwrap_or_else(|| self.plain_name().to_string())
    }

    /// Generates the expression that creates the `ToolMethod`.
    pub(crate) fn expand(&self) -> TokenStream {
        let (name, description) = (self.name(), &self.description);
        let fields = self.arguments().map(Argument::field);
        let defaults = self.arguments().filter_map(Argument::default_function);
        let names: Vec<_> = self.arguments().map(Argument::name).collect();
        let with_category = self
            .options
            .category
            .as_ref()
            .map(|category| quote!(.with_category(#category)));
        let with_effect = self.with_effect();
        let return_direct = self.options.return_direct.then(|| quote!(.return_direct()));
        let library = &self.library;
        let [serde, schemars] = ["serde", "schemars"].map(|name| {
            let name = format_ident!("{name}");
            quote!(#library::__private::#name).to_string()
        });
        let call = self.call_expression();
        let (constructor, object) = match self.call {
            CallForm::Plain => (quote!(#library::__private::ToolMethod::function), None),
            _ => (
                quote!(#library::__private::ToolMethod::new),
                Some(quote!(__this: ::std::sync::Arc<Self>,)),
            ),
        };
        quote! {{
            #[derive(#library::__private::serde::Deserialize, #library::__private::schemars::JsonSchema)]
            #[serde(crate = #serde, deny_unknown_fields)]
            #[schemars(crate = #schemars)]
            struct __Input {
                #(#fields,)*
            }
            #(#defaults)*
            #constructor(#name, #description, |#object __input: __Input, __context: #library::ToolContext| async move {
                let __Input { #(#names),* } = __input;
                #call
            })
            #with_category
            #with_effect
            #return_direct
        }}
    }

    /// Generates the call of `ToolMethod::with_effect`, if there is the option `effect`.
    fn with_effect(&self) -> Option<TokenStream> {
        let effect = self.options.effect.as_ref()?.value();
        let (_, variant) = EFFECTS.iter().find(|(name, _)| *name == effect)?;
        let (variant, library) = (format_ident!("{variant}"), &self.library);
        Some(quote!(.with_effect(#library::__private::EffectClass::#variant)))
    }

    /// Generates the call of the function, as an expression of type `Result`.
    fn call_expression(&self) -> TokenStream {
        let function = &self.function;
        let arguments = self.parameters.iter().map(|parameter| match parameter {
            Parameter::Context { is_by_reference: true } => quote!(&__context),
            Parameter::Context { is_by_reference: false } => quote!(::core::clone::Clone::clone(&__context)),
            Parameter::Argument(argument) => {
                let name = argument.name();
                quote!(#name)
            }
        });
        let call = match self.call {
            CallForm::Plain => quote!(#function(#(#arguments),*)),
            CallForm::Associated => quote!(Self::#function(#(#arguments),*)),
            CallForm::Reference => quote!(Self::#function(&*__this, #(#arguments),*)),
            CallForm::Shared => quote!(Self::#function(__this, #(#arguments),*)),
        };
        let await_suffix = self.is_async.then(|| quote!(.await));
        let library = &self.library;
        let call = match self.options.blocking {
            Some(_) => quote!(#library::__private::run_blocking(move || #call).await),
            None => call,
        };
        if self.is_fallible {
            quote!(#call #await_suffix)
        } else {
            quote!(::core::result::Result::<_, ::core::convert::Infallible>::Ok(#call #await_suffix))
        }
    }

    fn arguments(&self) -> impl Iterator<Item = &Argument> {
        self.parameters.iter().filter_map(|parameter| match parameter {
            Parameter::Argument(argument) => Some(&**argument),
            Parameter::Context { .. } => None,
        })
    }
}

/// Rejects a generic, unsafe or variadic function, which cannot be a tool.
fn check_signature(signature: &Signature) -> Result<()> {
    let reject = |span, message| Err(Error::new(span, message));
    if !signature.generics.params.is_empty() {
        let message = "a generic function cannot be a tool: the model needs one schema; write it for concrete types";
        return reject(signature.generics.span(), message);
    }
    if let Some(unsafety) = &signature.unsafety {
        return reject(
            unsafety.span(),
            "an unsafe function cannot be a tool: a model cannot uphold its safety contract",
        );
    }
    if let Some(variadic) = &signature.variadic {
        return reject(variadic.span(), "a tool must have a fixed number of parameters");
    }
    Ok(())
}

/// Returns the form of a call with this receiver.
fn read_receiver(receiver: &Receiver, owner: Owner) -> Result<CallForm> {
    if owner == Owner::None {
        let message = "`#[tool]` on a method needs `#[tool]` on its `impl` block too";
        return Err(Error::new(receiver.span(), message));
    }
    let is_shared =
        matches!(&*receiver.ty, Type::Path(path) if path.path.segments.last().is_some_and(|last| last.ident == "Arc"));
    if is_shared {
        return Ok(CallForm::Shared);
    }
    match (&receiver.reference, &receiver.mutability) {
        (Some(_), None) => Ok(CallForm::Reference),
        (Some(_), Some(_)) => {
            let message = "calls may run concurrently: take `&self`, and put mutable state into a `Mutex`";
            Err(Error::new(receiver.span(), message))
        }
        (None, _) => Err(Error::new(
            receiver.span(),
            "a tool can be called more than once: take `&self` or `self: Arc<Self>`",
        )),
    }
}

fn returns_result(output: &ReturnType) -> bool {
    let ReturnType::Type(_, ty) = output else {
        return false;
    };
    matches!(&**ty, Type::Path(path) if path.path.segments.last().is_some_and(|last| last.ident == "Result"))
}
