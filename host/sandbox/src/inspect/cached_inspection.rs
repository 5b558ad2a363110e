//! The cached text of an inspection: parsing it takes microseconds, while inspecting the component takes milliseconds.
//!
//! The text has two lines. The first line is the header, which a host reads for every package at startup. The second line is the
//! body, which contains the other data of the inspection.

use std::borrow::Cow;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::compile_cost::CompileWork;
use super::dynamic_tools_state::DynamicToolsState;
use super::footprint::Footprint;
use super::imports::{Import, WasiVersions, needs_wasi3};
use super::inspection::Inspection;
use super::profile::Profile;
use crate::values::types::{FunctionKind, Shape};

/// The version of the cached text. The version changes with the format of the text, and with the data that an inspection reads from
/// a component. The host ignores text of another version.
pub const INSPECTION_CACHE_VERSION: u32 = 10;

/// The text of an inspection from [`Inspection::to_cache_text`], with the metadata that the host uses before it parses the text.
#[derive(Clone, Debug)]
pub struct CachedInspection {
    /// SHA-256 of the component, in hex.
    pub digest: String,
    /// The number of tools, including the discovered tools.
    pub tool_count: usize,
    /// The cached text.
    pub text: String,
}

impl CachedInspection {
    /// Creates a cached inspection from its parts.
    #[must_use]
    pub fn new(digest: impl Into<String>, tool_count: usize, text: impl Into<String>) -> Self {
        Self {
            digest: digest.into(),
            tool_count,
            text: text.into(),
        }
    }

    /// Returns whether a host with these versions of WASI can load the component. Checks only the WASI versions, and not the other
    /// reasons for which a component cannot be loaded. If the text is damaged or has another [`INSPECTION_CACHE_VERSION`], returns
    /// `true` only for [`WasiVersions::Wasi2And3`].
    #[must_use]
    pub fn is_loadable(&self, wasi: WasiVersions) -> bool {
        wasi == WasiVersions::Wasi2And3 || parse_header(&self.text).is_some_and(|(header, _)| !header.needs_wasi3)
    }
}

/// The header of the cached text.
#[derive(Serialize, Deserialize)]
struct Header {
    version: u32,
    dynamic_tools: DynamicToolsState,
    /// Whether the component imports interfaces of WASI 0.3.
    needs_wasi3: bool,
}

/// The body of the cached text. Schemas and definitions are not cached, because the host derives them from the shape.
#[derive(Serialize, Deserialize)]
struct Body<'a> {
    digest: Cow<'a, str>,
    size_bytes: u64,
    profile: Profile,
    imports: Cow<'a, [Import]>,
    wit_problem: Cow<'a, Option<String>>,
    footprint: Footprint,
    compile_work: CompileWork,
    shape: Cow<'a, Shape>,
}

impl Inspection {
    /// Returns the inspection as text for [`Inspection::from_cache_text`]. Returns an empty text if serialization fails.
    #[must_use]
    pub fn to_cache_text(&self) -> String {
        let header = Header {
            version: INSPECTION_CACHE_VERSION,
            dynamic_tools: self.dynamic_tools_state(),
            needs_wasi3: needs_wasi3(&self.imports),
        };
        let body = Body {
            digest: Cow::Borrowed(&self.digest),
            size_bytes: self.size_bytes,
            profile: self.profile,
            imports: Cow::Borrowed(&self.imports),
            wit_problem: Cow::Borrowed(&self.wit_problem),
            footprint: self.footprint,
            compile_work: self.compile_work,
            shape: Cow::Borrowed(&self.shape),
        };
        match (serde_json::to_string(&header), serde_json::to_string(&body)) {
            (Ok(header), Ok(body)) => format!("{header}\n{body}"),
            _ => String::new(),
        }
    }

    /// Parses the text that [`Inspection::to_cache_text`] returned, for a plugin of this name. Returns `None` if the text is damaged
    /// or has another [`INSPECTION_CACHE_VERSION`].
    ///
    /// The host trusts the text, so store the text where only the host can write.
    #[must_use]
    pub fn from_cache_text(text: &str, plugin: &str) -> Option<Self> {
        let (_, body) = parse_header(text)?;
        let body: Body<'_> = serde_json::from_str(body).ok()?;
        if !body.shape.has_valid_indexes() {
            return None;
        }
        let inspection = Self {
            size_bytes: body.size_bytes,
            profile: body.profile,
            imports: body.imports.into_owned(),
            wit_problem: body.wit_problem.into_owned(),
            footprint: body.footprint,
            compile_work: body.compile_work,
            shape: Arc::new(body.shape.into_owned()),
            ..Self::empty(body.digest.into_owned())
        };
        Some(inspection.with_definitions(plugin))
    }
}

