//! The docs of functions, resources, fields and cases, from the WIT of a component.
//!
//! Most toolchains do not embed `///` comments in a component. `toolwit build` and `pack` append the WIT package, in binary form
//! and with its docs, as the custom section [`WIT_SECTION`](toolwit_sections::WIT_SECTION); a `.wit` file next to the
//! component works too. Docs are best effort: a component with invalid docs loads without them.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use wit_component::DecodedWasm;
use wit_parser::{Docs, Function as WitFunction, InterfaceId, Resolve, Type, TypeDefKind, WorldItem};

use crate::values::types::{Case, Field, Function, FunctionKind, Label, Shape, WitType};
use toolwit_core::limits::{ByteCount, FUNCTION_DOCS_CHARS_MAX, WIT_BYTES_MAX};
use toolwit_core::text::is_printable;

/// The maximum number of WIT packages of dependencies that are decoded, and the maximum number of WIT texts from bindings macros
/// that are parsed.
const PACKAGES_MAX: usize = 32;

/// The maximum length of the docs of a field, a case or a resource, in characters.
const ITEM_DOCS_CHARS_MAX: usize = 1_024;

/// The maximum length of all docs that are copied from the WIT of a component, in characters.
const DOCS_CHARS_MAX: usize = 2 << 20;

/// Decodes a WIT package in binary form. The bytes can also be a component, as for [`decode_package_or_component`]. `None` if there
/// are more than [`WIT_BYTES_MAX`] bytes, if they are neither a package nor a component, or if they make the parser panic.
pub(crate) fn decode_package(bytes: &[u8]) -> Option<Resolve> {
    if bytes.len() as u64 > WIT_BYTES_MAX {
        return None;
    }
    decode_package_or_component(bytes)
}

/// Decodes WIT packages in binary form. The last package is the component's own and depends on the packages before it. `None` if
/// there are no packages, or if the component's own package cannot be decoded.
///
/// The binary form of a package has only the docs of its own items, so the packages are merged. The docs of an earlier package
/// take precedence. A dependency that cannot be decoded or merged is ignored. If the component's own package cannot be merged
/// with its dependencies, only the component's own package is returned.
pub(crate) fn decode_packages<'a>(sections: impl Iterator<Item = &'a [u8]>) -> Option<Resolve> {
    let sections: Vec<_> = sections.collect();
    let (own_section, dependency_sections) = sections.split_last()?;
    let own = decode_package(own_section)?;
    let dependencies = dependency_sections
        .iter()
        .take(PACKAGES_MAX)
        .filter_map(|bytes| decode_package(bytes));
    let Some(dependencies) = dependencies.reduce(|merged, next| merge_packages(&merged, &next).unwrap_or(merged))
    else {
        return Some(own);
    };
    Some(merge_packages(&dependencies, &own).unwrap_or(own))
}

/// Merges packages; the docs of the first one take precedence. `None` if they conflict or make the parser panic.
fn merge_packages(first: &Resolve, next: &Resolve) -> Option<Resolve> {
    let try_merge = || {
        let mut first = first.clone();
        first.merge(next.clone()).ok().map(|_| first)
    };
    catch_unwind(AssertUnwindSafe(try_merge)).ok()?
}

/// Decodes a WIT package in binary form, or derives WIT without docs from the types of a component. `None` if the bytes are
/// neither a package nor a component, or make the parser panic.
pub(crate) fn decode_package_or_component(bytes: &[u8]) -> Option<Resolve> {
    let decoded = catch_unwind(AssertUnwindSafe(|| wit_component::decode(bytes)))
        .ok()?
        .ok()?;
    match decoded {
        DecodedWasm::WitPackage(resolve, _) | DecodedWasm::Component(resolve, _) => Some(resolve),
    }
}

/// Parses WIT text, from the file next to a component or from a bindings macro.
///
/// # Errors
/// The reason why the text cannot be parsed: it is invalid or too large, or makes the parser panic.
pub(crate) fn parse_wit(text: &str) -> Result<Resolve, String> {
    if text.len() as u64 > WIT_BYTES_MAX {
        return Err(format!("it is larger than {}", ByteCount(WIT_BYTES_MAX)));
    }
    let parse = || {
        let mut resolve = Resolve::default();
        match resolve.push_str("wit", text) {
            Ok(_) => Ok(resolve),
            Err(error) => Err(format!("it is not valid WIT: {}", resolve.render_error(&error).trim())),
        }
    };
    catch_unwind(AssertUnwindSafe(parse)).unwrap_or_else(|_panic| Err("it makes the parser fail".to_owned()))
}

