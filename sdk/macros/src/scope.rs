//! The types that a module defines, and the WIT types that its signatures name.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::Ident;
use quote::ToTokens;
use syn::{
    Error, Fields, GenericArgument, Item, ItemEnum, ItemStruct, PathArguments, Result, Type, TypePath, Visibility,
};

use crate::types::WitType;

/// The largest tuple that the SDK converts.
const TUPLE_PARTS_MAX: usize = 8;

/// The types of a module.
#[derive(Default)]
pub(crate) struct Scope {
    types: BTreeMap<String, LocalType>,
    /// Whether a type can be defined here: in a module, but not next to a single function.
    pub(crate) is_module: bool,
}

/// A type that the module defines.
pub(crate) enum LocalType {
    Record(ItemStruct),
    Enum(ItemEnum),
    Entity(ItemStruct),
    Alias(Type),
    /// A struct that is neither a record nor an entity.
    Opaque,
}

/// The types of the module that signatures use.
#[derive(Default)]
pub(crate) struct Uses {
    /// The types that parameters contain.
    pub(crate) inputs: BTreeSet<String>,
    /// The types that results contain.
    pub(crate) outputs: BTreeSet<String>,
    pub(crate) has_tool_result: bool,
}

/// The position of a type in a signature.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Position {
    Input,
    Output,
}

impl Scope {
    pub(crate) fn of_module(items: &[Item]) -> Self {
        let entities: BTreeSet<String> = items.iter().filter_map(implemented_type).collect();
        let mut types = BTreeMap::new();
        for item in items {
            match item {
                Item::Struct(item) => {
                    let name = item.ident.to_string();
                    let kind = if is_record(item) {
                        LocalType::Record(item.clone())
                    } else if entities.contains(&name) && matches!(item.vis, Visibility::Public(_)) {
                        LocalType::Entity(item.clone())
                    } else {
                        LocalType::Opaque
                    };
                    types.insert(name, kind);
                }
                Item::Enum(item) => {
                    types.insert(item.ident.to_string(), LocalType::Enum(item.clone()));
                }
                Item::Type(item) if item.generics.params.is_empty() => {
                    types.insert(item.ident.to_string(), LocalType::Alias((*item.ty).clone()));
                }
                _ => {}
            }
        }
        Self { types, is_module: true }
    }

    pub(crate) fn get(&self, name: &str) -> Option<&LocalType> {
        self.types.get(name)
    }

    /// Returns the entity that a type names, directly, as `Self` or through an alias. `None` if the type is not an entity.
    pub(crate) fn entity(&self, ty: &Type, owner: Option<&Ident>) -> Option<Ident> {
        let name = local_ident(ty, owner)?;
        match self.types.get(&name.to_string())? {
            LocalType::Entity(_) => Some(name),
            LocalType::Alias(ty) => self.entity(ty, owner),
            _ => None,
        }
    }

    /// Returns the entities of the module.
    pub(crate) fn entities(&self) -> impl Iterator<Item = &ItemStruct> {
        self.types.values().filter_map(|ty| match ty {
            LocalType::Entity(item) => Some(item),
            _ => None,
        })
    }
}

/// Returns whether a struct is a record: it has named fields, and all of them are public.
fn is_record(item: &ItemStruct) -> bool {
    match &item.fields {
        Fields::Named(fields) => {
            !fields.named.is_empty()
                && fields
                    .named
                    .iter()
                    .all(|field| matches!(field.vis, Visibility::Public(_)))
        }
        _ => false,
    }
}

/// Returns the name of the type of an inherent `impl` block. `None` for any other item.
fn implemented_type(item: &Item) -> Option<String> {
    match item {
        Item::Impl(block) if block.trait_.is_none() => Some(local_ident(&block.self_ty, None)?.to_string()),
        _ => None,
    }
}

