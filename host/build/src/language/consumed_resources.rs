//! Finds exported functions that consume an instance of a resource of the plugin: they take ownership of the instance.
//! Instances of imported resources, which belong to the host, do not count.

use wit_parser::{Function, Handle, LiveTypes, Resolve, TypeDefKind, TypeId, TypeOwner, World, WorldItem};

use crate::{BuildError, ResolvedWit};

/// Returns the name of the first exported function whose parameters contain an `own` handle of an exported resource, or
/// `None` if there is no such function.
pub(super) fn consuming_function(wit: &ResolvedWit, world: Option<&str>) -> Result<Option<String>, BuildError> {
    let resolve = wit.resolve();
    let world = &resolve.worlds[wit.world(world)?];
    let functions = world.exports.values().flat_map(|item| match item {
        WorldItem::Function(function) => vec![function],
        WorldItem::Interface { id, .. } => resolve.interfaces[*id].functions.values().collect(),
        WorldItem::Type { .. } => Vec::new(),
    });
    let mut consuming_functions = functions.filter(|function| consumes_exported_resource(resolve, world, function));
    Ok(consuming_functions
        .next()
        .map(|function| function.item_name().to_owned()))
}

fn consumes_exported_resource(resolve: &Resolve, world: &World, function: &Function) -> bool {
    let mut types = LiveTypes::default();
    for param in &function.params {
        types.add_type(resolve, &param.ty);
    }
    types.iter().any(|id| match resolve.types[id].kind {
        TypeDefKind::Handle(Handle::Own(resource)) => is_exported(resolve, world, resource),
        _ => false,
    })
}

fn is_exported(resolve: &Resolve, world: &World, resource: TypeId) -> bool {
    let mut definition = &resolve.types[resource];
    while let TypeDefKind::Type(wit_parser::Type::Id(id)) = definition.kind {
        definition = &resolve.types[id];
    }
    match definition.owner {
        TypeOwner::Interface(interface) => world
            .exports
            .values()
            .any(|item| matches!(item, WorldItem::Interface { id, .. } if *id == interface)),
        TypeOwner::World(_) | TypeOwner::None => false,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::path::Path;

    use super::*;

    /// Returns the name of a function that consumes an instance, in a world with these imports and exports.
    fn consuming_function_of(world_items: &str) -> Option<String> {
        let text = format!(
            "package a:b; interface r {{ resource thing; use-it: func(x: borrow<thing>); }}
             interface other {{ use r.{{thing}}; record box {{ x: option<thing> }} eat: func(x: list<box>); }}
             world w {{ {world_items} }}"
        );
        let wit = ResolvedWit::parse(Path::new("plugin.wit"), &text).unwrap();
        consuming_function(&wit, Some("w")).unwrap()
    }

    #[test]
    fn only_owned_instances_of_exported_resources_are_consumed() {
        assert_eq!(
            consuming_function_of("export r;"),
            None,
            "a borrowed instance is not consumed"
        );
        assert_eq!(
            consuming_function_of("import r; export other;"),
            None,
            "the resource is imported"
        );
        assert_eq!(consuming_function_of("export r; export other;").as_deref(), Some("eat"));
        let inline = "export i: interface { resource r { close: static func(r: r); } }";
        assert_eq!(consuming_function_of(inline).as_deref(), Some("close"));
    }
}
