//! Reads the types of a component's functions. The [parts](PartCount) of each type are counted and limited, so that a small
//! component cannot cause a huge schema.

use std::collections::HashMap;

use wasmparser::PrimitiveValType;
use wasmparser::component_types::{ComponentDefinedType, ComponentValType, ResourceId};
use wasmparser::types::Types;

use crate::values::types::{Case, Field, Label, ResourceIndex, WitType};
use toolwit_core::limits::{FUNCTION_PARTS_MAX, TYPE_DEPTH_MAX};

/// The number of bytes of a name that count as one additional part.
const NAME_BYTES_PER_PART: usize = 32;

/// Reads the types of a component's functions. An error is the reason why a function with the type cannot be a tool.
pub(crate) struct TypeReader<'a> {
    pub(crate) types: &'a Types,
    /// The imported resources, with their names.
    pub(crate) imported_resources: HashMap<ResourceId, String>,
    /// The exported resources, with their indexes in the shape.
    pub(crate) exported_resources: HashMap<ResourceId, ResourceIndex>,
}

/// The number of parts of a function's types. A part is a type that occurs in them, or the name of a parameter, a field or a
/// case. A long name is several parts.
#[derive(Default)]
pub(crate) struct PartCount(usize);

impl PartCount {
    pub(crate) fn count(&self) -> usize {
        self.0
    }

    fn add(&mut self, parts: usize) -> Result<(), String> {
        self.0 = self.0.saturating_add(parts);
        if self.0 > FUNCTION_PARTS_MAX {
            return Err(format!(
                "its types have more than {FUNCTION_PARTS_MAX} parts (types, fields and cases; a long name is several parts)"
            ));
        }
        Ok(())
    }

    /// Counts a name: one part, and one more for each full [`NAME_BYTES_PER_PART`] bytes.
    pub(crate) fn add_name(&mut self, name: &str) -> Result<(), String> {
        self.add(1 + name.len() / NAME_BYTES_PER_PART)
    }
}

impl TypeReader<'_> {
    pub(crate) fn read(&self, ty: ComponentValType, parts: &mut PartCount) -> Result<WitType, String> {
        self.read_type(ty, 0, parts)
    }

    fn read_type(&self, ty: ComponentValType, depth: usize, parts: &mut PartCount) -> Result<WitType, String> {
        parts.add(1)?;
        if depth > TYPE_DEPTH_MAX {
            return Err(format!("its types nest deeper than {TYPE_DEPTH_MAX}"));
        }
        match ty {
            ComponentValType::Primitive(primitive) => read_primitive(primitive),
            ComponentValType::Type(id) => self.read_defined(&self.types[id], depth + 1, parts),
        }
    }

    fn read_defined(&self, ty: &ComponentDefinedType, depth: usize, parts: &mut PartCount) -> Result<WitType, String> {
        names_of(ty).try_for_each(|name| parts.add_name(name))?;
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
            ComponentDefinedType::Future { ty, .. } => {
                let payload = ty.as_ref().map(&mut read).transpose()?;
                if payload.as_ref().is_some_and(|payload| !is_future_payload(payload)) {
                    return Err(
                        "it uses a `future` whose payload is neither a scalar nor a `result` of strings".to_owned(),
                    );
                }
                WitType::Future(payload.map(Box::new))
            }
            ComponentDefinedType::Stream { ty, .. } => match ty.as_ref().map(&mut read).transpose()? {
                Some(item) if item.is_scalar() => WitType::Stream(Box::new(item)),
                _ => return Err("it uses a `stream` whose items are not scalars".to_owned()),
            },
            ComponentDefinedType::Map { .. } => return Err("it uses a `map`, which is not supported".to_owned()),
            ComponentDefinedType::FixedLengthList { .. } => {
                return Err("it uses a list of fixed length, which is not supported".to_owned());
            }
        })
    }

    fn resource(&self, id: ResourceId) -> Result<ResourceIndex, String> {
        match (self.exported_resources.get(&id), self.imported_resources.get(&id)) {
            (Some(index), _) => Ok(*index),
            (None, Some(name)) => Err(format!("it uses the host's resource `{name}`")),
            (None, None) => Err("it uses a resource that is not exported".to_owned()),
        }
    }
}

/// Returns whether the host can await futures with a payload of this type.
fn is_future_payload(ty: &WitType) -> bool {
    let is_empty_or_string = |side: &Option<Box<WitType>>| side.as_deref().is_none_or(|ty| *ty == WitType::String);
    match ty {
        WitType::Result { ok, err } => is_empty_or_string(ok) && is_empty_or_string(err),
        ty => ty.is_scalar(),
    }
}

/// Returns the names of the fields or cases of a type.
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
