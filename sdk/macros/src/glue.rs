//! Generates the bindings of a plugin and the functions that they call.

use proc_macro2::{Ident, Literal, Span, TokenStream};
use quote::{format_ident, quote};
use syn::{FnArg, ImplItem, Item, Signature};

use crate::attributes::take_docs;
use crate::glue_types::{conversions, resource_name};
use crate::model::{Entity, Function, FunctionKind, Output, Parameter, Passing, Plugin};
use crate::names::{binding, type_binding};
use crate::wit_text;

/// The custom section of the core module from which `toolwit build` reads the WIT with its doc comments.
const SOURCE_SECTION: &str = "toolwit:wit-source";

/// Generates a module next to the author's items. It is compiled for WebAssembly only, so that the items can be tested
/// natively.
pub(crate) fn expand(plugin: &Plugin) -> TokenStream {
    let text = wit_text::write(plugin);
    let world = wit_text::world_name(plugin);
    let wit = quote!(__wit);
    let path = wit_module(plugin);
    let with = plugin
        .has_tool_result
        .then(|| quote!(with: { "toolwit:plugin/types@0.1.0": ::toolwit_guest::__private::types },));
    let functions = plugin
        .functions
        .iter()
        .map(|function| function_glue(function, &wit, None));
    let resources = plugin.entities.iter().map(|entity| {
        let (name, resource) = (type_binding(&entity.name), resource_name(&entity.ident));
        quote!(type #name = #resource;)
    });
    let entities = plugin.entities.iter().map(|entity| entity_glue(entity, &wit));
    let conversions = conversions(plugin, &wit);
    let section = source_section(&text);
    quote! {
        #[cfg(target_family = "wasm")]
        #[doc(hidden)]
        #[allow(
            clippy::all, missing_docs, non_snake_case, unreachable_pub, unsafe_code, unused_imports, unused_mut,
            unused_qualifications, unused_variables
        )]
        mod __toolwit_glue {
            use super::*;

            mod __bindings {
                ::toolwit_guest::wit_bindgen::generate!({
                    inline: #text,
                    // Without the package's `wit` directory.
                    path: [],
                    world: #world,
                    runtime_path: "::toolwit_guest::wit_bindgen::rt",
                    #with
                });
            }

            use #path as __wit;

            struct __Plugin;

            __bindings::export!(__Plugin with_types_in __bindings);

            impl __wit::Guest for __Plugin {
                #(#resources)*
                #(#functions)*
            }

            #(#entities)*
            #conversions
            #section
        }
    }
}

