//! Reads the structs and enums that signatures use.

use std::collections::BTreeSet;

use proc_macro2::Ident;
use syn::spanned::Spanned;
use syn::{Error, Fields, Generics, ItemEnum, ItemStruct, Result};

use crate::attributes::{docs, refuse_cfg};
use crate::model::{Case, DataType, Field, Shape};
use crate::names::wit_name;
use crate::scope::{LocalType, Position, Scope, TypeReader, Uses, local_ident};
use crate::types::WitType;

/// Reads all data types that `uses` names, and those that they contain, in the order of their names.
pub(crate) fn read_all(scope: &Scope, uses: &mut Uses) -> Result<Vec<DataType>> {
    add_contained_types(scope, uses, Position::Input)?;
    add_contained_types(scope, uses, Position::Output)?;
    let names: BTreeSet<String> = uses.inputs.union(&uses.outputs).cloned().collect();
    let mut types = Vec::new();
    for name in names {
        // Reading a type records the types that it contains. `uses` has them already, so these records are dropped.
        let mut repeated_uses = Uses::default();
        let is_input = uses.inputs.contains(&name);
        let position = if is_input { Position::Input } else { Position::Output };
        let Some((ident, lines, shape)) = read_type(scope, &mut repeated_uses, position, &name)? else {
            continue;
        };
        types.push(DataType {
            name: type_name(&ident)?,
            ident,
            docs: lines,
            shape,
            is_input,
            is_output: uses.outputs.contains(&name),
        });
    }
    Ok(types)
}

/// Adds to `uses` the types that its types contain, until there are no more.
fn add_contained_types(scope: &Scope, uses: &mut Uses, position: Position) -> Result<()> {
    let mut read_names = BTreeSet::new();
    loop {
        let names = match position {
            Position::Input => &uses.inputs,
            Position::Output => &uses.outputs,
        };
        let Some(name) = names.difference(&read_names).next().cloned() else {
            return Ok(());
        };
        read_type(scope, uses, position, &name)?;
        read_names.insert(name);
    }
}

/// Reads one type; `None` for an entity.
fn read_type(
    scope: &Scope,
    uses: &mut Uses,
    position: Position,
    name: &str,
) -> Result<Option<(Ident, Vec<String>, Shape)>> {
    let mut types = TypeReader {
        scope,
        uses,
        owner: None,
        position,
    };
    match scope.get(name) {
        Some(LocalType::Record(item)) => {
            refuse_generics(&item.generics)?;
            Ok(Some((
                item.ident.clone(),
                docs(&item.attrs),
                read_struct(&mut types, item)?,
            )))
        }
        Some(LocalType::Enum(item)) => {
            refuse_generics(&item.generics)?;
            Ok(Some((
                item.ident.clone(),
                docs(&item.attrs),
                read_enum(&mut types, item)?,
            )))
        }
        _ => Ok(None),
    }
}

/// Returns the WIT name of a type. Rejects `Guest`, which is the name of a trait in the bindings.
pub(crate) fn type_name(ident: &Ident) -> Result<String> {
    if ident == "Guest" {
        let message = "the generated bindings have a trait of this name: rename the type, such as `Visitor`";
        return Err(Error::new(ident.span(), message));
    }
    wit_name(ident)
}

pub(crate) fn refuse_generics(generics: &Generics) -> Result<()> {
    if generics.params.is_empty() {
        return Ok(());
    }
    Err(Error::new(
        generics.span(),
        "a type of tools must not have parameters: WIT needs one concrete type, and owned fields such as `String`",
    ))
}

fn read_struct(types: &mut TypeReader<'_>, item: &ItemStruct) -> Result<Shape> {
    let mut fields = Vec::new();
    for field in &item.fields {
        refuse_cfg(&field.attrs)?;
        let Some(ident) = &field.ident else { continue };
        refuse_recursion(types, &item.ident, &field.ty)?;
        fields.push(Field {
            ident: ident.clone(),
            name: wit_name(ident)?,
            docs: docs(&field.attrs),
            wit: types.read(&field.ty)?,
        });
    }
    Ok(Shape::Record(fields))
}

fn read_enum(types: &mut TypeReader<'_>, item: &ItemEnum) -> Result<Shape> {
    if item.variants.is_empty() {
        return Err(Error::new_spanned(
            &item.ident,
            "an enum without variants has no values",
        ));
    }
    let mut cases = Vec::new();
    for variant in &item.variants {
        refuse_cfg(&variant.attrs)?;
        let payload: Vec<WitType> = match &variant.fields {
            Fields::Unit => Vec::new(),
            Fields::Unnamed(fields) if !fields.unnamed.is_empty() => {
                let read = |field: &syn::Field| {
                    refuse_recursion(types, &item.ident, &field.ty)?;
                    types.read(&field.ty)
                };
                fields.unnamed.iter().map(read).collect::<Result<_>>()?
            }
            _ => {
                let name = &variant.ident;
                let message = format!(
                    "a variant must have unnamed fields or none: define a struct, and write `{name}(ThatStruct)`, or write `{name}`"
                );
                return Err(Error::new_spanned(variant, message));
            }
        };
        cases.push(Case {
            ident: variant.ident.clone(),
            name: wit_name(&variant.ident)?,
            docs: docs(&variant.attrs),
            payload,
        });
    }
    if cases.iter().all(|case| case.payload.is_empty()) {
        Ok(Shape::Enum(cases))
    } else {
        Ok(Shape::Variant(cases))
    }
}

/// Rejects a field or payload whose type names the type that contains it. A type of the same name in another module is another
/// type. Recursion through other types is not detected here.
fn refuse_recursion(types: &TypeReader<'_>, owner: &Ident, ty: &syn::Type) -> Result<()> {
    struct Search<'a> {
        owner: &'a Ident,
        is_found: bool,
    }
    impl<'ast> syn::visit::Visit<'ast> for Search<'_> {
        fn visit_type(&mut self, ty: &'ast syn::Type) {
            self.is_found |= local_ident(ty, Some(self.owner)).is_some_and(|ident| ident == *self.owner);
            syn::visit::visit_type(self, ty);
        }
    }
    let mut search = Search { owner, is_found: false };
    syn::visit::Visit::visit_type(&mut search, ty);
    if search.is_found && types.scope.get(&owner.to_string()).is_some() {
        let message = format!("`{owner}` contains itself, which WIT cannot express: return a flat list with ids");
        return Err(Error::new_spanned(ty, message));
    }
    Ok(())
}
