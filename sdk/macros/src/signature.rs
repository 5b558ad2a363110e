//! Reads functions and methods.

use proc_macro2::{Group, Ident, TokenStream, TokenTree};
use quote::ToTokens;
use syn::spanned::Spanned;
use syn::{Attribute, Error, FnArg, Pat, Result, ReturnType, Signature, Type, TypeReference, parse_quote};

use crate::attributes::{docs, refuse_cfg, take_docs};
use crate::model::{Function, FunctionKind, Output, Parameter, Passing};
use crate::names::wit_name;
use crate::scope::{Position, Scope, TypeReader, Uses, last_segment, local_ident};
use crate::types::WitType;

/// Reads the functions of a module or an entity.
pub(crate) struct SignatureReader<'a> {
    pub(crate) scope: &'a Scope,
    pub(crate) uses: &'a mut Uses,
    /// The entity of a method.
    pub(crate) owner: Option<&'a Ident>,
}

impl SignatureReader<'_> {
    /// Reads a function. Removes the doc comments of its parameters.
    pub(crate) fn read(&mut self, attributes: &[Attribute], signature: &mut Signature) -> Result<Function> {
        refuse_cfg(attributes)?;
        self.refuse_modifiers(signature)?;
        let ident = signature.ident.clone();
        let kind = self.read_kind(signature)?;
        let mut lines = docs(attributes);
        if lines.is_empty() {
            lines.push(self.default_docs(&ident, kind)?);
        }
        let mut parameters = Vec::new();
        let mut notes = Vec::new();
        for input in &mut signature.inputs {
            let FnArg::Typed(typed) = input else { continue };
            let Pat::Ident(pattern) = &*typed.pat else {
                return Err(Error::new(
                    typed.pat.span(),
                    "give the parameter a name: the model passes arguments by name",
                ));
            };
            if let Some(note) = take_docs(&mut typed.attrs) {
                notes.push(format!("- `{}`: {note}", pattern.ident));
            }
            parameters.push(self.read_parameter(&pattern.ident, &typed.ty)?);
        }
        add_notes(&mut lines, notes);
        self.refuse_aliases(&ident, kind, &parameters)?;
        Ok(Function {
            name: wit_name(&ident)?,
            ident,
            docs: lines,
            kind,
            parameters,
            output: self.read_output(kind, &signature.output)?,
        })
    }

    /// Rejects async, unsafe and generic functions. Lifetime parameters are permitted.
    fn refuse_modifiers(&self, signature: &Signature) -> Result<()> {
        if let Some(word) = &signature.asyncness {
            return Err(Error::new(
                word.span(),
                "a tool must not be `async`: the calls of a plugin are synchronous",
            ));
        }
        if let Some(word) = &signature.unsafety {
            return Err(Error::new(
                word.span(),
                "a tool must not be `unsafe`: a model may pass any argument",
            ));
        }
        let types = signature.generics.type_params().map(Spanned::span);
        match types.chain(signature.generics.const_params().map(Spanned::span)).next() {
            Some(span) => Err(Error::new(
                span,
                "a tool must not be generic: WIT needs one concrete type",
            )),
            None => Ok(()),
        }
    }

    fn read_kind(&self, signature: &Signature) -> Result<FunctionKind> {
        let Some(owner) = self.owner else {
            return Ok(FunctionKind::Free);
        };
        let Some(receiver) = signature.receiver() else {
            let returns_owner = match &signature.output {
                ReturnType::Type(_, ty) => local_ident(ty, Some(owner)).as_ref() == Some(owner),
                ReturnType::Default => false,
            };
            let is_constructor = signature.ident == "new" && returns_owner;
            return Ok(if is_constructor {
                FunctionKind::Constructor
            } else {
                FunctionKind::Static
            });
        };
        match (&receiver.reference, receiver.mutability, &receiver.colon_token) {
            (Some(_), None, None) => Ok(FunctionKind::Shared),
            (Some(_), Some(_), None) => Ok(FunctionKind::Exclusive),
            _ => Err(Error::new_spanned(
                receiver,
                format!(
                    "a method must take `&self` or `&mut self`; to consume the entity, write a function of the module with a parameter of type `{owner}`"
                ),
            )),
        }
    }

    /// Returns the docs of a function without a doc comment. Only the methods `id` and `describe`, which the host calls itself,
    /// have such docs. Any other function is rejected, because the model decides on its calls by the doc comment.
    fn default_docs(&self, ident: &Ident, kind: FunctionKind) -> Result<String> {
        match (self.owner, kind) {
            (Some(owner), FunctionKind::Shared) if ident == "id" => Ok(format!("The id of the `{owner}`.")),
            (Some(owner), FunctionKind::Shared) if ident == "describe" => Ok(format!("The data of the `{owner}`.")),
            _ => {
                let message = format!(
                    "`{ident}` is a tool without a doc comment: write `///` above it for the model, or remove `pub`"
                );
                Err(Error::new(ident.span(), message))
            }
        }
    }

    fn type_reader(&mut self, position: Position) -> TypeReader<'_> {
        TypeReader {
            scope: self.scope,
            uses: &mut *self.uses,
            owner: self.owner,
            position,
        }
    }

    fn read_parameter(&mut self, ident: &Ident, ty: &Type) -> Result<Parameter> {
        let (wit, passing) = match ty {
            Type::Reference(reference) => self.read_reference(reference)?,
            _ => match reference_in_option(ty) {
                Some(reference) => self.read_optional_reference(reference)?,
                None => (
                    self.type_reader(Position::Input).read(ty)?,
                    Passing::Value(self.owned_type(ty)),
                ),
            },
        };
        Ok(Parameter {
            name: wit_name(ident)?,
            wit,
            passing,
        })
    }

    fn read_reference(&mut self, reference: &TypeReference) -> Result<(WitType, Passing)> {
        let inner = &*reference.elem;
        if let Some(entity) = self.scope.entity(inner, self.owner) {
            let passing = match reference.mutability {
                Some(_) => Passing::BorrowMut(entity.clone()),
                None => Passing::Borrow(entity.clone()),
            };
            return Ok((WitType::Borrow(entity), passing));
        }
        refuse_mutability(reference)?;
        let wit = self.type_reader(Position::Input).read_referent(inner)?;
        Ok((wit, Passing::Reference(self.owned_type(inner))))
    }

    fn read_optional_reference(&mut self, reference: &TypeReference) -> Result<(WitType, Passing)> {
        let inner = &*reference.elem;
        if self.scope.entity(inner, self.owner).is_some() {
            return Err(Error::new_spanned(
                reference,
                "a reference to an entity cannot be optional: write two functions",
            ));
        }
        refuse_mutability(reference)?;
        let wit = self.type_reader(Position::Input).read_referent(inner)?;
        let is_slice =
            matches!(inner, Type::Slice(_)) || matches!(inner, Type::Path(path) if path.path.is_ident("str"));
        let owned = self.owned_type(inner);
        let passing = if is_slice {
            Passing::OptionalSlice(owned)
        } else {
            Passing::OptionalReference(owned)
        };
        Ok((WitType::Option(Box::new(wit)), passing))
    }

    /// Returns the owned form of a type behind a reference, with `Self` replaced by the name of the entity.
    fn owned_type(&self, ty: &Type) -> Type {
        match ty {
            Type::Slice(slice) => {
                let item = &slice.elem;
                parse_quote!(::std::vec::Vec<#item>)
            }
            Type::Path(path) if path.path.is_ident("str") => parse_quote!(::std::string::String),
            _ => with_owner(ty, self.owner),
        }
    }

    /// Rejects a function that borrows an entity mutably and another one of the same type. A caller could pass the same entity
    /// twice, and the second borrow would panic.
    fn refuse_aliases(&self, ident: &Ident, kind: FunctionKind, parameters: &[Parameter]) -> Result<()> {
        let mut borrows: Vec<(&Ident, bool)> = Vec::new();
        match (kind, self.owner) {
            (FunctionKind::Shared, Some(owner)) => borrows.push((owner, false)),
            (FunctionKind::Exclusive, Some(owner)) => borrows.push((owner, true)),
            _ => {}
        }
        for parameter in parameters {
            match &parameter.passing {
                Passing::Borrow(entity) => borrows.push((entity, false)),
                Passing::BorrowMut(entity) => borrows.push((entity, true)),
                _ => {}
            }
        }
        let is_aliased = |(entity, is_mut): &(&Ident, bool)| {
            *is_mut && borrows.iter().filter(|(other, _)| other == entity).count() > 1
        };
        match borrows.iter().find(|borrow| is_aliased(borrow)) {
            Some((entity, _)) => Err(Error::new(
                ident.span(),
                format!(
                    "a caller may pass the same `{entity}` twice: take `&{entity}` each time, with a `Cell` or `RefCell` inside"
                ),
            )),
            None => Ok(()),
        }
    }

    fn read_output(&mut self, kind: FunctionKind, output: &ReturnType) -> Result<Output> {
        let ty = match output {
            ReturnType::Type(_, ty) if kind != FunctionKind::Constructor => &**ty,
            _ => return Ok(Output::None),
        };
        if let Type::Tuple(tuple) = ty
            && tuple.elems.is_empty()
        {
            return Ok(Output::None);
        }
        let mut types = self.type_reader(Position::Output);
        if let Some((name, arguments)) = last_segment(ty)
            && name == "Result"
        {
            match arguments.as_slice() {
                [ok] => return Ok(Output::DisplayedError(types.read_optional(ok)?)),
                [ok, error] if is_displayed(types.scope, error) => {
                    return Ok(Output::DisplayedError(types.read_optional(ok)?));
                }
                _ => {}
            }
        }
        Ok(Output::Value(types.read(ty)?))
    }
}

