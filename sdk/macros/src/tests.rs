//! The WIT that modules become, and the errors at what has no form in WIT.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use proc_macro2::TokenStream;
use quote::quote;

/// Returns the WIT in an expansion.
fn wit(expanded: &TokenStream) -> String {
    let text = expanded.to_string();
    let start = text.find("inline : ").unwrap_or_else(|| panic!("no WIT in {text}")) + "inline : ".len();
    let end = text[start..].find(" , path").expect("the path follows");
    syn::parse_str::<syn::LitStr>(&text[start..start + end])
        .unwrap()
        .value()
}

fn module(content: TokenStream) -> TokenStream {
    crate::expand::tools(TokenStream::new(), quote!(mod shop { #content }))
}

/// Returns the first error of an expansion.
fn error(expanded: &TokenStream) -> String {
    let text = expanded.to_string();
    let rest = text
        .split("compile_error ! { ")
        .nth(1)
        .unwrap_or_else(|| panic!("no error in {text}"));
    let literal = rest.split(" }").next().unwrap();
    syn::parse_str::<syn::LitStr>(literal).unwrap().value()
}

#[test]
fn module_becomes_an_interface_with_its_docs() {
    let expanded = module(quote! {
        //! Sell things.

        type Cents = u64;

        /// A thing.
        pub struct Item {
            /// Its name.
            pub name: String,
            pub price: Cents,
            pub r#type: Option<Kind>,
        }

        pub enum Kind { Small, VeryLarge }

        pub enum Problem { Gone(String), At(u8, char), Closed }

        pub struct Unused { pub map: HashMap<String, String> }

        /// A cart.
        pub struct Cart(Vec<Item>);

        impl Cart {
            /// Opens a cart.
            pub fn new(first: &Item) -> Self {}
            pub fn id(&self) -> &str {}
            /// Adds an item.
            ///
            /// Twice, if it is there.
            pub fn add(&mut self, /** The new item. */ item: Item) -> Result<u32, Problem> {}
            /// Finds a cart.
            pub fn find(id: &str) -> Option<Self> {}
            fn private(&self, map: HashMap<String, String>) {}
        }

        /// Pays a cart.
        pub fn pay(cart: Cart, from: &Cart, note: Option<&str>) -> crate::Result<(bool, Vec<f64>)> {}

        fn private(map: HashMap<String, String>) {}
    });
    let expected = r"package acme:shop@VERSION;

/// Sell things.
interface shop {
    /// A thing.
    record item {
        /// Its name.
        name: string,
        price: u64,
        %type: option<kind>,
    }
    enum kind {
        small,
        very-large,
    }
    variant problem {
        gone(string),
        at(tuple<u8, char>),
        closed,
    }
    /// A cart.
    resource cart {
        /// Opens a cart.
        constructor(first: item);
        /// The id of the `Cart`.
        id: func() -> string;
        /// Adds an item.
        ///
        /// Twice, if it is there.
        ///
        /// - `item`: The new item.
        add: func(item: item) -> result<u32, problem>;
        /// Finds a cart.
        find: static func(id: string) -> option<cart>;
    }
    /// Pays a cart.
    pay: func(cart: cart, %from: borrow<cart>, note: option<string>) -> result<tuple<bool, list<f64>>, string>;
}

world shop-plugin {
    export shop;
}
";
    let expected = expected
        .replace("acme:shop", "plugin:toolwit-guest-macros")
        .replace("VERSION", env!("CARGO_PKG_VERSION"));
    assert_eq!(wit(&expanded), expected);
    assert!(
        !expanded.to_string().contains("The new item. */"),
        "the docs of parameters are removed"
    );
}

#[test]
fn function_becomes_an_export_of_a_world() {
    let function = quote!(
        /** Answers. */
        fn answer(text: &str) -> ToolResult {}
    );
    let expanded = crate::expand::tool(quote!(package = "acme:shop"), function);
    let text = wit(&expanded);
    assert!(
        text.starts_with(&format!("package acme:shop@{};", env!("CARGO_PKG_VERSION"))),
        "{text}"
    );
    assert!(text.contains("world answer-tool {\n    use toolwit:plugin/types@0.1.0.{tool-result};\n    /// Answers."));
    assert!(text.contains("    export answer: func(text: string) -> tool-result;\n"));
    assert!(
        text.contains("record tool-result {") && !text.contains("interface context"),
        "{text}"
    );
}

#[test]
fn types_without_a_form_in_wit_are_refused_with_the_type_to_write() {
    for (signature, fix) in [
        (
            quote!(f(n: usize)),
            "`usize` is not a type of tools: write `u32` or `u64`",
        ),
        (quote!(f(m: HashMap<String, u8>)), "write `Vec<(K, V)>`"),
        (quote!(f() -> Vec<std::path::PathBuf>), "write `String`"),
        (quote!(f(v: serde_json::Value)), "struct with named fields"),
        (quote!(f(v: Vec<&str>)), "write the owned type"),
        (quote!(f(v: [u8; 4])), "write `Vec<T>`"),
        (
            quote!(f() -> Result<u8, ParseIntError>),
            "return `toolwit_guest::Result<T>`",
        ),
        (quote!(r#gen()), "is a keyword in the generated bindings"),
        (quote!(f(v: impl Display)), "one concrete type"),
        (quote!(f(v: &mut String)), "return the changed value"),
        (quote!(f((a, b): (u8, u8))), "give the parameter a name"),
        (quote!(f(v: Unknown)), "define it in this module"),
        (quote!(f(v: Opaque)), "`Opaque` is neither a record nor an entity"),
        (quote!(f(v: Option<&Cart>)), "write two functions"),
        (quote!(f(a: &mut Cart, b: &Cart)), "the same `Cart` twice"),
        (quote!(f() -> &Cart), "cannot be returned by reference"),
        (quote!(f(v: Tree)), "`Tree` contains itself"),
        (quote!(f(v: Branch)), "`Branch` contains itself"),
        (quote!(f(v: Forest)), "`Forest` contains itself"),
        (
            quote!(f(v: Node)),
            "`other::Node` is not a type of tools: define it in this module",
        ),
        (quote!(f(v: Shape)), "`Circle(ThatStruct)`"),
        (quote!(f<T>(v: T)), "must not be generic"),
        (quote!(f(v: ToolResult)), "it can only be returned"),
    ] {
        let expanded = module(quote! {
            pub struct Opaque { secret: u8 }
            pub struct Tree { pub children: Vec<Tree> }
            pub struct Branch { pub next: Option<Box<self::Branch>> }
            pub enum Forest { Tree(u8), Trees(Vec<Self>) }
            pub struct Node { pub next: Option<other::Node> }
            pub enum Shape { Circle { radius: f64 } }
            pub struct Cart(u8);
            impl Cart {
                /// Counts.
                pub fn count(&self) -> u8 {}
            }
            /// Runs.
            pub fn #signature {}
        });
        let message = error(&expanded);
        assert!(message.contains(fix), "{signature}: {message}");
    }
}

#[test]
fn items_that_are_no_tools_are_refused_with_the_fix() {
    for (content, fix) in [
        (quote!(), "the module has no tools"),
        (
            quote!(
                pub fn f() {}
            ),
            "write `///` above it",
        ),
        (
            quote!(
                /** F. */
                pub async fn f() {}
            ),
            "must not be `async`",
        ),
        (
            quote!(
                /** F. */
                #[cfg(test)]
                pub fn f() {}
            ),
            "cannot depend on `cfg`",
        ),
        (
            quote!(
                /** F. */
                pub fn größe() {}
            ),
            "has no name in WIT",
        ),
        (
            quote!(
                pub struct Money {
                    pub cents: u8,
                }
                /** M. */
                pub fn money() -> Money {}
            ),
            "have the same name in WIT, `money`",
        ),
        (
            quote!(pub struct Guest(u8); impl Guest { /** F. */ pub fn f(&self) {} }),
            "rename the type",
        ),
        (
            quote!(pub struct Cart(u8); impl Cart { fn f(&self) {} }),
            "an entity without tools",
        ),
        (
            quote!(pub struct Cart(u8); impl Cart { /** F. */ pub fn f(self) {} }),
            "a parameter of type `Cart`",
        ),
    ] {
        let message = error(&module(content.clone()));
        assert!(message.contains(fix), "{content}: {message}");
    }
    let both = module(quote!(
        pub fn f() {}
        pub fn g() {}
    ));
    assert_eq!(
        both.to_string().matches("compile_error").count(),
        2,
        "all errors are reported together"
    );
    let message = error(&crate::expand::tool(
        TokenStream::new(),
        quote!(
            /** F. */
            fn f(v: Item) {}
        ),
    ));
    assert!(message.contains("`#[toolwit_guest::tools]`"), "{message}");
    let message = error(&crate::expand::tools(
        quote!(package = "Acme"),
        quote!(
            mod m {}
        ),
    ));
    assert!(message.contains("kebab case"), "{message}");
}
