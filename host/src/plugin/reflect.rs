//! From the types of a component's exports to functions that can be tools.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use wasmparser::PrimitiveValType;
use wasmparser::component_types::{
    ComponentAnyTypeId, ComponentDefinedType, ComponentEntityType, ComponentFuncType, ComponentInstanceTypeId,
    ComponentValType, ResourceId,
};
use wasmparser::types::Types;
use wit_parser::{Resolve, WorldItem};

use super::check::Checked;
use super::types::{Case, Field, Function, FunctionKind, Label, Resource, ResourceIndex, Shape, Skipped, WitType};

/// The most parts that the types of one function may have, so that a few bytes cannot stand for a gigantic schema.
const TYPE_PARTS_MAX: usize = 4_096;

/// The most parts that the types of all functions of a component may have together.
const COMPONENT_PARTS_MAX: usize = 1 << 17;

/// Every so many bytes of names count as one part.
const NAME_BYTES_PER_PART: usize = 32;

/// The longest name of a function or an interface, in bytes.
const EXPORT_BYTES_MAX: usize = 512;

/// The most exports that are told to be no tools.
const SKIPPED_MAX: usize = 1_024;

/// How deep types may nest. The model would be lost long before.
const TYPE_DEPTH_MAX: usize = 64;

/// The most functions that one component may offer; the rest is skipped.
const FUNCTIONS_MAX: usize = 4_096;

/// Exports that toolchains add for their own use: of componentize-py, and of componentize-qjs. An author's own function of
/// that name is one that the component's WIT knows.
const TOOLCHAIN_EXPORTS: [&str; 2] = ["exports", "init"];

/// Reads what a component exports. Docs and schemas come later.
pub(crate) fn reflect(checked: &Checked<'_>, wit: Option<&Resolve>) -> Shape {
    let mut reader = Reader::new(checked, wit);
    for name in &checked.exports {
        reader.read_export(name);
    }
    reader.shape.assign_methods();
    reader.shape
}

struct Reader<'a> {
    types: &'a Types,
    exports: &'a [&'a str],
    /// What the author wrote, where the component carries it.
    wit: Option<&'a Resolve>,
    /// Resources that come from the host, with the names by which they are imported.
    imported: HashMap<ResourceId, String>,
    resources: HashMap<ResourceId, ResourceIndex>,
    /// Parts of the types that were read so far.
    parts: usize,
    shape: Shape,
}

impl<'a> Reader<'a> {
    fn new(checked: &'a Checked<'a>, wit: Option<&'a Resolve>) -> Self {
        let mut reader = Self {
            types: &checked.types,
            exports: &checked.exports,
            wit,
            imported: HashMap::new(),
            resources: HashMap::new(),
            parts: 0,
            shape: Shape::default(),
        };
        for name in &checked.imports {
            if let Some(item) = checked.types.component_item_for_import(name) {
                for (id, resource) in resources_of(&checked.types, name, &item.ty) {
                    reader.imported.insert(id, resource);
                }
            }
        }
        reader.collect_resources();
        reader
    }

    /// Numbers the exported resources first, since functions of one interface may use those of a later one.
    fn collect_resources(&mut self) {
        let mut seen = HashSet::new();
        for export in self.exports {
            let Some(item) = self.types.component_item_for_export(export) else {
                continue;
            };
            let interface = matches!(item.ty, ComponentEntityType::Instance(_)).then(|| Arc::from(*export));
            for (id, name) in resources_of(self.types, export, &item.ty) {
                if self.imported.contains_key(&id) || name.len() > EXPORT_BYTES_MAX || !seen.insert(id) {
                    continue;
                }
                self.resources.insert(id, ResourceIndex(self.shape.resources.len()));
                self.shape.resources.push(Resource {
                    interface: interface.clone(),
                    name,
                    docs: None,
                    methods: Vec::new(),
                    rebinding: Default::default(),
                    id: None,
                    describe: None,
                });
            }
        }
    }

