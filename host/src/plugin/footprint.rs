//! How much an instance of a component takes before its first instruction, counted without making one.
//!
//! A component of a few hundred bytes can stand for a billion core instances: each of thirty components instantiates the
//! one before it twice. The compiler would unfold them all, so that they are counted first, by playing the instantiation
//! through with nothing but names.

use std::collections::HashMap;

use wasmparser::{
    ComponentAlias, ComponentExternalKind, ComponentInstance, ComponentOuterAliasKind, Instance, Payload,
};

use crate::error::{Error, ErrorKind, LimitUse, Phase};
use crate::limits::{ByteCount, CallLimits};

/// How many steps are played through before the rest is called too many.
const STEPS_MAX: usize = 200_000;

/// How deep components, and instantiations, may nest.
pub(crate) const NESTING_MAX: usize = 100;

/// What one instance of a component takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Footprint {
    /// Core instances.
    pub(crate) instances: u64,
    /// Linear memories.
    pub(crate) memories: u64,
    /// Tables.
    pub(crate) tables: u64,
    /// Bytes with which the memories begin.
    pub(crate) memory_bytes: u64,
    /// Elements with which the tables begin.
    pub(crate) table_elements: u64,
    /// Whether counting was given up, so that all numbers are too small.
    pub(crate) is_endless: bool,
}

impl Footprint {
    /// Refuses a component of which no call could make an instance.
    ///
    /// # Errors
    /// [`ErrorKind::Instances`], [`ErrorKind::Memory`] or [`ErrorKind::TableElements`].
    pub(crate) fn require_within(&self, limits: &CallLimits, memory_bytes_max: u64) -> Result<(), Error> {
        let parts_max = limits.instances_max as u64;
        let parts = [
            ("core instances", self.instances),
            ("memories", self.memories),
            ("tables", self.tables),
        ];
        let more = if self.is_endless { "more than " } else { "" };
        if let Some((what, count)) = parts.into_iter().find(|(_, count)| *count > parts_max) {
            let message = format!("each of its instances needs {more}{count} {what} and may have {parts_max}");
            return Err(too_large(
                ErrorKind::Instances,
                message,
                "instances_max",
                parts_max,
                count,
            ));
        }
        if self.is_endless {
            let message = "its instantiation has no end in sight".to_owned();
            return Err(too_large(
                ErrorKind::Instances,
                message,
                "instances_max",
                parts_max,
                self.instances,
            ));
        }
        if self.memory_bytes > memory_bytes_max {
            let message = format!(
                "each of its instances begins with {} of memory and may have {}",
                ByteCount(self.memory_bytes),
                ByteCount(memory_bytes_max)
            );
            let (max, used) = (memory_bytes_max, self.memory_bytes);
            return Err(too_large(ErrorKind::Memory, message, "memory_bytes_max", max, used));
        }
        let (max, used) = (limits.table_elements_max, self.table_elements);
        if used > max {
            let message = format!("each of its instances begins with {used} table elements and may have {max}");
            return Err(too_large(
                ErrorKind::TableElements,
                message,
                "table_elements_max",
                max,
                used,
            ));
        }
        Ok(())
    }

    fn add(&mut self, module: &Self) {
        let sum = |total: &mut u64, part: u64| *total = total.saturating_add(part);
        sum(&mut self.instances, 1);
        sum(&mut self.memories, module.memories);
        sum(&mut self.tables, module.tables);
        sum(&mut self.memory_bytes, module.memory_bytes);
        sum(&mut self.table_elements, module.table_elements);
    }
}

fn too_large(kind: ErrorKind, message: String, limit: &'static str, max: u64, used: u64) -> Error {
    Error::new(kind, Phase::Load, message).with_limit(LimitUse::new(limit, max, used))
}

/// Takes in a component as it is parsed.
pub(crate) struct Survey {
    definitions: Vec<Vec<Step>>,
    open: Vec<Open>,
}

/// What is being parsed: the innermost comes last.
enum Open {
    Component(usize),
    Module(Footprint),
}

/// What a component does when it is instantiated, in order.
enum Step {
    DefineModule(Footprint),
    DefineComponent(usize),
    Import(Space, String),
    AliasExport(Space, u32, String),
    AliasOuter(Space, u32, u32),
    InstantiateModule(u32),
    Instantiate(u32, Vec<Named>),
    Group(Vec<Named>),
    Export(Named),
}

/// The index spaces that matter here.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Space {
    Module,
    Component,
    Instance,
}

/// Something from an index space, under a name.
struct Named {
    name: String,
    space: Space,
    index: u32,
}

impl Named {
    fn new(name: &str, kind: ComponentExternalKind, index: u32) -> Option<Self> {
        Some(Self {
            name: name.to_owned(),
            space: Space::of(kind)?,
            index,
        })
    }
}

