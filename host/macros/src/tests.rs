//! Tests of generated code, and of the compile errors for code that cannot become a tool, an entity or a facade.

#![allow(clippy::unwrap_used)]

use proc_macro2::TokenStream;
use quote::quote;

use crate::expand::tool;
use crate::{entity, facade};

/// Returns the compile errors of an item with the attribute `#[tool]`.
fn errors(attribute: TokenStream, item: TokenStream) -> String {
    errors_in(tool(attribute, item))
}

/// Returns the messages of the `compile_error!` calls in generated code.
fn errors_in(expanded: TokenStream) -> String {
    let file: syn::File = syn::parse2(expanded).unwrap();
    let messages = file.items.iter().filter_map(|item| match item {
        syn::Item::Macro(call) if call.mac.path.segments.last().unwrap().ident == "compile_error" => {
            Some(call.mac.parse_body::<syn::LitStr>().unwrap().value())
        }
        _ => None,
    });
    messages.collect::<Vec<_>>().join("\n")
}

/// Returns the compile errors of a tool with a parameter of this type.
fn parameter_errors(ty: TokenStream) -> String {
    errors(quote!(), quote! { #[doc = "Does."] fn act(thing: #ty) {} })
}

// accept: 77
#[test]
fn unsupported_parameter_types_are_rejected_with_a_suggestion() {
    let messages = [
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
        quote!(<u32 as Add>::Output),
        quote!(*const u8),
    ]
    .map(parameter_errors);
    insta::assert_snapshot!(messages.join("\n"), @"
    `thing` cannot be of this type: it is borrowed; use `String`
    `thing` cannot be of this type: it is borrowed; use `Vec<u8>`
    `thing` cannot be of this type: it is borrowed; use the value itself
    `thing` cannot be of this type: a function cannot be represented in JSON
    `thing` cannot be of this type: a function cannot be represented in JSON
    `thing` cannot be of this type: a future cannot be represented in JSON; use the value itself, or make the function `async`
    `thing` cannot be of this type: a future cannot be represented in JSON; use the value itself, or make the function `async`
    `thing` cannot be of this type: a stream cannot be represented in JSON; use a `Vec`
    `thing` cannot be of this type: a stream cannot be represented in JSON; use a `Vec`
    `thing` cannot be of this type: the schema needs one concrete type
    `thing` cannot be of this type: `Self` cannot be named in a schema; write the type's name
    `thing` cannot be of this type: the schema needs one concrete type; write the type that the path stands for
    `thing` cannot be of this type: a pointer cannot be represented in JSON
    ");
    for supported in [
        quote!(String),
        quote!(Option<Vec<u8>>),
        quote!(std::collections::HashMap<String, Order>),
    ] {
        assert_eq!(parameter_errors(supported), "");
    }
}

// accept: 77
#[test]
fn functions_that_cannot_be_tools_are_rejected_with_a_reason() {
    let messages = [
        errors(quote!(), quote! { fn act() {} }),
        errors(quote!(), quote! { #[doc = "Does."] fn act<T>(a: T) {} }),
        errors(quote!(), quote! { #[doc = "Does."] unsafe fn act() {} }),
        errors(quote!(), quote! { #[doc = "Does."] fn act((a, b): (u8, u8)) {} }),
        errors(quote!(), quote! { #[doc = "Does."] fn act(&self) {} }),
        errors(
            quote!(),
            quote! { #[doc = "Does."] fn act() -> impl Stream<Item = u8> { empty() } },
        ),
        errors(quote!(name = "1 act"), quote! { #[doc = "Does."] fn act() {} }),
        errors(quote!(hidden), quote! { #[doc = "Does."] fn act() {} }),
        errors(quote!(), quote! { #[doc = "Does."] fn act(#[tool(required)] a: u8) {} }),
        errors(quote!(), quote! { struct Act; }),
        errors(quote!(blocking), quote! { #[doc = "Does."] async fn act() {} }),
    ];
    insta::assert_snapshot!(messages.join("\n"), @r#"
    the model chooses tools by their description: write a doc comment, or `#[tool(description = "…")]`
    a generic function cannot be a tool: the model needs one schema; write it for concrete types
    an unsafe function cannot be a tool: a model cannot uphold its safety contract
    give the parameter a plain name, which the model can use
    `#[tool]` on a method needs `#[tool]` on its `impl` block too
    the result cannot be of this type: a stream cannot be represented in JSON; use a `Vec`
    invalid tool name: use at most 64 letters, digits, `_` and `-`, and start with a letter or `_`
    the options of a tool are `name`, `description`, `category`, `effect`, `return_direct`, `blocking`, `skip` and `crate`
    the options of a parameter are `default` and `description`
    `#[tool]` can only be applied to a function or an `impl` block
    `blocking` is for functions that are not `async`: in an `async` function, use `spawn_blocking`
    "#);
}

// accept: 77
#[test]
fn invalid_impl_blocks_are_rejected_with_a_reason() {
    let messages = [
        errors(
            quote!(),
            quote! { impl Cart { fn hidden(&self) {} #[tool(skip)] fn skipped(&self) {} } },
        ),
        errors(
            quote!(),
            quote! { impl<T> Cart<T> { #[tool] #[doc = "Does."] fn act(&self) {} } },
        ),
        errors(
            quote!(),
            quote! { impl Clone for Cart { #[tool] #[doc = "Does."] fn act(&self) {} } },
        ),
        errors(
            quote!(),
            quote! { impl Cart { #[tool] #[doc = "Does."] fn act(&mut self) {} } },
        ),
        errors(
            quote!(),
            quote! { impl Cart { #[tool] #[doc = "Does."] fn act(self) {} } },
        ),
        errors(
            quote!(),
            quote! { impl Cart { #[tool] #[tool] #[doc = "Does."] fn act(&self) {} } },
        ),
        errors(
            quote!(id = self.id),
            quote! { impl Cart { #[tool] #[doc = "Does."] fn act(&self) {} } },
        ),
        errors(
            quote!(name = "x"),
            quote! { impl Cart { #[tool] #[doc = "Does."] fn act(&self) {} } },
        ),
    ];
    insta::assert_snapshot!(messages.join("\n"), @"
    the `impl` block has no tools: write `#[tool]` on its methods
    `#[tool]` cannot be applied to a generic `impl`: the model needs one schema; write it for a concrete type
    `#[tool]` can only be applied to an inherent `impl`, not to the `impl` of a trait
    calls may run concurrently: take `&self`, and put mutable state into a `Mutex`
    a tool can be called more than once: take `&self` or `self: Arc<Self>`
    `#[tool]` is written twice
    `id` must be a field or a method: `id = name` or `id = name()`
    the options of an `impl` are `prefix`, `id`, `latest`, `concurrent` and `crate`
    ");
}

#[test]
fn generated_code_uses_the_crate_that_the_option_names() {
    let function = tool(
        quote!(crate = toolwit_core),
        quote! { #[doc = "Does."] fn act(a: u8, context: &ToolContext) {} },
    );
    let block = tool(
        quote!(crate = some::path),
        quote! { impl Cart { #[tool] #[doc = "Does."] fn act(&self, a: u8) {} } },
    );
    let (function, block) = (function.to_string(), block.to_string());
    assert!(!function.contains(":: toolwit ::"), "{function}");
    assert!(
        function.contains("toolwit_core :: __private :: ToolMethod"),
        "{function}"
    );
    assert!(
        function.contains("crate = \"toolwit_core :: __private :: serde\""),
        "{function}"
    );
    assert!(!block.contains(":: toolwit ::"), "{block}");
    assert!(
        block.contains("impl some :: path :: __private :: ToolMethods for Cart"),
        "{block}"
    );
    let misplaced = errors(
        quote!(),
        quote! { impl Cart { #[tool(crate = x)] #[doc = "Does."] fn act(&self) {} } },
    );
    assert_eq!(misplaced, "write `crate` in the `#[tool]` of the `impl` block");
}

#[test]
fn types_that_cannot_be_entities_or_facades_are_rejected_with_a_reason() {
    let messages = [
        errors_in(entity::derive(quote! { enum Customer { New } })),
        errors_in(entity::derive(quote! { struct Customer(String); })),
        errors_in(entity::derive(quote! { struct Customer<T> { of: T } })),
        errors_in(entity::derive(
            quote! { #[entity(id = name)] struct Customer { name: String } },
        )),
        errors_in(facade::facade(quote!(), quote! { struct Files; })),
        errors_in(facade::facade(
            quote!(hidden),
            quote! { #[doc = "Opens."] struct Files; },
        )),
        errors_in(facade::facade(quote!(), quote! { #[doc = "Opens."] enum Files {} })),
        errors_in(facade::facade(
            quote!(),
            quote! { #[doc = "Opens."] impl Files { fn read(&self) {} } },
        )),
    ];
    insta::assert_snapshot!(messages.join("\n"), @r#"
    an entity must be a struct with named fields, which become the properties of its JSON, or a unit struct
    an entity must be a struct with named fields, which become the properties of its JSON, or a unit struct
    an entity cannot be generic: the model needs one schema for its methods
    the option of an entity is `crate`; `prefix` and `id` belong to `#[tool] impl`
    the model chooses facades by their description: write a doc comment, or `#[facade(description = "…")]`
    the options of a facade are `name`, `description`, `category`, `category_parameter`, `usage_notes`, `exclusive` and `crate`
    `#[facade]` can only be applied to a struct or an `impl` block
    the `impl` block has no tools: write `#[tool]` on its methods
    "#);
}
