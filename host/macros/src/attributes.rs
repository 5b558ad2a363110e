//! What stands in the parentheses of the attribute.

use proc_macro2::{Span, TokenStream};
use syn::meta::ParseNestedMeta;
use syn::parse::Parser;
use syn::spanned::Spanned;
use syn::{Attribute, Error, Expr, ExprLit, Lit, LitStr, Meta, Result};

/// The options of a function or method.
#[derive(Default)]
pub(crate) struct ToolOptions {
    pub(crate) name: Option<LitStr>,
    pub(crate) description: Option<LitStr>,
    pub(crate) category: Option<LitStr>,
    pub(crate) return_direct: bool,
    pub(crate) skip: Option<Span>,
}

impl ToolOptions {
    pub(crate) fn parse(attribute: TokenStream) -> Result<Self> {
        let mut options = Self::default();
        syn::meta::parser(|meta| options.take(&meta)).parse2(attribute)?;
        Ok(options)
    }

    fn take(&mut self, meta: &ParseNestedMeta<'_>) -> Result<()> {
        if meta.path.is_ident("name") {
            let name: LitStr = meta.value()?.parse()?;
            check_name(&name)?;
            self.name = Some(name);
        } else if meta.path.is_ident("description") {
            self.description = Some(meta.value()?.parse()?);
        } else if meta.path.is_ident("category") {
            self.category = Some(meta.value()?.parse()?);
        } else if meta.path.is_ident("return_direct") {
            self.return_direct = true;
        } else if meta.path.is_ident("skip") {
            self.skip = Some(meta.path.span());
        } else {
            return Err(
                meta.error("the options of a tool are `name`, `description`, `category`, `return_direct` and `skip`")
            );
        }
        Ok(())
    }
}

/// The options of an `impl` block.
#[derive(Default)]
pub(crate) struct ImplOptions {
    pub(crate) prefix: Option<LitStr>,
    pub(crate) id: Option<Expr>,
}

impl ImplOptions {
    pub(crate) fn parse(attribute: TokenStream) -> Result<Self> {
        let mut options = Self::default();
        let parser = syn::meta::parser(|meta| {
            if meta.path.is_ident("prefix") {
                options.prefix = Some(meta.value()?.parse()?);
            } else if meta.path.is_ident("id") {
                options.id = Some(meta.value()?.parse()?);
            } else {
                return Err(meta.error("the options of an `impl` are `prefix` and `id`"));
            }
            Ok(())
        });
        parser.parse2(attribute)?;
        Ok(options)
    }
}

/// The options of a parameter.
#[derive(Default)]
pub(crate) struct ParameterOptions {
    pub(crate) default: Option<Expr>,
    pub(crate) description: Option<LitStr>,
}

impl ParameterOptions {
    /// Takes the options and the doc comment away from a parameter, on which the compiler allows neither.
    pub(crate) fn take_from(attributes: &mut Vec<Attribute>) -> Result<(Self, Option<String>)> {
        let mut options = Self::default();
        for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("tool")) {
            attribute.parse_nested_meta(|meta| {
                if meta.path.is_ident("default") {
                    options.default = Some(meta.value()?.parse()?);
                } else if meta.path.is_ident("description") {
                    options.description = Some(meta.value()?.parse()?);
                } else {
                    return Err(meta.error("the options of a parameter are `default` and `description`"));
                }
                Ok(())
            })?;
        }
        let doc = doc_of(attributes);
        attributes.retain(|attribute| !attribute.path().is_ident("tool") && !attribute.path().is_ident("doc"));
        Ok((options, doc))
    }
}

/// Takes `#[tool]` away from a method, if it is there.
pub(crate) fn take_tool_attribute(attributes: &mut Vec<Attribute>) -> Result<Option<ToolOptions>> {
    let is_ours = |attribute: &Attribute| {
        attribute
            .path()
            .segments
            .last()
            .is_some_and(|last| last.ident == "tool")
    };
    let Some(at) = attributes.iter().position(is_ours) else {
        return Ok(None);
    };
    let options = match attributes.remove(at).meta {
        Meta::Path(_) => TokenStream::new(),
        Meta::List(list) => list.tokens,
        Meta::NameValue(pair) => return Err(Error::new(pair.span(), "write `#[tool(…)]`")),
    };
    if let Some(second) = attributes.iter().find(|attribute| is_ours(attribute)) {
        return Err(Error::new(second.span(), "`#[tool]` stands here twice"));
    }
    ToolOptions::parse(options).map(Some)
}

/// Returns a doc comment as one text: lines of a paragraph joined, paragraphs apart.
pub(crate) fn doc_of(attributes: &[Attribute]) -> Option<String> {
    let lines = attributes.iter().filter_map(|attribute| match &attribute.meta {
        Meta::NameValue(pair) if pair.path.is_ident("doc") => match &pair.value {
            Expr::Lit(ExprLit {
                lit: Lit::Str(text), ..
            }) => Some(text.value()),
            _ => None,
        },
        _ => None,
    });
    let text: Vec<String> = lines
        .flat_map(|text| text.split('\n').map(|line| line.trim().to_owned()).collect::<Vec<_>>())
        .collect();
    let paragraphs: Vec<String> = text
        .split(String::is_empty)
        .filter(|lines| !lines.is_empty())
        .map(|lines| lines.join(" "))
        .collect();
    (!paragraphs.is_empty()).then(|| paragraphs.join("\n\n"))
}

/// A name that every model takes: `^[a-zA-Z_][a-zA-Z0-9_-]{0,63}$`.
fn check_name(name: &LitStr) -> Result<()> {
    let text = name.value();
    let first_fits = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    let rest_fits = text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
    if first_fits && rest_fits && text.len() <= 64 {
        return Ok(());
    }
    let message = "no model takes this name: use letters, digits, `_` and `-`, at most 64, the first no digit";
    Err(Error::new(name.span(), message))
}