/// Parses and merges the WIT texts that bindings macros embedded. Each text ends with a zero byte. A text that is invalid or
/// conflicts with an earlier text is ignored. Reading stops after `PACKAGES_MAX` texts, and before their total size reaches
/// [`WIT_BYTES_MAX`]. `None` if no text is valid.
pub(crate) fn parse_embedded_texts(sections: &[&[u8]]) -> Option<Resolve> {
    let texts = sections.iter().flat_map(|section| section.split(|byte| *byte == 0));
    let mut bytes_left = WIT_BYTES_MAX;
    let is_within_limit = |text: &&[u8]| {
        bytes_left = bytes_left.saturating_sub(text.len() as u64);
        bytes_left > 0
    };
    let texts = texts.filter(|text| !text.is_empty()).take(PACKAGES_MAX);
    let packages = texts
        .take_while(is_within_limit)
        .filter_map(|text| parse_wit(std::str::from_utf8(text).ok()?).ok());
    packages.reduce(|merged, next| merge_packages(&merged, &next).unwrap_or(merged))
}

/// Returns the reason why WIT does not describe a component: the WIT is of another package or version, or lacks a function.
/// `None` if it describes all functions.
pub(crate) fn mismatch(shape: &Shape, wit: &Resolve) -> Option<String> {
    let wit_docs = WitDocs::of(wit);
    let is_described = |function: &&Function| {
        let has_known_interface = function.kind == FunctionKind::Command || function.kind.is_for_host();
        has_known_interface || wit_docs.find_function(function).is_some()
    };
    let missing = shape.functions.iter().find(|function| !is_described(function))?;
    let export = &missing.export;
    let Some(interface) = missing.interface.as_deref() else {
        return Some(format!("it does not export the function `{export}` from a world"));
    };
    if wit_docs.interface(interface).is_some() {
        return Some(format!("its interface `{interface}` has no function `{export}`"));
    }
    let unversioned = |name: &str| name.split('@').next().map(str::to_owned);
    let mut names: Vec<_> = wit_docs.interfaces.keys().collect();
    // The message names the first interface. The best match is the same interface in another version.
    names.sort_by_key(|name| (unversioned(name) != unversioned(interface), *name));
    let declared_interface = names
        .first()
        .map_or("no interface".to_owned(), |name| format!("`{name}`"));
    Some(format!(
        "it declares {declared_interface}, but the component exports `{interface}`"
    ))
}

/// Copies the docs to the functions and resources of a shape, and to the fields and cases of their types, where names and
/// structure match.
pub(crate) fn apply(shape: &mut Shape, wit: &Resolve) {
    let mut wit_docs = WitDocs::of(wit);
    // Functions that only the host calls need no docs: they are not tools, and dynamic tools have their own descriptions.
    for function in shape
        .functions
        .iter_mut()
        .filter(|function| !function.kind.is_for_host())
    {
        wit_docs.copy_to_function(function);
    }
    for resource in &mut shape.resources {
        let ty = match resource.interface.as_deref() {
            Some(interface) => wit_docs
                .interface(interface)
                .and_then(|id| wit.interfaces[id].types.get(&resource.name)),
            None => None,
        };
        resource.docs = ty.and_then(|id| wit_docs.take_text(&wit.types[*id].docs, ITEM_DOCS_CHARS_MAX));
    }
}

/// WIT whose docs are copied to the functions, types and resources of a shape.
struct WitDocs<'a> {
    wit: &'a Resolve,
    interfaces: HashMap<String, InterfaceId>,
    /// The number of characters that may still be copied. The docs of a type are copied to each of its uses, so the total can
    /// exceed the size of the WIT.
    chars_left: usize,
}

impl<'a> WitDocs<'a> {
    fn of(wit: &'a Resolve) -> Self {
        let interfaces = wit.interfaces.iter();
        Self {
            wit,
            interfaces: interfaces.filter_map(|(id, _)| Some((wit.id_of(id)?, id))).collect(),
            chars_left: DOCS_CHARS_MAX,
        }
    }

    fn interface(&self, name: &str) -> Option<InterfaceId> {
        self.interfaces.get(name).copied()
    }

    /// Returns docs as printable text, and counts the characters as copied. The text is cut to `chars_max`, and to the number of
    /// characters that may still be copied.
    fn take_text(&mut self, docs: &Docs, chars_max: usize) -> Option<String> {
        let docs = docs.contents.as_deref().filter(|_| self.chars_left > 0)?;
        let text = printable_docs(docs, chars_max.min(self.chars_left))?;
        self.chars_left = self.chars_left.saturating_sub(text.chars().count());
        Some(text)
    }

    fn copy_to_label(&mut self, label: &mut Label, docs: &Docs) {
        label.docs = self.take_text(docs, ITEM_DOCS_CHARS_MAX);
    }