    fn read_export(&mut self, name: &str) {
        let Some(item) = self.types.component_item_for_export(name) else {
            return;
        };
        match &item.ty {
            _ if TOOLCHAIN_EXPORTS.contains(&name) && !self.is_authored(name) => {
                self.skip(name, "it was added by the toolchain, not by the author")
            }
            ComponentEntityType::Func(id) => self.read_function(None, name, &self.types[*id]),
            ComponentEntityType::Instance(id) if is_command(name) => {
                if self.has_run(*id) {
                    self.add_command(name)
                } else {
                    self.skip(name, "it has no function `run: func() -> result`")
                }
            }
            ComponentEntityType::Instance(_) if name.starts_with("wasi:") => {
                self.skip(name, "it is an interface for servers, not a tool");
            }
            ComponentEntityType::Instance(_) if name.len() > EXPORT_BYTES_MAX => {
                self.skip(name, format!("its name is longer than {EXPORT_BYTES_MAX} bytes"));
            }
            ComponentEntityType::Instance(id) => {
                let interface: Arc<str> = name.into();
                for (function, item) in &self.types[*id].exports {
                    if let ComponentEntityType::Func(id) = &item.ty {
                        self.read_function(Some(&interface), function, &self.types[*id]);
                    }
                }
            }
            ComponentEntityType::Type { .. } => {}
            ComponentEntityType::Module(_) | ComponentEntityType::Component(_) | ComponentEntityType::Value(_) => {
                self.skip(name, "it is no function");
            }
        }
    }

    fn is_authored(&self, export: &str) -> bool {
        let worlds = self.wit.into_iter().flat_map(|wit| wit.worlds.iter());
        worlds
            .flat_map(|(_, world)| world.exports.values())
            .any(|item| matches!(item, WorldItem::Function(function) if function.name == export))
    }

    fn has_run(&self, interface: ComponentInstanceTypeId) -> bool {
        let Some(ComponentEntityType::Func(id)) = self.types[interface].exports.get("run").map(|item| &item.ty) else {
            return false;
        };
        let run = &self.types[*id];
        let gives_bare_result = match run.result {
            Some(ComponentValType::Type(id)) => matches!(
                &self.types[id],
                ComponentDefinedType::Result {
                    ok: None,
                    err: None,
                    ..
                }
            ),
            _ => false,
        };
        run.params.is_empty() && gives_bare_result
    }

    fn skip(&mut self, export: &str, reason: impl Into<String>) {
        match self.shape.skipped.len() {
            len if len < SKIPPED_MAX => self.shape.skipped.push(Skipped {
                export: shortened(export),
                reason: reason.into(),
            }),
            SKIPPED_MAX => self.shape.skipped.push(Skipped {
                export: "…".to_owned(),
                reason: format!("more than {SKIPPED_MAX} exports are no tools"),
            }),
            _ => {}
        }
    }

    fn read_function(&mut self, interface: Option<&Arc<str>>, export: &str, ty: &ComponentFuncType) {
        let read = if self.shape.functions.len() < FUNCTIONS_MAX {
            self.function(interface, export, ty)
        } else {
            Err(format!("the component exports more than {FUNCTIONS_MAX} functions"))
        };
        match read {
            Ok((function, parts)) => {
                self.parts += parts;
                self.shape.functions.push(function);
            }
            Err(reason) => {
                let export = interface.map_or_else(|| export.to_owned(), |interface| format!("{interface}#{export}"));
                self.skip(&export, reason);
            }
        }
    }

    /// Reads a function, and says how many parts its types have.
    fn function(
        &self,
        interface: Option<&Arc<str>>,
        export: &str,
        ty: &ComponentFuncType,
    ) -> Result<(Function, usize), String> {
        if export.len() > EXPORT_BYTES_MAX {
            return Err(format!("its name is longer than {EXPORT_BYTES_MAX} bytes"));
        }
        let mut parts = 0;
        let mut params = Vec::with_capacity(ty.params.len());
        for (name, param) in &ty.params {
            count_parts(&mut parts, parts_of_name(name))?;
            params.push(Field {
                label: Label::new(name),
                ty: self.read_type(*param, 0, &mut parts)?,
            });
        }
        let result = ty
            .result
            .map(|result| self.read_type(result, 0, &mut parts))
            .transpose()?;
        let (kind, name) = self.kind(export, &params, result.as_ref())?;
        if matches!(kind, FunctionKind::Method(_)) {
            params.remove(0);
        }
        if self.parts + parts > COMPONENT_PARTS_MAX {
            return Err(format!(
                "the types of the component's functions have more than {COMPONENT_PARTS_MAX} parts"
            ));
        }
        let function = Function {
            interface: interface.cloned(),
            export: export.to_owned(),
            kind,
            name,
            params,
            result,
            docs: None,
            input_schema: Arc::default(),
            output_schema: None,
        };
        Ok((function, parts))
    }

