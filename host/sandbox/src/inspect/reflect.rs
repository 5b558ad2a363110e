//! Reads the exports of a component: the functions that can be tools, the resources, and the skipped exports.

mod command_export;
mod contract_exports;
mod plugin_exports;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use wasmparser::component_types::{ComponentAnyTypeId, ComponentEntityType, ComponentFuncType, ResourceId};
use wasmparser::types::Types;
use wit_parser::{Resolve, WorldItem};

use self::command_export::is_command;
use super::check::CheckedComponent;
use super::contract_export::ContractInterface;
use super::interfaces::PLUGIN_PACKAGE;
use super::type_reader::{PartCount, TypeReader};
use crate::values::types::{
    Field, Function, FunctionKind, Label, Resource, ResourceIndex, Shape, SkippedExport, WitType,
};
use toolwit_core::limits::{COMPONENT_PARTS_MAX, FUNCTIONS_MAX};

/// The maximum length of the name of a function, an interface or a resource, in bytes.
const EXPORT_NAME_BYTES_MAX: usize = 512;

/// The maximum number of skipped exports that are reported.
const SKIPPED_MAX: usize = 1_024;

/// Internal exports that toolchains add (componentize-py, componentize-qjs). If the component's WIT declares a function of this
/// name, the export is a function of the author.
const TOOLCHAIN_EXPORTS: [&str; 2] = ["exports", "init"];

/// The reason why an export in [`TOOLCHAIN_EXPORTS`] is not a tool.
pub(super) const ADDED_BY_TOOLCHAIN: &str = "it was added by the toolchain, not by the author";

/// Reads the exports of a component, without docs and schemas.
pub(crate) fn reflect(checked: &CheckedComponent<'_>, wit: Option<&Resolve>) -> Shape {
    let mut reader = ExportReader::new(checked, wit);
    for name in &checked.exports {
        reader.read_export(name);
    }
    reader.shape.assign_methods();
    reader.shape
}

/// Reads the exports of a component into a shape.
struct ExportReader<'a> {
    type_reader: TypeReader<'a>,
    exports: &'a [&'a str],
    /// The WIT of the component, embedded or from the file next to it.
    wit: Option<&'a Resolve>,
    /// The number of parts of the types of all functions in the shape; see [`PartCount`].
    part_count: usize,
    shape: Shape,
}

impl<'a> ExportReader<'a> {
    fn new(checked: &'a CheckedComponent<'a>, wit: Option<&'a Resolve>) -> Self {
        let mut imported_resources = HashMap::new();
        for name in &checked.imports {
            if let Some(item) = checked.types.component_item_for_import(name) {
                let resources = resources_of(&checked.types, name, &item.ty).into_iter();
                imported_resources.extend(resources.map(|(id, name)| (id, shortened(&name))));
            }
        }
        let mut reader = Self {
            type_reader: TypeReader {
                types: &checked.types,
                imported_resources,
                exported_resources: HashMap::new(),
            },
            exports: &checked.exports,
            wit,
            part_count: 0,
            shape: Shape::default(),
        };
        reader.collect_resources();
        reader
    }

    /// Collects the exported resources. Call this before reading functions: a function can use a resource of an interface that is
    /// exported later.
    fn collect_resources(&mut self) {
        let mut visited = HashSet::new();
        for export in self.exports {
            let Some(item) = self.type_reader.types.component_item_for_export(export) else {
                continue;
            };
            let interface = matches!(item.ty, ComponentEntityType::Instance(_)).then(|| Arc::from(*export));
            for (id, name) in resources_of(self.type_reader.types, export, &item.ty) {
                let is_imported = self.type_reader.imported_resources.contains_key(&id);
                if is_imported || name.len() > EXPORT_NAME_BYTES_MAX || !visited.insert(id) {
                    continue;
                }
                self.type_reader
                    .exported_resources
                    .insert(id, ResourceIndex(self.shape.resources.len()));
                self.shape.resources.push(Resource {
                    interface: interface.clone(),
                    name,
                    docs: None,
                    methods: Vec::new(),
                    rebinding: Default::default(),
                    is_chained: false,
                    id_method: None,
                    describe_method: None,
                });
            }
        }
    }

