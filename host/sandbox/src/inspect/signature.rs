//! The signature of a component's function as text, to compare it with the signature that an interface of another host
//! requires.

use wasmparser::component_types::{ComponentDefinedType, ComponentFuncType, ComponentValType};
use wasmparser::types::Types;

/// The maximum length of a signature, in bytes. The required signatures are shorter.
const SIGNATURE_BYTES_MAX: usize = 2 << 10;

/// The maximum nesting depth of the types in a signature.
const DEPTH_MAX: usize = 16;

/// Writes the types of a function without the names of its parameters: `(string,list<u8>)->option<string>`. `None` if the
/// signature is too long, nests too deep, or has a type that no required signature has, such as a resource.
pub(super) fn signature(types: &Types, function: &ComponentFuncType) -> Option<String> {
    let mut writer = SignatureWriter {
        types,
        text: String::from("("),
    };
    writer.write_types(function.params.iter().map(|(_, ty)| ty), 0)?;
    writer.push(")")?;
    if let Some(result) = &function.result {
        writer.push("->")?;
        writer.write_type(result, 0)?;
    }
    Some(writer.text)
}

struct SignatureWriter<'a> {
    types: &'a Types,
    text: String,
}

impl SignatureWriter<'_> {
    fn push(&mut self, text: &str) -> Option<()> {
        self.text.push_str(text);
        (self.text.len() <= SIGNATURE_BYTES_MAX).then_some(())
    }

    fn write_type(&mut self, ty: &ComponentValType, depth: usize) -> Option<()> {
        match ty {
            ComponentValType::Primitive(primitive) => self.push(&primitive.to_string()),
            ComponentValType::Type(id) if depth < DEPTH_MAX => self.write_defined(&self.types[*id], depth + 1),
            ComponentValType::Type(_) => None,
        }
    }

    fn write_types<'b>(&mut self, types: impl Iterator<Item = &'b ComponentValType>, depth: usize) -> Option<()> {
        for (index, ty) in types.enumerate() {
            if index > 0 {
                self.push(",")?;
            }
            self.write_type(ty, depth)?;
        }
        Some(())
    }

    fn write_generic(&mut self, name: &str, ty: &ComponentValType, depth: usize) -> Option<()> {
        self.push(name)?;
        self.push("<")?;
        self.write_type(ty, depth)?;
        self.push(">")
    }

    /// Writes fields or cases: `record{name:string}`.
    fn write_members<'b>(
        &mut self,
        keyword: &str,
        members: impl Iterator<Item = (&'b str, Option<&'b ComponentValType>)>,
        depth: usize,
    ) -> Option<()> {
        self.push(keyword)?;
        self.push("{")?;
        for (index, (name, ty)) in members.enumerate() {
            if index > 0 {
                self.push(",")?;
            }
            self.push(name)?;
            if let Some(ty) = ty {
                self.push(":")?;
                self.write_type(ty, depth)?;
            }
        }
        self.push("}")
    }

    fn write_defined(&mut self, ty: &ComponentDefinedType, depth: usize) -> Option<()> {
        match ty {
            ComponentDefinedType::Primitive(primitive) => self.push(&primitive.to_string()),
            ComponentDefinedType::List { element, .. } => self.write_generic("list", element, depth),
            ComponentDefinedType::Option { ty, .. } => self.write_generic("option", ty, depth),
            ComponentDefinedType::Stream { ty: Some(ty), .. } => self.write_generic("stream", ty, depth),
            ComponentDefinedType::Tuple(tuple) => {
                self.push("tuple<")?;
                self.write_types(tuple.types.iter(), depth)?;
                self.push(">")
            }
            ComponentDefinedType::Record(record) => {
                let fields = record.fields.iter().map(|(name, ty)| (name.as_str(), Some(ty)));
                self.write_members("record", fields, depth)
            }
            ComponentDefinedType::Variant(variant) => {
                let cases = variant
                    .cases
                    .iter()
                    .map(|(name, case)| (name.as_str(), case.ty.as_ref()));
                self.write_members("variant", cases, depth)
            }
            ComponentDefinedType::Enum(names) => {
                self.write_members("enum", names.iter().map(|name| (name.as_str(), None)), depth)
            }
            ComponentDefinedType::Result {
                ok: Some(ok),
                err: Some(err),
                ..
            } => {
                self.push("result<")?;
                self.write_types([ok, err].into_iter(), depth)?;
                self.push(">")
            }
            // No required signature has a type of another form.
            _ => None,
        }
    }
}
