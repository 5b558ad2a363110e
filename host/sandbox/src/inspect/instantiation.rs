//! Simulates the instantiation of a component to count its core instances, memories and tables, without compiling it.
//!
//! A component of a few hundred bytes can expand to a billion core instances, if it defines thirty components and each
//! instantiates the previous one twice. The compiler would process every instance, so the host counts them before it compiles.

use std::collections::HashMap;

use super::footprint::Footprint;
use super::instantiation_recorder::{InstantiationStep, NamedItem, Space};
use toolwit_core::limits::{COMPONENT_DEPTH_MAX, INSTANTIATION_STEPS_MAX};

/// The exports of an instance, by name.
type Exports<'a> = HashMap<&'a str, Item>;

/// An item of an index space.
#[derive(Clone, Copy)]
enum Item {
    Module(Footprint),
    /// A component: the index in [`Simulation::definitions`], and the index in [`Simulation::scopes`] of the enclosing component.
    Component(usize, usize),
    /// An index into [`Simulation::instances`].
    Instance(usize),
    /// An item that the component does not define, such as an import from the host.
    Foreign,
}

/// The index spaces of one component during one instantiation.
#[derive(Default)]
struct InstantiationScope {
    /// The items of each [`Space`], in the order of its variants.
    items: [Vec<Item>; 3],
    /// The index of the scope in which the component is defined. `None` for the outermost component.
    outer: Option<usize>,
}

/// The state of a simulation. Scopes and instances refer to each other by index and are kept until the end, because the
/// references can be cyclic.
pub(crate) struct Simulation<'a> {
    /// The steps of each component. The outermost component is the first.
    definitions: &'a [Vec<InstantiationStep>],
    scopes: Vec<InstantiationScope>,
    instances: Vec<Exports<'a>>,
    footprint: Footprint,
    step_count: usize,
}

impl<'a> Simulation<'a> {
    /// Simulates the instantiation of the first definition, which is the outermost component. Returns its footprint.
    pub(crate) fn run(definitions: &'a [Vec<InstantiationStep>]) -> Footprint {
        let mut simulation = Self {
            definitions,
            scopes: Vec::new(),
            instances: Vec::new(),
            footprint: Footprint::default(),
            step_count: 0,
        };
        if simulation.instantiate(0, None, &Exports::new(), 0).is_none() {
            simulation.footprint.is_incomplete = true;
        }
        simulation.footprint
    }

    /// Returns an item of an index space, or [`Item::Foreign`] if the item does not exist.
    fn item(&self, scope: usize, space: Space, index: u32) -> Item {
        let items = &self.scopes[scope].items[space as usize];
        let item = usize::try_from(index).ok().and_then(|index| items.get(index));
        item.copied().unwrap_or(Item::Foreign)
    }

    /// Returns the named items of a scope, by name. `None` if the simulation exceeds its limits.
    fn items_by_name(&mut self, scope: usize, items: &'a [NamedItem]) -> Option<Exports<'a>> {
        self.count_steps(items.len())?;
        let items = items.iter();
        Some(
            items
                .map(|named| (named.name.as_str(), self.item(scope, named.space, named.index)))
                .collect(),
        )
    }

    /// Counts steps. `None` if the simulation exceeds its limit of steps.
    fn count_steps(&mut self, steps: usize) -> Option<()> {
        self.step_count = self.step_count.saturating_add(steps);
        (self.step_count <= INSTANTIATION_STEPS_MAX).then_some(())
    }

    fn add_instance(&mut self, exports: Exports<'a>) -> Item {
        self.instances.push(exports);
        Item::Instance(self.instances.len() - 1)
    }

    /// Simulates the instantiation of a component, and returns the exports of the instance. `None` if the simulation exceeds its
    /// limits.
    fn instantiate(
        &mut self,
        definition: usize,
        outer: Option<usize>,
        args: &Exports<'a>,
        depth: usize,
    ) -> Option<Exports<'a>> {
        if depth > COMPONENT_DEPTH_MAX {
            self.footprint.is_too_deep = true;
            return None;
        }
        let scope = self.scopes.len();
        self.scopes.push(InstantiationScope {
            outer,
            ..InstantiationScope::default()
        });
        let mut exports = Exports::new();
        let definitions = self.definitions;
        for step in &definitions[definition] {
            self.count_steps(1)?;
            if let InstantiationStep::Export(named) = step {
                exports.insert(&named.name, self.item(scope, named.space, named.index));
            }
            if let Some((space, item)) = self.simulate(scope, step, args, depth)? {
                self.scopes[scope].items[space as usize].push(item);
            }
        }
        Some(exports)
    }

    /// Simulates one step. Returns the item that the step adds, with its index space, or `Some(None)` if it adds no item.
    /// `None` if the simulation exceeds its limits.
    fn simulate(
        &mut self,
        scope: usize,
        step: &'a InstantiationStep,
        args: &Exports<'a>,
        depth: usize,
    ) -> Option<Option<(Space, Item)>> {
        Some(Some(match step {
            InstantiationStep::DefineModule(module) => (Space::Module, Item::Module(*module)),
            InstantiationStep::DefineComponent(inner) => (Space::Component, Item::Component(*inner, scope)),
            InstantiationStep::Import(space, name) => {
                (*space, args.get(name.as_str()).copied().unwrap_or(Item::Foreign))
            }
            InstantiationStep::Export(named) => (named.space, self.item(scope, named.space, named.index)),
            InstantiationStep::InstanceFromExports(items) => {
                let exports = self.items_by_name(scope, items)?;
                (Space::Instance, self.add_instance(exports))
            }
            InstantiationStep::AliasExport(space, instance, name) => {
                let item = match self.item(scope, Space::Instance, *instance) {
                    Item::Instance(index) => self.instances[index].get(name.as_str()).copied(),
                    _ => None,
                };
                (*space, item.unwrap_or(Item::Foreign))
            }
            InstantiationStep::AliasOuter(space, count, index) => {
                let mut outer = Some(scope);
                for _ in 0..(*count).min(COMPONENT_DEPTH_MAX as u32) {
                    outer = outer.and_then(|scope| self.scopes[scope].outer);
                }
                (
                    *space,
                    outer.map_or(Item::Foreign, |outer| self.item(outer, *space, *index)),
                )
            }
            InstantiationStep::InstantiateModule(index) => {
                match self.item(scope, Space::Module, *index) {
                    Item::Module(module) => self.footprint.add(&module),
                    // An imported module: its memories and tables are unknown, so only the instance is counted.
                    _ => self.footprint.add(&Footprint::default()),
                }
                return Some(None);
            }
            InstantiationStep::Instantiate(component, args) => match self.item(scope, Space::Component, *component) {
                Item::Component(inner, parent) => {
                    let args = self.items_by_name(scope, args)?;
                    let exports = self.instantiate(inner, Some(parent), &args, depth + 1)?;
                    (Space::Instance, self.add_instance(exports))
                }
                _ => (Space::Instance, Item::Foreign),
            },
        }))
    }
}