    fn read_export(&mut self, name: &str) {
        let Some(item) = self.type_reader.types.component_item_for_export(name) else {
            return;
        };
        match &item.ty {
            _ if TOOLCHAIN_EXPORTS.contains(&name) && !self.is_authored(name) => self.skip(name, ADDED_BY_TOOLCHAIN),
            ComponentEntityType::Func(id) => self.read_function(None, name, &self.type_reader.types[*id]),
            ComponentEntityType::Instance(id) if is_command(name) => self.read_command(name, *id),
            ComponentEntityType::Instance(id) if name.starts_with(PLUGIN_PACKAGE) => self.read_plugin_export(name, *id),
            ComponentEntityType::Instance(id) if let Some(contract) = ContractInterface::of(name) => {
                self.read_contract_export(name, *id, contract);
            }
            ComponentEntityType::Instance(_) if name.starts_with("wasi:") => {
                self.skip(name, wasi_reason(name));
            }
            ComponentEntityType::Instance(_) if name.len() > EXPORT_NAME_BYTES_MAX => {
                self.skip(name, format!("its name is longer than {EXPORT_NAME_BYTES_MAX} bytes"));
            }
            ComponentEntityType::Instance(id) => {
                let interface: Arc<str> = name.into();
                for (function, item) in &self.type_reader.types[*id].exports {
                    if let ComponentEntityType::Func(id) = &item.ty {
                        self.read_function(Some(&interface), function, &self.type_reader.types[*id]);
                    }
                }
            }
            ComponentEntityType::Type { .. } => {}
            ComponentEntityType::Module(_) | ComponentEntityType::Component(_) | ComponentEntityType::Value(_) => {
                self.skip(name, "it is not a function");
            }
        }
    }

    /// Returns whether a world of the WIT exports a function of this name.
    fn is_authored(&self, export: &str) -> bool {
        let worlds = self.wit.into_iter().flat_map(|wit| wit.worlds.iter());
        worlds
            .flat_map(|(_, world)| world.exports.values())
            .any(|item| matches!(item, WorldItem::Function(function) if function.name == export))
    }

    /// Records that an export is not a tool. After [`SKIPPED_MAX`] exports, one entry stands for all others.
    fn skip(&mut self, export: &str, reason: impl Into<String>) {
        match self.shape.skipped.len() {
            len if len < SKIPPED_MAX => self.shape.skipped.push(SkippedExport {
                export: shortened(export),
                reason: reason.into(),
            }),
            SKIPPED_MAX => self.shape.skipped.push(SkippedExport {
                export: "…".to_owned(),
                reason: format!("more than {SKIPPED_MAX} exports are not tools"),
            }),
            _ => {}
        }
    }

    /// Adds an exported function to the shape, or records the reason why it is not a tool.
    fn read_function(&mut self, interface: Option<&Arc<str>>, export: &str, ty: &ComponentFuncType) {
        let function = if self.shape.functions.len() < FUNCTIONS_MAX {
            self.build_function(interface, export, ty)
        } else {
            Err(format!("the component exports more than {FUNCTIONS_MAX} functions"))
        };
        match function {
            Ok((function, part_count)) => {
                self.part_count += part_count;
                self.shape.functions.push(function);
            }
            Err(reason) => {
                let export = interface.map_or_else(|| export.to_owned(), |interface| format!("{interface}#{export}"));
                self.skip(&export, reason);
            }
        }
    }

    /// Creates a function of the shape from its export. Also returns the number of parts of its types. The error is the reason why
    /// the function is not a tool.
    fn build_function(
        &self,
        interface: Option<&Arc<str>>,
        export: &str,
        ty: &ComponentFuncType,
    ) -> Result<(Function, usize), String> {
        if export.len() > EXPORT_NAME_BYTES_MAX {
            return Err(format!("its name is longer than {EXPORT_NAME_BYTES_MAX} bytes"));
        }
        let mut parts = PartCount::default();
        let mut params = Vec::with_capacity(ty.params.len());
        for (name, param) in &ty.params {
            parts.add_name(name)?;
            params.push(Field {
                label: Label::new(name),
                ty: self.type_reader.read(*param, &mut parts)?,
            });
        }
        let result = ty
            .result
            .map(|result| self.type_reader.read(result, &mut parts))
            .transpose()?;
        if result.as_ref().is_some_and(holds_uncounted_streams) {
            return Err("its result has streams in a list or a variant, which is not supported".to_owned());
        }
        let (kind, name) = self.kind_and_name(interface, export, &params, result.as_ref())?;
        if matches!(kind, FunctionKind::Method(_)) {
            params.remove(0);
        }
        if self.part_count + parts.count() > COMPONENT_PARTS_MAX {
            return Err(format!(
                "the types of the component's functions have more than {COMPONENT_PARTS_MAX} parts (types, fields and cases)"
            ));
        }
        let function = Function {
            interface: interface.cloned(),
            export: export.to_owned(),
            kind,
            name,
            params,
            result,
            returns_tool_result: false,
            docs: None,
            effect: None,
            input_schema: Arc::default(),
            output_schema: None,
        };
        Ok((function, parts.count()))
    }

