//! The options of the attribute `#[tool]` on functions, methods, `impl` blocks and parameters, and the text of doc comments.

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote};
use syn::meta::ParseNestedMeta;
use syn::parse::Parser;
use syn::spanned::Spanned;
use syn::{Attribute, Error, Expr, ExprLit, Lit, LitStr, Meta, Path, Result};

/// The options of a function or method. The field `library` holds the option `crate`. `blocking` and `skip` hold their
/// positions in the source, for error messages.
#[derive(Default)]
pub(crate) struct ToolOptions {
    pub(crate) name: Option<LitStr>,
    pub(crate) description: Option<LitStr>,
    pub(crate) category: Option<LitStr>,
    pub(crate) effect: Option<LitStr>,
    pub(crate) return_direct: bool,
    pub(crate) blocking: Option<Span>,
    pub(crate) skip: Option<Span>,
    pub(crate) library: Option<Path>,
}

impl ToolOptions {
    pub(crate) fn parse(attribute: TokenStream) -> Result<Self> {
        let mut options = Self::default();
        syn::meta::parser(|meta| options.parse_option(&meta)).parse2(attribute)?;
        Ok(options)
    }

    fn parse_option(&mut self, meta: &ParseNestedMeta<'_>) -> Result<()> {
        if meta.path.is_ident("name") {
            let name: LitStr = meta.value()?.parse()?;
            check_name(&name)?;
            self.name = Some(name);
        } else if meta.path.is_ident("description") {
            self.description = Some(meta.value()?.parse()?);
        } else if meta.path.is_ident("category") {
            self.category = Some(meta.value()?.parse()?);
        } else if meta.path.is_ident("effect") {
            let effect: LitStr = meta.value()?.parse()?;
            check_effect(&effect)?;
            self.effect = Some(effect);
        } else if meta.path.is_ident("return_direct") {
            self.return_direct = true;
        } else if meta.path.is_ident("blocking") {
            self.blocking = Some(meta.path.span());
        } else if meta.path.is_ident("skip") {
            self.skip = Some(meta.path.span());
        } else if meta.path.is_ident("crate") {
            self.library = Some(meta.value()?.call(Path::parse_mod_style)?);
        } else {
            return Err(meta.error(
                "the options of a tool are `name`, `description`, `category`, `effect`, `return_direct`, `blocking`, `skip` and `crate`",
            ));
        }
        Ok(())
    }
}

/// The options of an `impl` block. The field `library` holds the option `crate`.
#[derive(Default)]
pub(crate) struct ImplOptions {
    pub(crate) prefix: Option<LitStr>,
    pub(crate) id: Option<Expr>,
    pub(crate) latest: bool,
    pub(crate) concurrent: bool,
    pub(crate) library: Option<Path>,
}

impl ImplOptions {
    pub(crate) fn parse(attribute: TokenStream) -> Result<Self> {
        let mut options = Self::default();
        let parser = syn::meta::parser(|meta| {
            if meta.path.is_ident("prefix") {
                options.prefix = Some(meta.value()?.parse()?);
            } else if meta.path.is_ident("id") {
                options.id = Some(meta.value()?.parse()?);
            } else if meta.path.is_ident("latest") {
                options.latest = true;
            } else if meta.path.is_ident("concurrent") {
                options.concurrent = true;
            } else if meta.path.is_ident("crate") {
                options.library = Some(meta.value()?.call(Path::parse_mod_style)?);
            } else {
                return Err(
                    meta.error("the options of an `impl` are `prefix`, `id`, `latest`, `concurrent` and `crate`")
                );
            }
            Ok(())
        });
        parser.parse2(attribute)?;
        Ok(options)
    }
}

/// Returns the path of the crate that generated code refers to: the option `crate`, by default `::toolwit`.
pub(crate) fn library_path(option: Option<&Path>) -> TokenStream {
    option.map_or_else(|| quote!(::toolwit), ToTokens::to_token_stream)
}

/// The options of a parameter.
#[derive(Default)]
pub(crate) struct ParameterOptions {
    pub(crate) default: Option<Expr>,
    pub(crate) description: Option<LitStr>,
}

impl ParameterOptions {
    /// Parses the options of a parameter, and returns them with the text of its doc comment. Removes both, because the
    /// compiler does not allow them on a parameter.
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

/// Removes `#[tool]` from a method and parses its options. Returns `None` if the method does not have this attribute.
pub(crate) fn take_tool_attribute(attributes: &mut Vec<Attribute>) -> Result<Option<ToolOptions>> {
    let is_tool = |attribute: &Attribute| {
        attribute
            .path()
            .segments
            .last()
            .is_some_and(|last| last.ident == "tool")
    };
    let Some(position) = attributes.iter().position(is_tool) else {
        return Ok(None);
    };
    let options = match attributes.remove(position).meta {
        Meta::Path(_) => TokenStream::new(),
        Meta::List(list) => list.tokens,
        Meta::NameValue(pair) => return Err(Error::new(pair.span(), "write `#[tool(…)]`")),
    };
    if let Some(second) = attributes.iter().find(|attribute| is_tool(attribute)) {
        return Err(Error::new(second.span(), "`#[tool]` is written twice"));
    }
    ToolOptions::parse(options).map(Some)
}

/// Returns the doc comment as one text. Joins the lines of a paragraph with spaces, and the paragraphs with empty lines.
/// Returns `None` if there is no doc comment.
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

/// The values of the option `effect`, each with its variant of `EffectClass`.
pub(crate) const EFFECTS: [(&str, &str); 3] = [("read", "Read"), ("idempotent", "Idempotent"), ("write", "Write")];

fn check_effect(effect: &LitStr) -> Result<()> {
    if EFFECTS.iter().any(|(name, _)| *name == effect.value()) {
        return Ok(());
    }
    Err(Error::new(
        effect.span(),
        "`effect` must be `\"read\"`, `\"idempotent\"` or `\"write\"`",
    ))
}

/// Rejects tool names that a model provider may refuse. A valid name matches `^[a-zA-Z_][a-zA-Z0-9_-]{0,63}$`.
pub(crate) fn check_name(name: &LitStr) -> Result<()> {
    let text = name.value();
    let has_valid_start = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    let has_valid_characters = text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
    if has_valid_start && has_valid_characters && text.len() <= 64 {
        return Ok(());
    }
    let message = "invalid tool name: use at most 64 letters, digits, `_` and `-`, and start with a letter or `_`";
    Err(Error::new(name.span(), message))
}