/// Returns the module of the generated bindings that has the trait `Guest`.
fn wit_module(plugin: &Plugin) -> TokenStream {
    let Some(interface) = &plugin.interface else {
        return quote!(self::__bindings);
    };
    let parts = plugin.package.split(':').chain([interface.name.as_str()]).map(binding);
    quote!(self::__bindings::exports #(::#parts)*)
}

/// Generates the custom section with the WIT text. The linker joins the sections of several modules, so each text ends with a
/// zero byte.
fn source_section(text: &str) -> TokenStream {
    let mut bytes = text.as_bytes().to_vec();
    bytes.push(0);
    let length = bytes.len();
    let literal = Literal::byte_string(&bytes);
    quote! {
        #[used]
        #[unsafe(link_section = #SOURCE_SECTION)]
        static __WIT_SOURCE: [::core::primitive::u8; #length] = *#literal;
    }
}

fn entity_glue(entity: &Entity, wit: &TokenStream) -> TokenStream {
    let (ident, resource) = (&entity.ident, resource_name(&entity.ident));
    let guest = format_ident!("Guest{}", type_binding(&entity.name));
    let functions = entity
        .functions
        .iter()
        .map(|function| function_glue(function, wit, Some(entity)));
    quote! {
        pub struct #resource(::core::cell::RefCell<super::#ident>);

        impl #wit::#guest for #resource {
            #(#functions)*
        }
    }
}

/// Generates one function of a generated trait: it converts the arguments, calls the author's function, and converts the
/// result.
fn function_glue(function: &Function, wit: &TokenStream, entity: Option<&Entity>) -> TokenStream {
    let name = binding(&function.name);
    let author_function = &function.ident;
    let path = match entity {
        Some(entity) => {
            let owner = &entity.ident;
            quote!(super::#owner::#author_function)
        }
        None => quote!(super::#author_function),
    };
    let arguments: Vec<Ident> = (0..function.parameters.len())
        .map(|index| Ident::new(&format!("__p{index}"), Span::call_site()))
        .collect();
    let types = function.parameters.iter().map(|parameter| parameter.wit.binding(wit));
    let conversion_statements = arguments
        .iter()
        .zip(&function.parameters)
        .map(|(argument, parameter)| convert(argument, parameter));
    let passed_arguments = arguments
        .iter()
        .zip(&function.parameters)
        .map(|(argument, parameter)| pass(argument, parameter));
    let (receiver, this, first) = receiver(function.kind);
    let call = quote! {
        #(#conversion_statements)*
        #this
        let __result = #path(#first #(#passed_arguments),*);
    };
    if let (FunctionKind::Constructor, Some(entity)) = (function.kind, entity) {
        let resource = resource_name(&entity.ident);
        return quote! {
            fn new(#(#arguments: #types),*) -> Self {
                #call
                #resource(::core::cell::RefCell::new(__result))
            }
        };
    }
    let (output, result) = output(&function.output, wit);
    quote! {
        fn #name(#receiver #(#arguments: #types),*) #output {
            #call
            #result
        }
    }
}

/// Returns the receiver of the generated method, the statement that borrows the entity, and the first argument.
fn receiver(kind: FunctionKind) -> (TokenStream, TokenStream, TokenStream) {
    match kind {
        FunctionKind::Shared => (quote!(&self,), quote!(let __this = self.0.borrow();), quote!(&*__this,)),
        FunctionKind::Exclusive => (
            quote!(&self,),
            quote!(let mut __this = self.0.borrow_mut();),
            quote!(&mut *__this,),
        ),
        FunctionKind::Free | FunctionKind::Constructor | FunctionKind::Static => Default::default(),
    }
}

/// Generates the statement that converts an argument from the generated type to the author's.
fn convert(argument: &Ident, parameter: &Parameter) -> TokenStream {
    let from = quote!(::toolwit_guest::__private::FromWit::from_wit(#argument));
    match &parameter.passing {
        Passing::Value(ty) | Passing::Reference(ty) => quote!(let #argument: #ty = #from;),
        Passing::OptionalReference(ty) | Passing::OptionalSlice(ty) => {
            quote!(let #argument: ::core::option::Option<#ty> = #from;)
        }
        Passing::Borrow(entity) => {
            let resource = resource_name(entity);
            quote!(let #argument = #argument.get::<#resource>().0.borrow();)
        }
        Passing::BorrowMut(entity) => {
            let resource = resource_name(entity);
            quote!(let mut #argument = #argument.get::<#resource>().0.borrow_mut();)
        }
    }
}

/// Generates the expression that passes a converted argument to the author's function.
fn pass(argument: &Ident, parameter: &Parameter) -> TokenStream {
    match &parameter.passing {
        Passing::Value(_) => quote!(#argument),
        Passing::Reference(_) => quote!(&#argument),
        Passing::OptionalReference(_) => quote!(#argument.as_ref()),
        Passing::OptionalSlice(_) => quote!(#argument.as_deref()),
        Passing::Borrow(_) => quote!(&*#argument),
        Passing::BorrowMut(_) => quote!(&mut *#argument),
    }
}

/// Returns the result type of the generated function, and the expression that converts `__result`.
fn output(output: &Output, wit: &TokenStream) -> (TokenStream, TokenStream) {
    let into = quote!(::toolwit_guest::__private::IntoWit::into_wit);
    match output {
        Output::None => (TokenStream::new(), quote!(__result)),
        Output::Value(ty) => {
            let ty = ty.binding(wit);
            (quote!(-> #ty), quote!(#into(__result)))
        }
        Output::DisplayedError(ty) => {
            let ty = ty.as_ref().map_or_else(|| quote!(()), |ty| ty.binding(wit));
            // The alternative form of some error types contains their sources.
            let text = quote!(|__error| ::std::format!("{:#}", __error));
            (
                quote!(-> ::core::result::Result<#ty, ::std::string::String>),
                quote!(#into(__result.map_err(#text))),
            )
        }
    }
}

/// Removes the doc comments of parameters, which the compiler does not allow.
pub(crate) fn remove_parameter_docs(signature: &mut Signature) {
    for input in &mut signature.inputs {
        if let FnArg::Typed(typed) = input {
            let _ = take_docs(&mut typed.attrs);
        }
    }
}

/// Removes the doc comments of the parameters of a function, or of the methods of an `impl` block.
pub(crate) fn remove_parameter_docs_of_item(item: &mut Item) {
    match item {
        Item::Fn(function) => remove_parameter_docs(&mut function.sig),
        Item::Impl(block) => {
            for member in &mut block.items {
                if let ImplItem::Fn(method) = member {
                    remove_parameter_docs(&mut method.sig);
                }
            }
        }
        _ => {}
    }
}