    /// Returns the kind and the short name of a function, from an export such as `[method]customer.get-average-spend`. The
    /// error is the reason why the function is not a tool.
    fn kind_and_name(
        &self,
        interface: Option<&Arc<str>>,
        export: &str,
        params: &[Field],
        result: Option<&WitType>,
    ) -> Result<(FunctionKind, String), String> {
        let Some((tag, path)) = export.strip_prefix('[').and_then(|tagged| tagged.split_once(']')) else {
            return Ok((FunctionKind::Free, export.to_owned()));
        };
        let (resource, name) = path.split_once('.').unwrap_or((path, "new"));
        let not_exported = || format!("the resource `{resource}` is not exported");
        // An async function has the tag `async`. An async method has the tag `async method`.
        match (
            tag.trim_start_matches("async").trim_start(),
            params.first().map(|param| &param.ty),
            result,
        ) {
            ("method", Some(WitType::Borrow(index)), _) => Ok((FunctionKind::Method(*index), name.to_owned())),
            ("constructor", _, Some(WitType::Own(index))) => Ok((FunctionKind::Constructor(*index), name.to_owned())),
            ("constructor", _, Some(WitType::Result { ok: Some(ok), .. })) => match **ok {
                WitType::Own(index) => Ok((FunctionKind::Constructor(index), name.to_owned())),
                _ => Err(not_exported()),
            },
            ("static", _, _) => {
                let has_name_and_interface =
                    |exported: &Resource| exported.name == resource && exported.interface.as_ref() == interface;
                let index = self.shape.resources.iter().position(has_name_and_interface);
                Ok((
                    FunctionKind::Static(ResourceIndex(index.ok_or_else(not_exported)?)),
                    name.to_owned(),
                ))
            }
            ("", ..) => Ok((FunctionKind::Free, path.to_owned())),
            _ => Err(format!("functions of the kind `[{tag}]` are not supported")),
        }
    }
}

/// Returns the reason why an exported interface of WASI is not a tool.
fn wasi_reason(interface: &str) -> &'static str {
    match interface.split('@').next().unwrap_or_default() {
        "wasi:http/incoming-handler" | "wasi:http/handler" => "it is an HTTP server, and this host calls functions",
        "wasi:cli/run" => "this host runs programs of WASI 0.2 and 0.3",
        _ => "it is an interface of WASI, not a tool",
    }
}

/// Cuts an untrusted name to [`EXPORT_NAME_BYTES_MAX`] characters, and marks the cut with `…`.
pub(crate) fn shortened(name: &str) -> String {
    let mut short: String = name.chars().take(EXPORT_NAME_BYTES_MAX).collect();
    if short.len() < name.len() {
        short.push('…');
    }
    short
}

/// Returns whether a type has streams in a list or a variant. The type then does not determine the number of streams in a
/// value.
fn holds_uncounted_streams(ty: &WitType) -> bool {
    match ty {
        WitType::List(item) => item.holds_streams(),
        WitType::Variant(cases) => cases
            .iter()
            .filter_map(|case| case.ty.as_ref())
            .any(WitType::holds_streams),
        WitType::Option(item) => holds_uncounted_streams(item),
        WitType::Tuple(items) => items.iter().any(holds_uncounted_streams),
        WitType::Record(fields) => fields.iter().any(|field| holds_uncounted_streams(&field.ty)),
        WitType::Result { ok, err } => ok.iter().chain(err).any(|ty| holds_uncounted_streams(ty)),
        _ => false,
    }
}

/// Lists the resources of an import or export, with their names.
fn resources_of(types: &Types, name: &str, ty: &ComponentEntityType) -> Vec<(ResourceId, String)> {
    match ty {
        ComponentEntityType::Type {
            created: ComponentAnyTypeId::Resource(id),
            ..
        } => {
            vec![(id.resource(), name.to_owned())]
        }
        ComponentEntityType::Instance(id) => types[*id]
            .exports
            .iter()
            .filter_map(|(name, item)| match &item.ty {
                ComponentEntityType::Type {
                    created: ComponentAnyTypeId::Resource(id),
                    ..
                } => Some((id.resource(), name.clone())),
                _ => None,
            })
            .collect(),
        _ => Vec::new(),
    }
}

impl Shape {
    /// Assigns the methods to their resources, and identifies the methods that return the id and the description.
    fn assign_methods(&mut self) {
        for (index, function) in self.functions.iter().enumerate() {
            let FunctionKind::Method(ResourceIndex(resource)) = function.kind else {
                continue;
            };
            let Some(resource) = self.resources.get_mut(resource) else {
                continue;
            };
            resource.methods.push(index);
            if !function.params.is_empty() {
                continue;
            }
            match (function.name.as_str(), &function.result) {
                ("id", Some(WitType::String)) => resource.id_method = Some(index),
                ("describe", Some(result)) if !result.holds_resources() => resource.describe_method = Some(index),
                _ => {}
            }
        }
    }
}
