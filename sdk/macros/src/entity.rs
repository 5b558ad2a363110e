//! Reads the entities of a module: structs with an `impl` block.

use proc_macro2::Ident;
use syn::{Error, ImplItem, Item, ItemStruct, Result, Visibility};

use crate::attributes::docs;
use crate::data::{refuse_generics, type_name};
use crate::model::{Entity, Function};
use crate::scope::{Scope, Uses, local_ident};
use crate::signature::SignatureReader;

/// Reads the entities. Removes the doc comments of their methods' parameters.
pub(crate) fn read_all(scope: &Scope, uses: &mut Uses, items: &mut [Item]) -> Result<Vec<Entity>> {
    scope.entities().map(|item| read(scope, uses, item, items)).collect()
}

fn read(scope: &Scope, uses: &mut Uses, item: &ItemStruct, items: &mut [Item]) -> Result<Entity> {
    refuse_generics(&item.generics)?;
    let name = type_name(&item.ident)?;
    let mut functions: Vec<Function> = Vec::new();
    for block in items.iter_mut().filter_map(|other| match other {
        Item::Impl(block) if block.trait_.is_none() => Some(block),
        _ => None,
    }) {
        if local_ident(&block.self_ty, None).as_ref() != Some(&item.ident) {
            continue;
        }
        refuse_generics(&block.generics)?;
        for member in &mut block.items {
            let ImplItem::Fn(method) = member else { continue };
            if matches!(method.vis, Visibility::Public(_)) {
                let mut signatures = SignatureReader {
                    scope,
                    uses,
                    owner: Some(&item.ident),
                };
                functions.push(signatures.read(&method.attrs, &mut method.sig)?);
            }
        }
    }
    refuse_without_tools(&item.ident, &functions)?;
    Ok(Entity {
        ident: item.ident.clone(),
        name,
        docs: docs(&item.attrs),
        functions,
    })
}

fn refuse_without_tools(ident: &Ident, functions: &[Function]) -> Result<()> {
    if functions.is_empty() {
        let message =
            format!("`{ident}` is an entity without tools: write `pub` at the methods that the model may call");
        return Err(Error::new(ident.span(), message));
    }
    Ok(())
}