    /// Reads `[method]customer.get-average-spend` and its kin.
    fn kind(&self, export: &str, params: &[Field], result: Option<&WitType>) -> Result<(FunctionKind, String), String> {
        let Some((tag, rest)) = export.strip_prefix('[').and_then(|rest| rest.split_once(']')) else {
            return Ok((FunctionKind::Free, export.to_owned()));
        };
        let (resource, name) = rest.split_once('.').unwrap_or((rest, "new"));
        let missing = || format!("the resource `{resource}` is not exported");
        match (
            tag.trim_start_matches("async").trim_start(),
            params.first().map(|first| &first.ty),
            result,
        ) {
            ("method", Some(WitType::Borrow(index)), _) => Ok((FunctionKind::Method(*index), name.to_owned())),
            ("constructor", _, Some(WitType::Own(index))) => Ok((FunctionKind::Constructor(*index), name.to_owned())),
            ("constructor", _, Some(WitType::Result { ok: Some(ok), .. })) => match **ok {
                WitType::Own(index) => Ok((FunctionKind::Constructor(index), name.to_owned())),
                _ => Err(missing()),
            },
            ("static", _, _) => {
                let found = self.shape.resources.iter().position(|known| known.name == resource);
                Ok((
                    FunctionKind::Static(ResourceIndex(found.ok_or_else(missing)?)),
                    name.to_owned(),
                ))
            }
            ("", ..) => Ok((FunctionKind::Free, rest.to_owned())),
            _ => Err(format!("functions of the kind `[{tag}]` are not supported")),
        }
    }

    fn add_command(&mut self, interface: &str) {
        self.shape.functions.push(Function {
            interface: Some(interface.into()),
            export: "run".to_owned(),
            kind: FunctionKind::Command,
            name: "run".to_owned(),
            params: Vec::new(),
            result: None,
            docs: None,
            input_schema: Arc::default(),
            output_schema: None,
        });
    }

    fn read_type(&self, ty: ComponentValType, depth: usize, parts: &mut usize) -> Result<WitType, String> {
        count_parts(parts, 1)?;
        if depth > TYPE_DEPTH_MAX {
            return Err(format!("its types nest deeper than {TYPE_DEPTH_MAX}"));
        }
        match ty {
            ComponentValType::Primitive(primitive) => read_primitive(primitive),
            ComponentValType::Type(id) => self.read_defined(&self.types[id], depth + 1, parts),
        }
    }

    fn read_defined(&self, ty: &ComponentDefinedType, depth: usize, parts: &mut usize) -> Result<WitType, String> {
        count_parts(parts, names_of(ty).map(parts_of_name).sum())?;
        let mut read = |ty: &ComponentValType| self.read_type(*ty, depth, parts);
        Ok(match ty {
            ComponentDefinedType::Primitive(primitive) => read_primitive(*primitive)?,
            ComponentDefinedType::List { element, .. } => match read(element)? {
                WitType::U8 => WitType::Bytes,
                item => WitType::List(Box::new(item)),
            },
            ComponentDefinedType::Tuple(tuple) => {
                WitType::Tuple(tuple.types.iter().map(read).collect::<Result<_, _>>()?)
            }
            ComponentDefinedType::Record(record) => WitType::Record(
                record
                    .fields
                    .iter()
                    .map(|(name, ty)| {
                        Ok(Field {
                            label: Label::new(name),
                            ty: read(ty)?,
                        })
                    })
                    .collect::<Result<_, String>>()?,
            ),
            ComponentDefinedType::Variant(variant) => WitType::Variant(
                variant
                    .cases
                    .iter()
                    .map(|(name, case)| {
                        Ok(Case {
                            label: Label::new(name),
                            ty: case.ty.as_ref().map(&mut read).transpose()?,
                        })
                    })
                    .collect::<Result<_, String>>()?,
            ),
            ComponentDefinedType::Enum(names) => WitType::Enum(names.iter().map(|name| Label::new(name)).collect()),
            ComponentDefinedType::Flags(names) => WitType::Flags(names.iter().map(|name| Label::new(name)).collect()),
            ComponentDefinedType::Option { ty, .. } => WitType::Option(Box::new(read(ty)?)),
            ComponentDefinedType::Result { ok, err, .. } => WitType::Result {
                ok: ok.as_ref().map(&mut read).transpose()?.map(Box::new),
                err: err.as_ref().map(&mut read).transpose()?.map(Box::new),
            },
            ComponentDefinedType::Own(id) => WitType::Own(self.resource(id.resource())?),
            ComponentDefinedType::Borrow(id) => WitType::Borrow(self.resource(id.resource())?),
            ComponentDefinedType::Future { .. } => return Err("it uses a `future`, which is not supported".to_owned()),
            ComponentDefinedType::Stream { .. } => return Err("it uses a `stream`, which is not supported".to_owned()),
            ComponentDefinedType::Map { .. } => return Err("it uses a `map`, which is not supported".to_owned()),
            ComponentDefinedType::FixedLengthList { .. } => {
                return Err("it uses a list of fixed length, which is not supported".to_owned());
            }
        })
    }

