//! What is known of a component, as text to keep: reading it back takes microseconds, inspecting again milliseconds.

use serde::{Deserialize, Serialize};

use super::inspection::{Facts, Inspection};
use crate::values::types::Shape;

/// Changes whenever the text does, or what is read from a component. Text of another version is not read.
pub const INSPECTION_CACHE_VERSION: u32 = 4;

#[derive(Serialize)]
struct Writing<'a> {
    version: u32,
    facts: &'a Facts,
    shape: &'a Shape,
}

#[derive(Deserialize)]
struct Reading {
    version: u32,
    facts: Facts,
    shape: Shape,
}

impl Inspection {
    /// Writes it as text for [`Inspection::from_cache_text`]. Schemas are left out: they follow from the types.
    #[must_use]
    pub fn to_cache_text(&self) -> String {
        let writing = Writing {
            version: INSPECTION_CACHE_VERSION,
            facts: &self.facts(),
            shape: &self.shape,
        };
        serde_json::to_string(&writing).unwrap_or_default()
    }

    /// Reads what [`Inspection::to_cache_text`] wrote, for a plugin of this name. `None` for anything else.
    ///
    /// The text is trusted as far as its owner is: keep it where only the host writes.
    #[must_use]
    pub fn from_cache_text(kept: &str, plugin: &str) -> Option<Self> {
        let reading: Reading = serde_json::from_str(kept).ok()?;
        (reading.version == INSPECTION_CACHE_VERSION && reading.shape.is_sound())
            .then(|| Self::assemble(reading.facts, reading.shape, plugin))
    }
}

/// Tells whether what [`Inspection::to_cache_text`] wrote is of a component that tells tools when it runs, without reading all of it.
/// Within a text of the author's, there is a backslash before each quotation mark.
pub(crate) fn tells_tools(kept: &str) -> bool {
    kept.contains("\"dynamic\":{\"tools\":")
}

impl Shape {
    /// Whether every index in it leads somewhere, so that damaged text is no panic later.
    fn is_sound(&self) -> bool {
        use crate::values::types::FunctionKind;
        let resources = self.resources.len();
        let mut sound = true;
        for function in &self.functions {
            if let FunctionKind::Constructor(at) | FunctionKind::Static(at) | FunctionKind::Method(at) = function.kind {
                sound &= at.0 < resources;
            }
            let types = function.params.iter().map(|param| &param.ty).chain(&function.result);
            types.for_each(|ty| ty.visit_resources(&mut |at| sound &= at.0 < resources));
        }
        let is_function = |at: &usize| *at < self.functions.len();
        sound
            && self
                .dynamic
                .iter()
                .flat_map(|dynamic| [&dynamic.tools, &dynamic.call])
                .all(is_function)
            && self.resources.iter().all(|resource| {
                resource
                    .methods
                    .iter()
                    .chain(&resource.id)
                    .chain(&resource.describe)
                    .all(is_function)
            })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::Origin;

    #[test]
    fn what_is_kept_comes_back_whole_and_damage_is_noticed() {
        let component = wat::parse_str(
            r#"(component
                (core module $m (func (export "add") (param i32 i32) (result i32) local.get 0))
                (core instance $i (instantiate $m))
                (func (export "add") (param "a" s32) (param "b" s32) (result s32) (canon lift (core func $i "add"))))"#,
        )
        .unwrap();
        let inspection = Inspection::from_bytes(
            &component,
            Origin {
                name: "sum",
                adjacent_wit: None,
            },
        )
        .unwrap();
        let kept = inspection.to_cache_text();
        let restored = Inspection::from_cache_text(&kept, "sum").unwrap();
        assert_eq!(
            serde_json::to_value(&restored.tools).unwrap(),
            serde_json::to_value(&inspection.tools).unwrap()
        );
        assert_eq!(restored.digest, inspection.digest);
        assert!(!tells_tools(&kept));
        let mut shape = Shape::clone(&inspection.shape);
        shape.functions[0].docs = Some(r#""dynamic":{"tools":0,"call":0}"#.to_owned());
        assert!(!tells_tools(
            &Inspection::assemble(inspection.facts(), shape.clone(), "sum").to_cache_text()
        ));
        shape.dynamic = Some(crate::values::dynamic_export::DynamicExport::undiscovered(0, 0));
        assert!(tells_tools(
            &Inspection::assemble(inspection.facts(), shape, "sum").to_cache_text()
        ));
        assert!(Inspection::from_cache_text(&kept.replacen("\"version\":4", "\"version\":0", 1), "sum").is_none());
        for length in (0..kept.len()).filter(|at| kept.is_char_boundary(*at)) {
            assert!(Inspection::from_cache_text(&kept[..length], "sum").is_none());
        }
    }
}