impl Space {
    fn of(kind: ComponentExternalKind) -> Option<Self> {
        match kind {
            ComponentExternalKind::Module => Some(Self::Module),
            ComponentExternalKind::Component => Some(Self::Component),
            ComponentExternalKind::Instance => Some(Self::Instance),
            ComponentExternalKind::Func | ComponentExternalKind::Value | ComponentExternalKind::Type => None,
        }
    }
}

impl Survey {
    pub(crate) fn new() -> Self {
        Self {
            definitions: vec![Vec::new()],
            open: vec![Open::Component(0)],
        }
    }

    /// How many components and modules are open.
    pub(crate) fn depth(&self) -> usize {
        self.open.len()
    }

    /// Notes what a part of the component defines.
    pub(crate) fn read(&mut self, payload: &Payload<'_>) -> wasmparser::Result<()> {
        match payload {
            Payload::ModuleSection { .. } => self.open.push(Open::Module(Footprint::default())),
            Payload::ComponentSection { .. } => {
                let definition = self.definitions.len();
                self.definitions.push(Vec::new());
                self.step(Step::DefineComponent(definition));
                self.open.push(Open::Component(definition));
            }
            Payload::End(_) => {
                if let Some(Open::Module(module)) = self.open.pop() {
                    self.step(Step::DefineModule(module));
                }
            }
            _ => {
                self.read_module(payload)?;
                self.read_component(payload)?;
            }
        }
        Ok(())
    }

    fn step(&mut self, step: Step) {
        if let Some(Open::Component(definition)) = self.open.last() {
            self.definitions[*definition].push(step);
        }
    }