/// Returns the name of a type that is written without a path or with `self::`. `Self` is the owner. `None` for any other type.
pub(crate) fn local_ident(ty: &Type, owner: Option<&Ident>) -> Option<Ident> {
    let Type::Path(TypePath { qself: None, path }) = ty else {
        return None;
    };
    let mut segments = path.segments.iter();
    let mut first = segments.next()?;
    if first.ident == "self" {
        first = segments.next()?;
    }
    if segments.next().is_some() || !first.arguments.is_empty() {
        return None;
    }
    if first.ident == "Self" {
        return owner.cloned();
    }
    Some(first.ident.clone())
}

/// Returns the last name of a path, and its type arguments. `None` for a type that is not a path.
pub(crate) fn last_segment(ty: &Type) -> Option<(&Ident, Vec<&Type>)> {
    let Type::Path(TypePath { qself: None, path }) = ty else {
        return None;
    };
    let last = path.segments.last()?;
    let arguments = match &last.arguments {
        PathArguments::AngleBracketed(arguments) => arguments
            .args
            .iter()
            .filter_map(|argument| match argument {
                GenericArgument::Type(ty) => Some(ty),
                _ => None,
            })
            .collect(),
        _ => Vec::new(),
    };
    Some((&last.ident, arguments))
}

/// Reads types, and records which types of the module they use.
pub(crate) struct TypeReader<'a> {
    pub(crate) scope: &'a Scope,
    pub(crate) uses: &'a mut Uses,
    pub(crate) owner: Option<&'a Ident>,
    pub(crate) position: Position,
}

