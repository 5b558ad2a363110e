//! Names in Rust, in WIT, and in the bindings that `wit-bindgen` generates.

use heck::{ToKebabCase, ToSnakeCase, ToUpperCamelCase};
use proc_macro2::{Ident, Span};
use syn::ext::IdentExt;
use syn::{Error, Result};

/// The words of the WIT grammar, which a name escapes with `%`.
const WIT_KEYWORDS: [&str; 43] = [
    "as",
    "async",
    "bool",
    "borrow",
    "char",
    "constructor",
    "enum",
    "error-context",
    "export",
    "f32",
    "f64",
    "flags",
    "float32",
    "float64",
    "from",
    "func",
    "future",
    "import",
    "include",
    "interface",
    "list",
    "map",
    "option",
    "own",
    "package",
    "record",
    "resource",
    "result",
    "s16",
    "s32",
    "s64",
    "s8",
    "static",
    "stream",
    "string",
    "tuple",
    "type",
    "u16",
    "u32",
    "u64",
    "u8",
    "use",
    "variant",
];

/// Further words of the WIT grammar.
const WIT_KEYWORDS_OF_WORLDS: [&str; 2] = ["with", "world"];

/// The keywords of Rust to which `wit-bindgen` appends an underscore.
const RUST_KEYWORDS: [&str; 50] = [
    "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "crate", "do", "dyn", "else",
    "enum", "extern", "false", "final", "fn", "for", "if", "impl", "in", "let", "loop", "macro", "match", "mod",
    "move", "mut", "override", "priv", "pub", "ref", "return", "self", "static", "struct", "super", "trait", "true",
    "try", "type", "typeof", "unsafe", "unsized", "use", "virtual", "where", "while", "yield",
];

/// Returns the WIT name of a Rust item, or an error at the item if WIT has no such name.
pub(crate) fn wit_name(ident: &Ident) -> Result<String> {
    let reason = match kebab(&ident.unraw().to_string()) {
        // `wit-bindgen` does not know this keyword.
        Some(name) if name == "gen" => "is a keyword in the generated bindings: rename it",
        Some(name) => return Ok(name),
        None => "has no name in WIT: rename it with ASCII letters, digits and `_`, a letter first",
    };
    Err(Error::new(ident.span(), format!("`{ident}` {reason}")))
}

/// Converts a name to kebab case. `None` if the result is not a WIT name.
pub(crate) fn kebab(name: &str) -> Option<String> {
    let kebab = name.to_kebab_case();
    let is_valid = kebab.starts_with(|c: char| c.is_ascii_lowercase())
        && kebab
            .chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
    is_valid.then_some(kebab)
}

/// Writes a WIT name, with `%` if it is a word of the grammar.
pub(crate) fn escaped(name: &str) -> String {
    if WIT_KEYWORDS.contains(&name) || WIT_KEYWORDS_OF_WORLDS.contains(&name) {
        format!("%{name}")
    } else {
        name.to_owned()
    }
}

/// Returns the name of a function, field or module in the generated bindings.
pub(crate) fn binding(wit_name: &str) -> Ident {
    let snake = if RUST_KEYWORDS.contains(&wit_name) {
        format!("{wit_name}_")
    } else {
        wit_name.to_snake_case()
    };
    Ident::new(&snake, Span::call_site())
}

/// Returns the name of a type or a case in the generated bindings.
pub(crate) fn type_binding(wit_name: &str) -> Ident {
    Ident::new(&wit_name.to_upper_camel_case(), Span::call_site())
}
