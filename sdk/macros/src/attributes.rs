//! Doc comments and the options of the attributes.

use proc_macro2::TokenStream;
use syn::parse::Parser;
use syn::{Attribute, Error, Expr, ExprLit, Lit, LitStr, Meta, Result};

use crate::names::kebab;

/// The namespace of the generated packages.
const NAMESPACE: &str = "plugin";

/// The options of `#[tools]` and `#[tool]`.
pub(crate) struct Options {
    /// The package without its version.
    pub(crate) package: String,
    pub(crate) version: String,
}

impl Options {
    /// Parses the attribute. The default package has the name and the version of the crate.
    pub(crate) fn parse(attribute: TokenStream) -> Result<Self> {
        let mut package = None;
        let parser = syn::meta::parser(|meta| {
            if !meta.path.is_ident("package") {
                return Err(meta.error("the only option is `package = \"namespace:name\"`"));
            }
            package = Some(parse_package(&meta.value()?.parse()?)?);
            Ok(())
        });
        parser.parse2(attribute)?;
        let name = || kebab(&cargo_variable("CARGO_PKG_NAME")).unwrap_or_else(|| "plugin".to_owned());
        Ok(Self {
            package: package.unwrap_or_else(|| format!("{NAMESPACE}:{}", name())),
            version: cargo_variable("CARGO_PKG_VERSION"),
        })
    }
}

/// Reads a variable that cargo sets for the crate that is compiled.
#[expect(
    clippy::disallowed_methods,
    reason = "cargo's own variables describe the author's crate"
)]
fn cargo_variable(name: &str) -> String {
    std::env::var(name).unwrap_or_default()
}

fn parse_package(package: &LitStr) -> Result<String> {
    let text = package.value();
    let is_name = |name: &str| kebab(name).is_some_and(|kebab| kebab == name);
    match text.split_once(':') {
        Some((namespace, name)) if is_name(namespace) && is_name(name) => Ok(text),
        _ => Err(Error::new(
            package.span(),
            "write a namespace and a name in kebab case, such as `acme:weather`; the version is that of the crate",
        )),
    }
}

/// Returns the lines of a doc comment, without the space after `///`, and without blank lines at the beginning and the end.
pub(crate) fn docs(attributes: &[Attribute]) -> Vec<String> {
    let texts = attributes.iter().filter_map(|attribute| match &attribute.meta {
        Meta::NameValue(pair) if pair.path.is_ident("doc") => match &pair.value {
            Expr::Lit(ExprLit {
                lit: Lit::Str(text), ..
            }) => Some(text.value()),
            _ => None,
        },
        _ => None,
    });
    let mut lines: Vec<String> = texts
        .flat_map(|text| text.split('\n').map(clean_line).collect::<Vec<_>>())
        .collect();
    while lines.last().is_some_and(String::is_empty) {
        lines.pop();
    }
    let blank_lines = lines.iter().take_while(|line| line.is_empty()).count();
    lines.split_off(blank_lines)
}

/// Removes the first space of a line, and control characters, which WIT does not allow.
fn clean_line(text: &str) -> String {
    let text = text.strip_prefix(' ').unwrap_or(text).trim_end();
    text.chars().filter(|c| !c.is_control() || *c == '\t').collect()
}

/// Removes the doc comment of a parameter, which the compiler does not allow there, and returns it as one line.
pub(crate) fn take_docs(attributes: &mut Vec<Attribute>) -> Option<String> {
    let lines = docs(attributes);
    attributes.retain(|attribute| !attribute.path().is_ident("doc"));
    (!lines.is_empty()).then(|| lines.join(" "))
}

/// Rejects `#[cfg]`, which the compiler evaluates only after the macro has read the items.
pub(crate) fn refuse_cfg(attributes: &[Attribute]) -> Result<()> {
    match attributes.iter().find(|attribute| attribute.path().is_ident("cfg")) {
        Some(attribute) => Err(Error::new_spanned(
            attribute,
            "a tool and its types cannot depend on `cfg`: write it at the module",
        )),
        None => Ok(()),
    }
}