    fn resource(&self, id: ResourceId) -> Result<ResourceIndex, String> {
        match (self.resources.get(&id), self.imported.get(&id)) {
            (Some(index), _) => Ok(*index),
            (None, Some(name)) => Err(format!("it uses the host's resource `{name}`")),
            (None, None) => Err("it uses a resource that is not exported".to_owned()),
        }
    }
}

fn count_parts(parts: &mut usize, more: usize) -> Result<(), String> {
    *parts = parts.saturating_add(more);
    if *parts > TYPE_PARTS_MAX {
        return Err(format!("its types have more than {TYPE_PARTS_MAX} parts"));
    }
    Ok(())
}

/// Lists the names that a type brings along.
fn names_of(ty: &ComponentDefinedType) -> Box<dyn Iterator<Item = &str> + '_> {
    match ty {
        ComponentDefinedType::Record(record) => Box::new(record.fields.keys().map(|name| name.as_str())),
        ComponentDefinedType::Variant(variant) => Box::new(variant.cases.keys().map(|name| name.as_str())),
        ComponentDefinedType::Enum(names) | ComponentDefinedType::Flags(names) => {
            Box::new(names.iter().map(|name| name.as_str()))
        }
        _ => Box::new(std::iter::empty()),
    }
}

/// A name counts, and a long one more.
fn parts_of_name(name: &str) -> usize {
    1 + name.len() / NAME_BYTES_PER_PART
}

/// Cuts a name that came from outside to a bearable length.
pub(crate) fn shortened(name: &str) -> String {
    let mut shown: String = name.chars().take(EXPORT_BYTES_MAX).collect();
    if shown.len() < name.len() {
        shown.push('…');
    }
    shown
}

fn read_primitive(primitive: PrimitiveValType) -> Result<WitType, String> {
    Ok(match primitive {
        PrimitiveValType::Bool => WitType::Bool,
        PrimitiveValType::S8 => WitType::S8,
        PrimitiveValType::U8 => WitType::U8,
        PrimitiveValType::S16 => WitType::S16,
        PrimitiveValType::U16 => WitType::U16,
        PrimitiveValType::S32 => WitType::S32,
        PrimitiveValType::U32 => WitType::U32,
        PrimitiveValType::S64 => WitType::S64,
        PrimitiveValType::U64 => WitType::U64,
        PrimitiveValType::F32 => WitType::F32,
        PrimitiveValType::F64 => WitType::F64,
        PrimitiveValType::Char => WitType::Char,
        PrimitiveValType::String => WitType::String,
        PrimitiveValType::ErrorContext => return Err("it uses an `error-context`, which is not supported".to_owned()),
    })
}

/// Lists the resources that an import or export brings, with their names.
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

/// Whether an interface is `wasi:cli/run` of a version that the host can run.
fn is_command(interface: &str) -> bool {
    interface
        .strip_prefix("wasi:cli/run@")
        .is_some_and(|version| version.starts_with("0.2."))
}

impl Shape {
    /// Gives each resource its methods, and finds out which of them name and describe it.
    fn assign_methods(&mut self) {
        for (at, function) in self.functions.iter().enumerate() {
            let FunctionKind::Method(ResourceIndex(index)) = function.kind else {
                continue;
            };
            let Some(resource) = self.resources.get_mut(index) else {
                continue;
            };
            resource.methods.push(at);
            if !function.params.is_empty() {
                continue;
            }
            match (function.name.as_str(), &function.result) {
                ("id", Some(WitType::String)) => resource.id = Some(at),
                ("describe", Some(result)) if !result.holds_resources() => resource.describe = Some(at),
                _ => {}
            }
        }
    }
}
