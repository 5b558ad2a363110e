//! Validates that bytes are a component that one of the engines can run. Nothing is compiled.

use wasmparser::{
    FuncToValidate, FuncValidatorAllocations, FunctionBody, Parser, Payload, ValidPayload, Validator,
    ValidatorResources, WasmFeatures,
};

use super::compile_cost::{CompileCost, CompileWork};
use super::footprint::Footprint;
use super::instantiation_recorder::InstantiationRecorder;
use super::refusal::Refusal;
use crate::inspect::profile::Profile;
use toolwit_core::limits::COMPONENT_DEPTH_MAX;
use toolwit_core::{Error, ErrorKind, Phase};
use toolwit_sections::WIT_SOURCE_SECTION;

/// The first four bytes of every WebAssembly file.
const MAGIC: &[u8] = b"\0asm";

/// The bytes after [`MAGIC`] in a core module: the version 1 and the layer 0, each in two bytes.
const CORE_MODULE_VERSION: &[u8] = &[0x01, 0x00, 0x00, 0x00];

/// The bytes after [`MAGIC`] in a component: the version 13 and the layer 1, each in two bytes.
const COMPONENT_VERSION: &[u8] = &[0x0d, 0x00, 0x01, 0x00];

/// A valid component, with the names and types of its imports and exports.
pub(crate) struct CheckedComponent<'a> {
    /// The engine configuration that the component requires.
    pub(crate) profile: Profile,
    /// The core instances, memories and tables that one instance allocates before it runs.
    pub(crate) footprint: Footprint,
    /// The estimated work to compile the component.
    pub(crate) compile_work: CompileWork,
    /// The types of all items at the top level.
    pub(crate) types: wasmparser::types::Types,
    /// The names of the imports, in order.
    pub(crate) imports: Vec<&'a str>,
    /// The names of the exports, in order.
    pub(crate) exports: Vec<&'a str>,
    /// The custom sections at the top level.
    pub(crate) custom_sections: Vec<(&'a str, &'a [u8])>,
    /// The WIT text that the macros of the Rust SDK generated, from custom sections below the top level.
    pub(crate) wit_sources: Vec<&'a [u8]>,
}

/// Validates a component, function bodies included.
///
/// # Errors
/// [`ErrorKind::MalformedComponent`] or [`ErrorKind::Unsupported`], with the reason in one line.
pub(crate) fn check(bytes: &[u8]) -> Result<CheckedComponent<'_>, Error> {
    check_header(bytes)?;
    let plain_refusal = match validate(bytes, Profile::Plain, features(Profile::Plain)) {
        Ok(checked) => return Ok(checked),
        Err(refusal) => refusal,
    };
    let Refusal::Invalid {
        offset: plain_offset, ..
    } = plain_refusal
    else {
        return Err(plain_refusal.into());
    };
    // A component that is invalid only because it uses async functions passes the second validation. If both validations fail, the
    // error at the later position in the bytes is the more precise one.
    let concurrent_features = features(Profile::Concurrent);
    let refusal = match validate(bytes, Profile::Concurrent, concurrent_features) {
        Ok(checked) => return Ok(checked),
        Err(Refusal::Invalid { offset, .. }) if offset <= plain_offset => plain_refusal,
        Err(refusal) => refusal,
    };
    Err(match refusal {
        // The component is valid for a host that supports more proposals, so the file is not damaged.
        Refusal::Invalid { message, .. } if is_valid_with(bytes, concurrent_features | UNSUPPORTED_FEATURES) => {
            Refusal::UnsupportedFeature(message).into()
        }
        Refusal::Invalid { message, .. } if has_async_names(bytes) => Refusal::Draft { message }.into(),
        refusal => refusal.into(),
    })
}

/// Returns whether bytes are a valid component of a host that supports these proposals, even if this host would refuse the component
/// for another reason, such as the work to compile it.
fn is_valid_with(bytes: &[u8], features: WasmFeatures) -> bool {
    !matches!(
        validate(bytes, Profile::Concurrent, features),
        Err(Refusal::Invalid { .. } | Refusal::Draft { .. })
    )
}

/// Returns whether bytes contain a name like `[async]f` or `[async-lift]f`, which toolchains give to async functions.
fn has_async_names(bytes: &[u8]) -> bool {
    const PREFIX: &[u8] = b"[async";
    bytes.windows(PREFIX.len()).any(|window| window == PREFIX)
}

/// A file that must be converted to a component first. The error for such a file has this type as its source, so that a program can
/// show its own hint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UnbuiltComponent {
    /// WebAssembly in the text format.
    #[error("it is WebAssembly text, not a binary component")]
    Text,
    /// A core module.
    #[error("it is a core module, not a component")]
    CoreModule,
}

fn malformed(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::MalformedComponent, Phase::Load, message)
}

/// Checks that bytes begin like a component. Has specific errors for files that are often mistaken for components.
fn check_header(bytes: &[u8]) -> Result<(), Error> {
    if bytes.starts_with(b"\x7fELF") {
        return Err(
            malformed("it is precompiled machine code, which is never loaded from a plugin directory")
                .with_suggestion("put the WebAssembly component itself there"),
        );
    }
    if bytes.len() < 8 && MAGIC.starts_with(&bytes[..bytes.len().min(4)]) {
        return Err(malformed(format!(
            "it is too short to be a component: {} bytes",
            bytes.len()
        )));
    }
    if !bytes.starts_with(MAGIC) {
        let is_text = bytes.trim_ascii_start().starts_with(b"(");
        return Err(if is_text {
            let unbuilt = UnbuiltComponent::Text;
            malformed(unbuilt.to_string())
                .with_suggestion("assemble the text, and encode it as a component")
                .with_source(unbuilt)
        } else {
            malformed("it is not WebAssembly: the magic number `\\0asm` is missing")
        });
    }
    match &bytes[4..8] {
        COMPONENT_VERSION => Ok(()),
        CORE_MODULE_VERSION => {
            let unbuilt = UnbuiltComponent::CoreModule;
            Err(malformed(unbuilt.to_string())
                .with_suggestion("encode it as a component, for example with `wasm-tools component new`")
                .with_source(unbuilt))
        }
        // A component in an earlier draft of the format has the layer 1 and a lower version.
        [draft, 0x00, 0x01, 0x00] if *draft < COMPONENT_VERSION[0] => Err(malformed(format!(
            "it is encoded for the draft {draft} of the component model, and the host reads version {}",
            COMPONENT_VERSION[0]
        ))
        .with_suggestion("build it again with current tools")),
        version => Err(malformed(format!(
            "it has the unknown WebAssembly version {:02x?}",
            version
        ))),
    }
}

