//! What is said about code that cannot be a tool.

#![allow(clippy::unwrap_used)]

use proc_macro2::TokenStream;
use quote::quote;

use crate::expand::tool;

/// The complaint about an item, as the compiler shows it.
fn complaint(attribute: TokenStream, item: TokenStream) -> String {
    let file: syn::File = syn::parse2(tool(attribute, item)).unwrap();
    let messages = file.items.iter().filter_map(|item| match item {
        syn::Item::Macro(call) if call.mac.path.segments.last().unwrap().ident == "compile_error" => {
            Some(call.mac.parse_body::<syn::LitStr>().unwrap().value())
        }
        _ => None,
    });
    messages.collect::<Vec<_>>().join("\n")
}

fn about_parameter(kind: TokenStream) -> String {
    complaint(quote!(), quote! { #[doc = "Does."] fn act(thing: #kind) {} })
}

// accept: 77
#[test]
fn types_that_no_model_can_give_are_refused_by_name() {
    let told = [
        quote!(&str),
        quote!(&[u8]),
        quote!(&Order),
        quote!(fn(u8)),
        quote!(Box<dyn Fn(u8) -> u8>),
        quote!(impl Future<Output = u8>),
        quote!(Pin<Box<dyn Future<Output = u8>>>),
        quote!(tokio::sync::mpsc::Receiver<u8>),
        quote!(Vec<BoxStream<'static, u8>>),
        quote!(impl Into<String>),
        quote!(Option<Self>),
        quote!(*const u8),
    ]
    .map(about_parameter);
    insta::assert_snapshot!(told.join("\n"), @"
    `thing` cannot be of this type: it is borrowed; take `String`
    `thing` cannot be of this type: it is borrowed; take `Vec<u8>`
    `thing` cannot be of this type: it is borrowed; take the value itself
    `thing` cannot be of this type: a function is no JSON
    `thing` cannot be of this type: a function is no JSON
    `thing` cannot be of this type: a value to come is no JSON; take the value itself, or make the function `async`
    `thing` cannot be of this type: a value to come is no JSON; take the value itself, or make the function `async`
    `thing` cannot be of this type: a stream is no JSON; take a `Vec`
    `thing` cannot be of this type: a stream is no JSON; take a `Vec`
    `thing` cannot be of this type: the schema needs one concrete type
    `thing` cannot be of this type: `Self` cannot be named in a schema; write the type's name
    `thing` cannot be of this type: a pointer is no JSON
    ");
    for fine in [
        quote!(String),
        quote!(Option<Vec<u8>>),
        quote!(std::collections::HashMap<String, Order>),
    ] {
        assert_eq!(about_parameter(fine), "");
    }
}

// accept: 77
#[test]
fn functions_that_cannot_be_tools_are_told_why_and_what_to_do() {
    let told = [
        complaint(quote!(), quote! { fn act() {} }),
        complaint(quote!(), quote! { #[doc = "Does."] fn act<T>(a: T) {} }),
        complaint(quote!(), quote! { #[doc = "Does."] unsafe fn act() {} }),
        complaint(quote!(), quote! { #[doc = "Does."] fn act((a, b): (u8, u8)) {} }),
        complaint(quote!(), quote! { #[doc = "Does."] fn act(&self) {} }),
        complaint(
            quote!(),
            quote! { #[doc = "Does."] fn act() -> impl Stream<Item = u8> { empty() } },
        ),
        complaint(quote!(name = "1 act"), quote! { #[doc = "Does."] fn act() {} }),
        complaint(quote!(hidden), quote! { #[doc = "Does."] fn act() {} }),
        complaint(quote!(), quote! { #[doc = "Does."] fn act(#[tool(required)] a: u8) {} }),
        complaint(quote!(), quote! { struct Act; }),
    ];
    insta::assert_snapshot!(told.join("\n"), @r#"
    the model chooses tools by their description: write a doc comment, or `#[tool(description = "…")]`
    a generic function cannot be a tool: the model needs one schema; write it for concrete types
    an unsafe function cannot be a tool: a model cannot keep its promises
    give the parameter a plain name, which the model can use
    `#[tool]` on a method needs `#[tool]` on its `impl` block too
    the result cannot be of this type: a stream is no JSON; take a `Vec`
    no model takes this name: use letters, digits, `_` and `-`, at most 64, the first no digit
    the options of a tool are `name`, `description`, `category`, `return_direct` and `skip`
    the options of a parameter are `default` and `description`
    `#[tool]` stands on a function or on an `impl` block
    "#);
}

// accept: 77
#[test]
fn impl_blocks_are_told_what_their_methods_must_be() {
    let told = [
        complaint(
            quote!(),
            quote! { impl Cart { fn hidden(&self) {} #[tool(skip)] fn skipped(&self) {} } },
        ),
        complaint(
            quote!(),
            quote! { impl<T> Cart<T> { #[tool] #[doc = "Does."] fn act(&self) {} } },
        ),
        complaint(
            quote!(),
            quote! { impl Clone for Cart { #[tool] #[doc = "Does."] fn act(&self) {} } },
        ),
        complaint(
            quote!(),
            quote! { impl Cart { #[tool] #[doc = "Does."] fn act(&mut self) {} } },
        ),
        complaint(
            quote!(),
            quote! { impl Cart { #[tool] #[doc = "Does."] fn act(self) {} } },
        ),
        complaint(
            quote!(),
            quote! { impl Cart { #[tool] #[tool] #[doc = "Does."] fn act(&self) {} } },
        ),
        complaint(
            quote!(id = self.id),
            quote! { impl Cart { #[tool] #[doc = "Does."] fn act(&self) {} } },
        ),
        complaint(
            quote!(name = "x"),
            quote! { impl Cart { #[tool] #[doc = "Does."] fn act(&self) {} } },
        ),
    ];
    insta::assert_snapshot!(told.join("\n"), @"
    no method here is a tool: write `#[tool]` on those that are to be
    `#[tool]` cannot stand on a generic `impl`: the model needs one schema; write it for a concrete type
    `#[tool]` stands on a type's own `impl`, not on that of a trait
    calls may run side by side: take `&self`, and keep what changes in a `Mutex`
    a tool is called more than once: take `&self` or `self: Arc<Self>`
    `#[tool]` stands here twice
    the id is a field or a method: `id = name` or `id = name()`
    the options of an `impl` are `prefix` and `id`
    ");
}
