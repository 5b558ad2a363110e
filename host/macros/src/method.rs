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
    /// None: it is a free function.
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
    call: Call,
    is_async: bool,
    is_fallible: bool,
}

/// The form in which the function is called.
enum Call {
    /// `name(…)`.
    Plain,
    /// `Self::name(…)`.
    Associated,
    /// `Self::name(&object, …)`.
    Reference,
    /// `Self::name(object, …)`, where the object is in an `Arc`.
    Shared,
}

impl Method {
    /// Reads a signature, and removes the attributes of its parameters that the compiler would refuse.
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
            let message = "`blocking` is for functions that are not `async`: in an `async` one, use `spawn_blocking`";
            return Err(Error::new(blocking, message));
        }
        let mut call = match owner {
            Owner::None => Call::Plain,
            Owner::Object => Call::Associated,
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
        let defaults = self.arguments().filter_map(Argument::default);
        let names: Vec<_> = self.arguments().map(Argument::name).collect();
        let category = self
            .options
            .category
            .as_ref()
            .map(|category| quote!(.with_category(#category)));
        let effect = self.effect();
        let return_direct = self.options.return_direct.then(|| quote!(.return_direct()));
        let library = &self.library;
        let [serde, schemars] = ["serde", "schemars"].map(|name| {
            let name = format_ident!("{name}");
            quote!(#library::__private::#name).to_string()
        });
        let call = self.call_expression();
        let (constructor, object) = match self.call {
            Call::Plain => (quote!(#library::__private::ToolMethod::function), None),
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
            #category
            #effect
            #return_direct
        }}
    }

    /// Generates the call that sets the effect class of the tool, if the option `effect` sets one.
    fn effect(&self) -> Option<TokenStream> {
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
            Call::Plain => quote!(#function(#(#arguments),*)),
            Call::Associated => quote!(Self::#function(#(#arguments),*)),
            Call::Reference => quote!(Self::#function(&*__this, #(#arguments),*)),
            Call::Shared => quote!(Self::#function(__this, #(#arguments),*)),
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
    let refusal = |span, message| Err(Error::new(span, message));
    if !signature.generics.params.is_empty() {
        let message = "a generic function cannot be a tool: the model needs one schema; write it for concrete types";
        return refusal(signature.generics.span(), message);
    }
    if let Some(unsafety) = &signature.unsafety {
        return refusal(
            unsafety.span(),
            "an unsafe function cannot be a tool: a model cannot uphold its safety contract",
        );
    }
    if let Some(variadic) = &signature.variadic {
        return refusal(variadic.span(), "a tool must have a fixed number of parameters");
    }
    Ok(())
}

fn read_receiver(receiver: &Receiver, owner: Owner) -> Result<Call> {
    if owner == Owner::None {
        let message = "`#[tool]` on a method needs `#[tool]` on its `impl` block too";
        return Err(Error::new(receiver.span(), message));
    }
    let is_shared =
        matches!(&*receiver.ty, Type::Path(path) if path.path.segments.last().is_some_and(|last| last.ident == "Arc"));
    if is_shared {
        return Ok(Call::Shared);
    }
    match (&receiver.reference, &receiver.mutability) {
        (Some(_), None) => Ok(Call::Reference),
        (Some(_), Some(_)) => {
            let message = "calls may run concurrently: take `&self`, and put mutable state into a `Mutex`";
            Err(Error::new(receiver.span(), message))
        }
        (None, _) => Err(Error::new(
            receiver.span(),
            "a tool is called more than once: take `&self` or `self: Arc<Self>`",
        )),
    }
}

fn returns_result(output: &ReturnType) -> bool {
    let ReturnType::Type(_, kind) = output else {
        return false;
    };
    matches!(&**kind, Type::Path(path) if path.path.segments.last().is_some_and(|last| last.ident == "Result"))
}