/// Returns the refusal of a component that nests components too deeply. `payload` is the first payload below the depth limit.
fn too_deep(payload: &Payload<'_>) -> Refusal {
    let offset = match payload {
        Payload::Version { range, .. } => range.start,
        _ => 0,
    };
    Refusal::Invalid {
        message: format!("its components nest deeper than {COMPONENT_DEPTH_MAX}"),
        offset,
    }
}

/// Validates bytes as a component that may use the WebAssembly proposals in `features`. Reads the names, types and custom sections of
/// the component.
fn validate(bytes: &[u8], profile: Profile, features: WasmFeatures) -> Result<CheckedComponent<'_>, Refusal> {
    let mut validator = Validator::new_with_features(features);
    let mut parser = Parser::new(0);
    parser.set_features(features);
    let (mut imports, mut exports, mut custom_sections) = (Vec::new(), Vec::new(), Vec::new());
    let (mut bodies, mut wit_sources) = (Vec::new(), Vec::new());
    let mut types = None;
    let mut recorder = InstantiationRecorder::new();
    for payload in parser.parse_all(bytes) {
        let payload = payload?;
        let depth = recorder.depth();
        if depth > COMPONENT_DEPTH_MAX {
            return Err(too_deep(&payload));
        }
        recorder.record(&payload)?;
        match &payload {
            Payload::ComponentImportSection(section) if depth == 1 => {
                for import in section.clone() {
                    imports.push(import?.name.name);
                }
            }
            Payload::ComponentExportSection(section) if depth == 1 => {
                for export in section.clone() {
                    exports.push(export?.name.name);
                }
            }
            Payload::CustomSection(section) if depth == 1 => custom_sections.push((section.name(), section.data())),
            Payload::CustomSection(section) if section.name() == WIT_SOURCE_SECTION => wit_sources.push(section.data()),
            _ => {}
        }
        match validator.payload(&payload)? {
            ValidPayload::Func(function, body) => bodies.push((function, body)),
            ValidPayload::End(end) => types = Some(end),
            _ => {}
        }
    }
    let compile_work = validate_bodies(bodies)?;
    let truncated = || Refusal::Invalid {
        message: "it ends too early".to_owned(),
        offset: bytes.len(),
    };
    Ok(CheckedComponent {
        profile,
        footprint: recorder.footprint(),
        compile_work,
        types: types.ok_or_else(truncated)?,
        imports,
        exports,
        custom_sections,
        wit_sources,
    })
}

/// Validates the bodies of functions. Returns the work to compile them, and refuses a component that takes too much.
fn validate_bodies(
    bodies: Vec<(FuncToValidate<ValidatorResources>, FunctionBody<'_>)>,
) -> Result<CompileWork, Refusal> {
    let mut allocations = FuncValidatorAllocations::default();
    let mut cost = CompileCost::default();
    for (function, body) in bodies {
        let (index, type_index, resources) = (function.index, function.ty, function.resources.clone());
        let mut validator = function.into_validator(allocations);
        validator.validate(&body)?;
        allocations = validator.into_allocations();
        cost.add(index, type_index, &body, &resources)?;
    }
    Ok(cost.work())
}

/// The WebAssembly proposals that no engine of the host supports, but that components of some toolchains use.
const UNSUPPORTED_FEATURES: WasmFeatures = WasmFeatures::THREADS
    .union(WasmFeatures::GC)
    .union(WasmFeatures::LEGACY_EXCEPTIONS)
    .union(WasmFeatures::SHARED_EVERYTHING_THREADS)
    .union(WasmFeatures::STACK_SWITCHING)
    .union(WasmFeatures::CUSTOM_PAGE_SIZES)
    .union(WasmFeatures::WIDE_ARITHMETIC)
    .union(WasmFeatures::COMPACT_IMPORTS)
    .union(WasmFeatures::CM64)
    .union(WasmFeatures::CM_GC)
    .union(WasmFeatures::CM_VALUES)
    .union(WasmFeatures::CM_IMPLEMENTS)
    .union(WasmFeatures::CM_ASYNC_STACKFUL)
    .union(WasmFeatures::CM_MORE_ASYNC_BUILTINS)
    .union(WasmFeatures::CM_THREADING)
    .union(WasmFeatures::CM_ERROR_CONTEXT)
    .union(WasmFeatures::CM_FIXED_LENGTH_LISTS)
    .union(WasmFeatures::CM_MAP);

/// Returns the WebAssembly proposals that the engine of a profile supports, as configured and compiled into this crate.
fn features(profile: Profile) -> WasmFeatures {
    let disabled = WasmFeatures::THREADS | WasmFeatures::GC;
    let mut features = (WasmFeatures::WASM3 | WasmFeatures::COMPONENT_MODEL) - disabled;
    features.set(WasmFeatures::CM_ASYNC, matches!(profile, Profile::Concurrent));
    features
}
