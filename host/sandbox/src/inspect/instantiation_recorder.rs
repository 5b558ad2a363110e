//! Records the steps by which a component is instantiated. From the steps, the core instances, memories and tables of the
//! component are counted without compiling it.

use wasmparser::{
    ComponentAlias, ComponentExternalKind, ComponentInstance, ComponentOuterAliasKind, Instance, Payload,
};

use super::footprint::Footprint;
use super::instantiation::Simulation;

/// Records the instantiation steps of a component while it is parsed.
pub(crate) struct InstantiationRecorder {
    /// The steps of each component, in the order in which the components begin. The first one is the outermost.
    definitions: Vec<Vec<InstantiationStep>>,
    /// The components and modules that are being parsed, the innermost last.
    open_definitions: Vec<OpenDefinition>,
    /// Whether a module needs a heap, for exceptions or for a table of references to objects of the host.
    needs_heap: bool,
}

/// A component or module that is being parsed.
enum OpenDefinition {
    /// A component, with the index of its steps in [`InstantiationRecorder::definitions`].
    Component(usize),
    /// A module, with the memories and tables that have been parsed so far.
    Module(Footprint),
}

/// One step of the instantiation of a component. Unless stated otherwise, an index is an index in the index space of the item.
pub(crate) enum InstantiationStep {
    /// The definition of a module, with the memories and tables that one instance allocates.
    DefineModule(Footprint),
    /// The definition of a component, with the index of its steps in [`InstantiationRecorder::definitions`].
    DefineComponent(usize),
    /// The import of an item, with its name.
    Import(Space, String),
    /// The alias of an item that an instance exports: the index of the instance, and the name of the export.
    AliasExport(Space, u32, String),
    /// The alias of an item of an outer component: the number of nesting levels to the outer component, and the index of the item.
    AliasOuter(Space, u32, u32),
    /// The instantiation of a module: its index.
    InstantiateModule(u32),
    /// The instantiation of a component: its index, and its arguments.
    Instantiate(u32, Vec<NamedItem>),
    /// The creation of an instance whose exports are existing items.
    InstanceFromExports(Vec<NamedItem>),
    /// The export of an item.
    Export(NamedItem),
}

/// The index spaces of modules, components and instances.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Space {
    Module,
    Component,
    Instance,
}

/// A named item of an index space.
pub(crate) struct NamedItem {
    pub(crate) name: String,
    pub(crate) space: Space,
    pub(crate) index: u32,
}

impl NamedItem {
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

impl InstantiationRecorder {
    pub(crate) fn new() -> Self {
        Self {
            definitions: vec![Vec::new()],
            open_definitions: vec![OpenDefinition::Component(0)],
            needs_heap: false,
        }
    }

    /// Returns the nesting depth of the components and modules that are being parsed.
    pub(crate) fn depth(&self) -> usize {
        self.open_definitions.len()
    }

    /// Records the steps of one payload of the parser.
    pub(crate) fn record(&mut self, payload: &Payload<'_>) -> wasmparser::Result<()> {
        match payload {
            Payload::ModuleSection { .. } => self.open_definitions.push(OpenDefinition::Module(Footprint::default())),
            Payload::ComponentSection { .. } => {
                let definition = self.definitions.len();
                self.definitions.push(Vec::new());
                self.add_step(InstantiationStep::DefineComponent(definition));
                self.open_definitions.push(OpenDefinition::Component(definition));
            }
            Payload::End(_) => {
                if let Some(OpenDefinition::Module(module)) = self.open_definitions.pop() {
                    self.add_step(InstantiationStep::DefineModule(module));
                }
            }
            _ => {
                self.read_module_section(payload)?;
                self.read_component_section(payload)?;
            }
        }
        Ok(())
    }

    fn add_step(&mut self, step: InstantiationStep) {
        if let Some(OpenDefinition::Component(definition)) = self.open_definitions.last() {
            self.definitions[*definition].push(step);
        }
    }

    fn read_module_section(&mut self, payload: &Payload<'_>) -> wasmparser::Result<()> {
        let Some(OpenDefinition::Module(module)) = self.open_definitions.last_mut() else {
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
                    self.needs_heap |= !table.ty.element_type.is_func_ref();
                    module.table_elements = module.table_elements.saturating_add(table.ty.initial);
                }
            }
            Payload::TagSection(_) => self.needs_heap = true,
            _ => {}
        }
        Ok(())
    }

    fn read_component_section(&mut self, payload: &Payload<'_>) -> wasmparser::Result<()> {
        match payload {
            Payload::ComponentImportSection(section) => {
                for import in section.clone() {
                    let import = import?;
                    if let Some(space) = Space::of(import.ty.kind()) {
                        self.add_step(InstantiationStep::Import(space, import.name.name.to_owned()));
                    }
                }
            }
            Payload::ComponentExportSection(section) => {
                for export in section.clone() {
                    let export = export?;
                    if let Some(named) = NamedItem::new(export.name.name, export.kind, export.index) {
                        self.add_step(InstantiationStep::Export(named));
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
                        self.add_step(InstantiationStep::InstantiateModule(module_index));
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
                    self.add_step(InstantiationStep::AliasExport(
                        space,
                        *instance_index,
                        (*name).to_owned(),
                    ));
                }
            }
            ComponentAlias::Outer { kind, count, index } => {
                let space = match kind {
                    ComponentOuterAliasKind::CoreModule => Space::Module,
                    ComponentOuterAliasKind::Component => Space::Component,
                    ComponentOuterAliasKind::CoreType | ComponentOuterAliasKind::Type => return,
                };
                self.add_step(InstantiationStep::AliasOuter(space, *count, *index));
            }
            ComponentAlias::CoreInstanceExport { .. } => {}
        }
    }

    fn read_instance(&mut self, instance: &ComponentInstance<'_>) {
        let step = match instance {
            ComponentInstance::Instantiate { component_index, args } => {
                let args = args
                    .iter()
                    .filter_map(|arg| NamedItem::new(arg.name, arg.kind, arg.index));
                InstantiationStep::Instantiate(*component_index, args.collect())
            }
            ComponentInstance::FromExports(exports) => {
                let exports = exports.iter();
                InstantiationStep::InstanceFromExports(
                    exports
                        .filter_map(|export| NamedItem::new(export.name.name, export.kind, export.index))
                        .collect(),
                )
            }
        };
        self.add_step(step);
    }

    /// Returns the core instances, memories and tables that one instance of the component allocates. The component must be valid.
    pub(crate) fn footprint(&self) -> Footprint {
        let mut footprint = Simulation::run(&self.definitions);
        // The instance has one heap, which takes the place of a memory.
        footprint.memories = footprint.memories.saturating_add(self.needs_heap.into());
        footprint
    }
}