    /// Finds a function in the WIT. A function without an interface is searched in the exports of all worlds.
    fn find_function(&self, function: &Function) -> Option<&'a WitFunction> {
        match function.interface.as_deref() {
            Some(interface) => self.wit.interfaces[self.interface(interface)?]
                .functions
                .get(&function.export),
            None => self.wit.worlds.iter().find_map(|(_, world)| {
                world.exports.values().find_map(|item| match item {
                    WorldItem::Function(wit_function) if wit_function.name == function.export => Some(wit_function),
                    _ => None,
                })
            }),
        }
    }

    fn copy_to_function(&mut self, function: &mut Function) {
        let Some(wit_function) = self.find_function(function) else {
            return;
        };
        function.docs = self.take_text(&wit_function.docs, FUNCTION_DOCS_CHARS_MAX);
        // The shape does not have the first parameter of a method, which is the resource.
        let skipped_params = if matches!(function.kind, FunctionKind::Method(_)) {
            1
        } else {
            0
        };
        let wit_params = wit_function.params.iter().skip(skipped_params);
        for (param, wit_param) in function.params.iter_mut().zip(wit_params) {
            self.copy_to_type(&mut param.ty, &wit_param.ty);
        }
        if let (Some(result), Some(wit_result)) = (&mut function.result, &wit_function.result) {
            self.copy_to_type(result, wit_result);
        }
    }

    /// Copies the docs to the fields and cases of a type. Walks the type and its WIT in parallel. Stops where they differ, because
    /// the WIT is then of another version.
    fn copy_to_type(&mut self, ty: &mut WitType, wit_type: &'a Type) {
        let mut wit_type = wit_type;
        while let Type::Id(id) = wit_type {
            match &self.wit.types[*id].kind {
                TypeDefKind::Type(aliased) => wit_type = aliased,
                definition => return self.copy_to_definition(ty, definition),
            }
        }
    }

    /// Copies the docs to the fields and cases of a type that is not an alias. Finds the WIT of each part of the type: by name for
    /// fields, cases and flags, otherwise by position. This WIT is called `wit` in the code.
    fn copy_to_definition(&mut self, ty: &mut WitType, definition: &'a TypeDefKind) {
        match (ty, definition) {
            (WitType::List(item), TypeDefKind::List(wit)) | (WitType::Option(item), TypeDefKind::Option(wit)) => {
                self.copy_to_type(item, wit);
            }
            (WitType::Tuple(items), TypeDefKind::Tuple(wit)) => {
                items
                    .iter_mut()
                    .zip(&wit.types)
                    .for_each(|(item, wit)| self.copy_to_type(item, wit));
            }
            (WitType::Result { ok, err }, TypeDefKind::Result(wit)) => {
                for (side, wit) in [(ok, &wit.ok), (err, &wit.err)] {
                    if let (Some(side), Some(wit)) = (side, wit) {
                        self.copy_to_type(side, wit);
                    }
                }
            }
            (WitType::Record(fields), TypeDefKind::Record(wit)) => {
                for Field { label, ty } in fields {
                    if let Some(wit) = wit.fields.iter().find(|wit| wit.name == label.wit) {
                        self.copy_to_label(label, &wit.docs);
                        self.copy_to_type(ty, &wit.ty);
                    }
                }
            }
            (WitType::Variant(cases), TypeDefKind::Variant(wit)) => {
                for Case { label, ty } in cases {
                    if let Some(wit) = wit.cases.iter().find(|wit| wit.name == label.wit) {
                        self.copy_to_label(label, &wit.docs);
                        if let (Some(ty), Some(wit)) = (ty, &wit.ty) {
                            self.copy_to_type(ty, wit);
                        }
                    }
                }
            }
            (WitType::Enum(names), TypeDefKind::Enum(wit)) => {
                for label in names {
                    if let Some(wit) = wit.cases.iter().find(|wit| wit.name == label.wit) {
                        self.copy_to_label(label, &wit.docs);
                    }
                }
            }
            (WitType::Flags(names), TypeDefKind::Flags(wit)) => {
                for label in names {
                    if let Some(wit) = wit.flags.iter().find(|wit| wit.name == label.wit) {
                        self.copy_to_label(label, &wit.docs);
                    }
                }
            }
            _ => {}
        }
    }
}

/// Removes unprintable characters from docs. Cuts docs that are longer than `chars_max`, and appends `…`. `None` if no text
/// remains.
pub(crate) fn printable_docs(docs: &str, chars_max: usize) -> Option<String> {
    let mut chars = docs.trim().chars().filter(|c| is_printable(*c));
    let mut cut: String = chars.by_ref().take(chars_max).collect();
    if chars.next().is_some() {
        cut.push('…');
    }
    (!cut.is_empty()).then_some(cut)
}