impl TypeReader<'_> {
    /// Returns the WIT type, or an error at the part that WIT cannot express.
    pub(crate) fn read(&mut self, ty: &Type) -> Result<WitType> {
        match ty {
            Type::Paren(inner) => self.read(&inner.elem),
            Type::Group(inner) => self.read(&inner.elem),
            Type::Path(_) => self.read_path(ty),
            Type::Tuple(tuple) if tuple.elems.is_empty() => Err(Error::new_spanned(
                ty,
                "`()` has no value: leave it out, or use `bool` or an enum",
            )),
            Type::Tuple(tuple) if tuple.elems.len() > TUPLE_PARTS_MAX => Err(Error::new_spanned(
                ty,
                format!("a tuple may have at most {TUPLE_PARTS_MAX} parts: define a struct with named fields"),
            )),
            Type::Tuple(tuple) => {
                let parts = tuple.elems.iter().map(|part| self.read(part));
                Ok(WitType::Tuple(parts.collect::<Result<_>>()?))
            }
            Type::Reference(reference) if self.position == Position::Output && reference.mutability.is_none() => {
                self.read_reference(&reference.elem)
            }
            _ => Err(self.refusal(ty)),
        }
    }

    /// Reads a type that may be `()`.
    pub(crate) fn read_optional(&mut self, ty: &Type) -> Result<Option<WitType>> {
        match ty {
            Type::Tuple(tuple) if tuple.elems.is_empty() => Ok(None),
            _ => self.read(ty).map(Some),
        }
    }

    fn read_reference(&mut self, inner: &Type) -> Result<WitType> {
        if self.scope.entity(inner, self.owner).is_some() {
            return Err(Error::new_spanned(
                inner,
                "an entity cannot be returned by reference: return a new one, or its id",
            ));
        }
        self.read_referent(inner)
    }

    /// Reads the type behind a reference, which may be `str` or a slice.
    pub(crate) fn read_referent(&mut self, inner: &Type) -> Result<WitType> {
        match inner {
            Type::Slice(slice) => Ok(WitType::List(Box::new(self.read(&slice.elem)?))),
            Type::Path(path) if path.path.is_ident("str") => Ok(WitType::string()),
            _ => self.read(inner),
        }
    }

    fn read_path(&mut self, ty: &Type) -> Result<WitType> {
        if let Some(ident) = local_ident(ty, self.owner)
            && let Some(local) = self.scope.get(&ident.to_string())
        {
            return self.read_local(ty, ident, local);
        }
        let Some((name, arguments)) = last_segment(ty) else {
            return Err(self.refusal(ty));
        };
        let name = name.to_string();
        match (name.as_str(), arguments.as_slice()) {
            ("Option", [inner]) => Ok(WitType::Option(Box::new(self.read(inner)?))),
            ("Vec", [inner]) => Ok(WitType::List(Box::new(self.read(inner)?))),
            ("Result", [ok, err]) => {
                let ok = self.read_optional(ok)?.map(Box::new);
                Ok(WitType::Result(ok, self.read_optional(err)?.map(Box::new)))
            }
            ("ToolResult", []) if self.position == Position::Output => {
                self.uses.has_tool_result = true;
                Ok(WitType::ToolResult)
            }
            (_, []) => WitType::plain(&name).ok_or_else(|| self.refusal(ty)),
            _ => Err(self.refusal(ty)),
        }
    }

    fn read_local(&mut self, ty: &Type, ident: Ident, local: &LocalType) -> Result<WitType> {
        match local {
            LocalType::Alias(target) => self.read(target),
            LocalType::Opaque => Err(Error::new_spanned(
                ty,
                format!(
                    "`{ident}` is neither a record nor an entity: name all fields and make them `pub`, or make it a `pub struct` with \
                     an `impl` block"
                ),
            )),
            _ => {
                let uses = match self.position {
                    Position::Input => &mut self.uses.inputs,
                    Position::Output => &mut self.uses.outputs,
                };
                uses.insert(ident.to_string());
                Ok(WitType::Local(ident))
            }
        }
    }

    /// Returns the error for a type that WIT cannot express, with the type to write instead.
    fn refusal(&self, ty: &Type) -> Error {
        let type_text = ty.to_token_stream().to_string().replace(' ', "");
        let fix = match ty {
            Type::Reference(_) => "a reference can only be a parameter itself: write the owned type".to_owned(),
            Type::Array(_) => "WIT has no arrays of fixed length: write `Vec<T>`".to_owned(),
            Type::Slice(_) => "write `Vec<T>`".to_owned(),
            Type::ImplTrait(_) | Type::TraitObject(_) => "WIT needs one concrete type".to_owned(),
            Type::BareFn(_) | Type::Ptr(_) | Type::Never(_) => "WIT has no such type".to_owned(),
            _ => self.fix_of_path(ty),
        };
        Error::new_spanned(ty, format!("`{type_text}` is not a type of tools: {fix}"))
    }

    fn fix_of_path(&self, ty: &Type) -> String {
        let name = last_segment(ty).map(|(name, _)| name.to_string()).unwrap_or_default();
        let fix = match name.as_str() {
            "usize" => "write `u32` or `u64`",
            "isize" => "write `i32` or `i64`",
            "u128" | "i128" => "write `u64`, `i64` or `String`",
            "str" => "write `String` or `&str`",
            "HashMap" | "BTreeMap" | "IndexMap" => "write `Vec<(K, V)>`, or a struct with named fields",
            "HashSet" | "BTreeSet" | "VecDeque" => "write `Vec<T>`",
            "Box" | "Rc" | "Arc" | "Cow" => "write the type without the wrapper",
            "Value" => "write a struct with named fields, or `String` with JSON in it",
            "PathBuf" | "Path" | "OsString" => "write `String`",
            "Duration" => "write `u64`, and name the unit in the doc comment",
            "Future" | "Stream" => "write the value itself",
            "ToolResult" => "it can only be returned",
            "Error" => "it can only be the error of the returned `Result`",
            _ if name.ends_with("Error") => {
                "return `toolwit_guest::Result<T>`, whose error is any error as text, or define the error as an enum in this module"
            }
            _ if self.scope.is_module => "define it in this module, so that its fields are known",
            _ => {
                "`#[tool]` does not see other items: put the function and the type in a module with `#[toolwit_guest::tools]`"
            }
        };
        fix.to_owned()
    }
}