/// Rejects `&mut` of a type that is not an entity.
fn refuse_mutability(reference: &TypeReference) -> Result<()> {
    match reference.mutability {
        Some(word) => Err(Error::new(
            word.span(),
            "only an entity can be changed through a parameter: return the changed value",
        )),
        None => Ok(()),
    }
}

/// Adds a paragraph with the docs of the parameters, before tags such as `@effect read`, which the host removes.
fn add_notes(lines: &mut Vec<String>, notes: Vec<String>) {
    if notes.is_empty() {
        return;
    }
    let text = lines
        .iter()
        .rposition(|line| !line.is_empty() && !line.starts_with('@'));
    let tags = lines.split_off(text.map_or(0, |last| last + 1));
    lines.push(String::new());
    lines.extend(notes);
    lines.extend(tags);
}

/// Returns whether an error becomes text: `Box<dyn Error>`, or a type of another module with the name `Error`.
fn is_displayed(scope: &Scope, error: &Type) -> bool {
    let is_local = local_ident(error, None).is_some_and(|name| scope.get(&name.to_string()).is_some());
    match last_segment(error) {
        Some((name, arguments)) if !is_local => match (name.to_string().as_str(), arguments.as_slice()) {
            ("Error", []) => true,
            ("Box", [inner]) => matches!(inner, Type::TraitObject(_)),
            _ => false,
        },
        _ => false,
    }
}

/// Returns the reference in an `Option<&T>`. `None` for any other type.
fn reference_in_option(ty: &Type) -> Option<&TypeReference> {
    let (name, arguments) = last_segment(ty)?;
    match arguments.as_slice() {
        [Type::Reference(reference)] if name == "Option" => Some(reference),
        _ => None,
    }
}

/// Replaces `Self` by the name of the entity, because the glue is outside of its `impl` block.
fn with_owner(ty: &Type, owner: Option<&Ident>) -> Type {
    let Some(owner) = owner else { return ty.clone() };
    let tokens = replace_self(ty.to_token_stream(), owner);
    syn::parse2(tokens).unwrap_or_else(|_| ty.clone())
}

fn replace_self(tokens: TokenStream, owner: &Ident) -> TokenStream {
    let replace = |token| match token {
        TokenTree::Ident(ident) if ident == "Self" => TokenTree::Ident(Ident::new(&owner.to_string(), ident.span())),
        TokenTree::Group(group) => {
            let mut copy = Group::new(group.delimiter(), replace_self(group.stream(), owner));
            copy.set_span(group.span());
            TokenTree::Group(copy)
        }
        token => token,
    };
    tokens.into_iter().map(replace).collect()
}