    fn read_module(&mut self, payload: &Payload<'_>) -> wasmparser::Result<()> {
        let Some(Open::Module(module)) = self.open.last_mut() else {
            return Ok(());
        };
        match payload {
            Payload::MemorySection(section) => {
                for memory in section.clone() {
                    let memory = memory?;
                    let page_bytes = 1_u64
                        .checked_shl(memory.page_size_log2.unwrap_or(16))
                        .unwrap_or(u64::MAX);
                    module.memories += 1;
                    let bytes = memory.initial.saturating_mul(page_bytes);
                    module.memory_bytes = module.memory_bytes.saturating_add(bytes);
                }
            }
            Payload::TableSection(section) => {
                for table in section.clone() {
                    let table = table?;
                    module.tables += 1;
                    module.table_elements = module.table_elements.saturating_add(table.ty.initial);
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn read_component(&mut self, payload: &Payload<'_>) -> wasmparser::Result<()> {
        match payload {
            Payload::ComponentImportSection(section) => {
                for import in section.clone() {
                    let import = import?;
                    if let Some(space) = Space::of(import.ty.kind()) {
                        self.step(Step::Import(space, import.name.name.to_owned()));
                    }
                }
            }
            Payload::ComponentExportSection(section) => {
                for export in section.clone() {
                    let export = export?;
                    if let Some(named) = Named::new(export.name.name, export.kind, export.index) {
                        self.step(Step::Export(named));
                    }
                }
            }
            Payload::ComponentAliasSection(section) => {
                for alias in section.clone() {
                    self.read_alias(&alias?);
                }
            }
            Payload::InstanceSection(section) => {
                for instance in section.clone() {
                    if let Instance::Instantiate { module_index, .. } = instance? {
                        self.step(Step::InstantiateModule(module_index));
                    }
                }
            }
            Payload::ComponentInstanceSection(section) => {
                for instance in section.clone() {
                    self.read_instance(&instance?);
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn read_alias(&mut self, alias: &ComponentAlias<'_>) {
        match alias {
            ComponentAlias::InstanceExport {
                kind,
                instance_index,
                name,
            } => {
                if let Some(space) = Space::of(*kind) {
                    self.step(Step::AliasExport(space, *instance_index, (*name).to_owned()));
                }
            }
            ComponentAlias::Outer { kind, count, index } => {
                let space = match kind {
                    ComponentOuterAliasKind::CoreModule => Space::Module,
                    ComponentOuterAliasKind::Component => Space::Component,
                    ComponentOuterAliasKind::CoreType | ComponentOuterAliasKind::Type => return,
                };
                self.step(Step::AliasOuter(space, *count, *index));
            }
            ComponentAlias::CoreInstanceExport { .. } => {}
        }
    }

    fn read_instance(&mut self, instance: &ComponentInstance<'_>) {
        let step = match instance {
            ComponentInstance::Instantiate { component_index, args } => {
                let args = args.iter().filter_map(|arg| Named::new(arg.name, arg.kind, arg.index));
                Step::Instantiate(*component_index, args.collect())
            }
            ComponentInstance::FromExports(exports) => {
                let exports = exports.iter();
                Step::Group(
                    exports
                        .filter_map(|export| Named::new(export.name.name, export.kind, export.index))
                        .collect(),
                )
            }
        };
        self.step(step);
    }

    /// Plays the instantiation through. The component must be valid.
    pub(crate) fn count(&self) -> Footprint {
        let mut play = Play {
            definitions: &self.definitions,
            scopes: Vec::new(),
            instances: Vec::new(),
            footprint: Footprint::default(),
            steps: 0,
        };
        if play.instantiate(0, None, &Exports::new(), 0).is_none() {
            play.footprint.is_endless = true;
        }
        play.footprint
    }
}

type Exports<'a> = HashMap<&'a str, Item>;

/// What stands in an index space while the instantiation is played through.
#[derive(Clone, Copy)]
enum Item {
    Module(Footprint),
    /// A component, and the scope in which it was defined.
    Component(usize, usize),
    /// Which of [`Play::instances`] it is.
    Instance(usize),
    /// Comes from the host, which instantiates nothing.
    Foreign,
}

/// The index spaces of one instantiation.
#[derive(Default)]
struct Scope {
    items: [Vec<Item>; 3],
    outer: Option<usize>,
}

/// Scopes and instances may refer to each other in circles, so that all live until the end of the play.
struct Play<'a> {
    definitions: &'a [Vec<Step>],
    scopes: Vec<Scope>,
    instances: Vec<Exports<'a>>,
    footprint: Footprint,
    steps: usize,
}

impl<'a> Play<'a> {
    fn get(&self, scope: usize, space: Space, index: u32) -> Item {
        let items = &self.scopes[scope].items[space as usize];
        let item = usize::try_from(index).ok().and_then(|index| items.get(index));
        item.copied().unwrap_or(Item::Foreign)
    }

    fn group(&mut self, scope: usize, named: &'a [Named]) -> Option<Exports<'a>> {
        self.take_steps(named.len())?;
        let items = named.iter();
        Some(
            items
                .map(|named| (named.name.as_str(), self.get(scope, named.space, named.index)))
                .collect(),
        )
    }

    fn take_steps(&mut self, steps: usize) -> Option<()> {
        self.steps = self.steps.saturating_add(steps);
        (self.steps <= STEPS_MAX).then_some(())
    }

    fn keep(&mut self, exports: Exports<'a>) -> Item {
        self.instances.push(exports);
        Item::Instance(self.instances.len() - 1)
    }

    /// Instantiates a component. `None` when there is no end in sight.
    fn instantiate(
        &mut self,
        definition: usize,
        outer: Option<usize>,
        args: &Exports<'a>,
        depth: usize,
    ) -> Option<Exports<'a>> {
        if depth > NESTING_MAX {
            return None;
        }
        let scope = self.scopes.len();
        self.scopes.push(Scope {
            outer,
            ..Scope::default()
        });
        let mut exports = Exports::new();
        let definitions = self.definitions;
        for step in &definitions[definition] {
            self.take_steps(1)?;
            if let Step::Export(named) = step {
                exports.insert(&named.name, self.get(scope, named.space, named.index));
            }
            if let Some((space, item)) = self.step(scope, step, args, depth)? {
                self.scopes[scope].items[space as usize].push(item);
            }
        }
        Some(exports)
    }

    /// Takes one step, and returns what it puts into which index space.
    fn step(
        &mut self,
        scope: usize,
        step: &'a Step,
        args: &Exports<'a>,
        depth: usize,
    ) -> Option<Option<(Space, Item)>> {
        Some(Some(match step {
            Step::DefineModule(module) => (Space::Module, Item::Module(*module)),
            Step::DefineComponent(inner) => (Space::Component, Item::Component(*inner, scope)),
            Step::Import(space, name) => (*space, args.get(name.as_str()).copied().unwrap_or(Item::Foreign)),
            Step::Export(named) => (named.space, self.get(scope, named.space, named.index)),
            Step::Group(named) => {
                let exports = self.group(scope, named)?;
                (Space::Instance, self.keep(exports))
            }
            Step::AliasExport(space, instance, name) => {
                let item = match self.get(scope, Space::Instance, *instance) {
                    Item::Instance(at) => self.instances[at].get(name.as_str()).copied(),
                    _ => None,
                };
                (*space, item.unwrap_or(Item::Foreign))
            }
            Step::AliasOuter(space, count, index) => {
                let mut from = Some(scope);
                for _ in 0..(*count).min(NESTING_MAX as u32) {
                    from = from.and_then(|scope| self.scopes[scope].outer);
                }
                (
                    *space,
                    from.map_or(Item::Foreign, |from| self.get(from, *space, *index)),
                )
            }
            Step::InstantiateModule(index) => {
                match self.get(scope, Space::Module, *index) {
                    Item::Module(module) => self.footprint.add(&module),
                    _ => self.footprint.add(&Footprint::default()),
                }
                return Some(None);
            }
            Step::Instantiate(component, args) => match self.get(scope, Space::Component, *component) {
                Item::Component(inner, around) => {
                    let args = self.group(scope, args)?;
                    let exports = self.instantiate(inner, Some(around), &args, depth + 1)?;
                    (Space::Instance, self.keep(exports))
                }
                _ => (Space::Instance, Item::Foreign),
            },
        }))
    }
}
