//! Reads the entities of a module: structs with an `impl` block.

use proc_macro2::Ident;
use syn::{Error, ImplItem, Item, ItemStruct, Result, Visibility};

use crate::attributes::docs;
use crate::data::{refuse_generics, type_name};
use crate::errors::Errors;
use crate::model::{Entity, Function};
use crate::scope::{Scope, Uses, local_ident};
use crate::signature::SignatureReader;

/// Reads the entities. Removes the doc comments of their methods' parameters.
pub(crate) fn read_all(scope: &Scope, uses: &mut Uses, items: &mut [Item], errors: &mut Errors) -> Vec<Entity> {
    let mut entities = Vec::new();
    for item in scope.entities() {
        let functions = read_functions(scope, uses, &item.ident, items, errors);
        entities.extend(errors.ok_or_record(read_entity(item, functions)));
    }
    entities
}

fn read_entity(item: &ItemStruct, functions: Vec<Function>) -> Result<Entity> {
    refuse_generics(&item.generics)?;
    Ok(Entity {
        ident: item.ident.clone(),
        name: type_name(&item.ident)?,
        docs: docs(&item.attrs),
        functions,
    })
}

/// Reads the public functions of all inherent `impl` blocks of an entity.
fn read_functions(
    scope: &Scope,
    uses: &mut Uses,
    owner: &Ident,
    items: &mut [Item],
    errors: &mut Errors,
) -> Vec<Function> {
    let mut functions = Vec::new();
    let mut has_public_functions = false;
    for item in items {
        let Item::Impl(block) = item else { continue };
        if block.trait_.is_some() || local_ident(&block.self_ty, None).as_ref() != Some(owner) {
            continue;
        }
        let _ = errors.ok_or_record(refuse_generics(&block.generics));
        for member in &mut block.items {
            let ImplItem::Fn(method) = member else { continue };
            if matches!(method.vis, Visibility::Public(_)) {
                has_public_functions = true;
                let mut signatures = SignatureReader {
                    scope,
                    uses,
                    owner: Some(owner),
                };
                functions.extend(errors.ok_or_record(signatures.read(&method.attrs, &mut method.sig)));
            }
        }
    }
    if !has_public_functions {
        let _ = errors.ok_or_record(refuse_without_tools(owner));
    }
    functions
}

/// Returns the error for an entity without public functions.
fn refuse_without_tools(ident: &Ident) -> Result<()> {
    let message = format!("`{ident}` is an entity without tools: write `pub` at the methods that the model may call");
    Err(Error::new(ident.span(), message))
}