/// Reads the state of the dynamic tools from the header of a cached text, without parsing the body. Returns
/// [`DynamicToolsState::None`] for text that is damaged or has another version.
pub(super) fn cached_dynamic_tools(text: &str) -> DynamicToolsState {
    parse_header(text).map_or(DynamicToolsState::None, |(header, _)| header.dynamic_tools)
}

/// Parses the header of a cached text. Returns it with the text of the body. Returns `None` if the header is damaged or has another
/// version.
fn parse_header(text: &str) -> Option<(Header, &str)> {
    let (header, body) = text.split_once('\n')?;
    let header: Header = serde_json::from_str(header).ok()?;
    (header.version == INSPECTION_CACHE_VERSION).then_some((header, body))
}

impl Shape {
    /// Returns whether every index refers to an existing resource or function, so that damaged text cannot cause a panic later.
    fn has_valid_indexes(&self) -> bool {
        let resource_count = self.resources.len();
        let mut is_valid = true;
        for function in &self.functions {
            if let FunctionKind::Constructor(index) | FunctionKind::Static(index) | FunctionKind::Method(index) =
                function.kind
            {
                is_valid &= index.0 < resource_count;
            }
            let types = function.params.iter().map(|param| &param.ty).chain(&function.result);
            types.for_each(|ty| ty.visit_resources(&mut |index| is_valid &= index.0 < resource_count));
        }
        let is_function_index = |index: &usize| *index < self.functions.len();
        let dynamic_indexes = self
            .dynamic
            .iter()
            .flat_map(|dynamic| dynamic.contract.function_indexes());
        let interceptor_indexes = self
            .interceptor
            .iter()
            .flat_map(|interceptor| [interceptor.before, interceptor.after]);
        let mut host_function_indexes = dynamic_indexes.chain(interceptor_indexes);
        is_valid
            && host_function_indexes.all(|index| is_function_index(&index))
            && self.resources.iter().all(|resource| {
                let method_indexes = resource.methods.iter();
                method_indexes
                    .chain(&resource.id_method)
                    .chain(&resource.describe_method)
                    .all(is_function_index)
            })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::PackageContext;
    use crate::values::dynamic_export::{DynamicExport, ToolContract};

    fn inspection() -> Inspection {
        let component = wat::parse_str(
            r#"(component
                (core module $m (func (export "add") (param i32 i32) (result i32) local.get 0))
                (core instance $i (instantiate $m))
                (func (export "add") (param "a" s32) (param "b" s32) (result s32) (canon lift (core func $i "add"))))"#,
        )
        .unwrap();
        Inspection::from_bytes(
            &component,
            PackageContext {
                name: "sum",
                adjacent_wit: None,
            },
        )
        .unwrap()
    }

    #[test]
    fn cached_inspection_restores_digest_and_definitions() {
        let inspection = inspection();
        let restored = Inspection::from_cache_text(&inspection.to_cache_text(), "sum").unwrap();
        assert_eq!(
            serde_json::to_value(&restored.tools).unwrap(),
            serde_json::to_value(&inspection.tools).unwrap()
        );
        assert_eq!(restored.digest, inspection.digest);
    }

    #[test]
    fn truncated_text_and_other_versions_are_refused() {
        let text = inspection().to_cache_text();
        let current_version = format!("\"version\":{INSPECTION_CACHE_VERSION}");
        assert!(Inspection::from_cache_text(&text.replacen(&current_version, "\"version\":0", 1), "sum").is_none());
        for length in (0..text.len()).filter(|length| text.is_char_boundary(*length)) {
            assert!(Inspection::from_cache_text(&text[..length], "sum").is_none());
        }
    }

    #[test]
    fn the_state_of_the_dynamic_tools_is_read_from_the_header_only() {
        let mut inspection = inspection();
        assert_eq!(
            cached_dynamic_tools(&inspection.to_cache_text()),
            DynamicToolsState::None
        );
        let shape = Arc::make_mut(&mut inspection.shape);
        shape.functions[0].docs = Some("{\"dynamic_tools\":\"discovered\"}\n".to_owned());
        assert_eq!(
            cached_dynamic_tools(&inspection.to_cache_text()),
            DynamicToolsState::None
        );
        Arc::make_mut(&mut inspection.shape).dynamic =
            Some(DynamicExport::undiscovered(ToolContract::Toolwit { tools: 0, call: 0 }));
        assert_eq!(
            cached_dynamic_tools(&inspection.to_cache_text()),
            DynamicToolsState::Undiscovered
        );
    }
}
