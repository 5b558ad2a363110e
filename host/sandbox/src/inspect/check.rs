//! Validates that bytes are a component that one of the engines can run. Nothing is compiled.

use wasmparser::{
    FuncToValidate, FuncValidatorAllocations, FunctionBody, Parser, Payload, ValidPayload, Validator,
    ValidatorResources, WasmFeatures,
};

use super::footprint::Footprint;
use super::instantiation_recorder::InstantiationRecorder;
use crate::inspect::profile::Profile;
use toolwit_core::limits::COMPONENT_DEPTH_MAX;
use toolwit_core::{Error, ErrorKind, Phase};

const MAGIC: &[u8] = b"\0asm";
const CORE_MODULE: &[u8] = &[0x01, 0x00, 0x00, 0x00];
const COMPONENT: &[u8] = &[0x0d, 0x00, 0x01, 0x00];

/// A valid component, with the names and types of its imports and exports.
pub(crate) struct CheckedComponent<'a> {
    /// The engine configuration that it requires.
    pub(crate) profile: Profile,
    /// The resources that one instance allocates before it runs.
    pub(crate) footprint: Footprint,
    /// The types of all items at the top level.
    pub(crate) types: wasmparser::types::Types,
    /// The names of the imports, in order.
    pub(crate) imports: Vec<&'a str>,
    /// The names of the exports, in order.
    pub(crate) exports: Vec<&'a str>,
    /// The custom sections at the top level.
    pub(crate) custom_sections: Vec<(&'a str, &'a [u8])>,
}

/// Validates a component, function bodies included.
///
/// # Errors
/// [`ErrorKind::MalformedComponent`] or [`ErrorKind::Unsupported`], with the reason in one line.
pub(crate) fn check(bytes: &[u8]) -> Result<CheckedComponent<'_>, Error> {
    check_header(bytes)?;
    match validate(bytes, Profile::Plain) {
        Ok(checked) => Ok(checked),
        // A component that fails only because it uses async functions passes the second validation. Otherwise, the error at
        // the later position in the bytes is the more precise one.
        Err(plain) => validate(bytes, Profile::Concurrent).map_err(|concurrent| {
            let error = if concurrent.offset > plain.offset {
                concurrent
            } else {
                plain
            };
            malformed(format!(
                "it is not a valid component: {} at byte {}",
                one_line(&error.message),
                error.offset
            ))
        }),
    }
}

fn malformed(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::MalformedComponent, Phase::Load, message)
}

/// Checks the header. Files that are often mistaken for components have specific errors.
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
            malformed("it is WebAssembly text, not a binary component").with_suggestion("build it with `toolwit build`")
        } else {
            malformed("it is not WebAssembly: the magic number `\\0asm` is missing")
        });
    }
    match &bytes[4..8] {
        COMPONENT => Ok(()),
        CORE_MODULE => Err(malformed("it is a core module, not a component")
            .with_suggestion("build it with `toolwit build`, or wrap it with `wasm-tools component new`")),
        other => Err(malformed(format!(
            "it has the unknown WebAssembly version {:02x?}",
            other
        ))),
    }
}

/// A validation error and its position in the bytes.
struct Invalid {
    message: String,
    offset: usize,
}

impl From<wasmparser::Error> for Invalid {
    fn from(error: wasmparser::Error) -> Self {
        Self {
            message: error.message().to_owned(),
            offset: error.offset(),
        }
    }
}

fn too_deep(payload: &Payload<'_>) -> Invalid {
    let offset = match payload {
        Payload::Version { range, .. } => range.start,
        _ => 0,
    };
    Invalid {
        message: format!("its components nest deeper than {COMPONENT_DEPTH_MAX}"),
        offset,
    }
}

fn validate(bytes: &[u8], profile: Profile) -> Result<CheckedComponent<'_>, Invalid> {
    let features = features(profile);
    let mut validator = Validator::new_with_features(features);
    let mut parser = Parser::new(0);
    parser.set_features(features);
    let (mut imports, mut exports, mut custom_sections) = (Vec::new(), Vec::new(), Vec::new());
    let mut bodies = Vec::new();
    let mut types = None;
    let mut recorder = InstantiationRecorder::new();
    for payload in parser.parse_all(bytes) {
        let payload = payload?;
        let depth = recorder.depth();
        if depth > COMPONENT_DEPTH_MAX {
            return Err(too_deep(&payload));
        }
        recorder.read(&payload)?;
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
            _ => {}
        }
        match validator.payload(&payload)? {
            ValidPayload::Func(function, body) => bodies.push((function, body)),
            ValidPayload::End(end) => types = Some(end),
            _ => {}
        }
    }
    validate_bodies(bodies)?;
    let truncated = || Invalid {
        message: "it ends too early".to_owned(),
        offset: bytes.len(),
    };
    Ok(CheckedComponent {
        profile,
        footprint: recorder.count(),
        types: types.ok_or_else(truncated)?,
        imports,
        exports,
        custom_sections,
    })
}

fn validate_bodies(bodies: Vec<(FuncToValidate<ValidatorResources>, FunctionBody<'_>)>) -> Result<(), Invalid> {
    let mut allocations = FuncValidatorAllocations::default();
    for (function, body) in bodies {
        let mut validator = function.into_validator(allocations);
        validator.validate(&body)?;
        allocations = validator.into_allocations();
    }
    Ok(())
}

/// Returns the WebAssembly proposals that the engine of a profile supports, as configured and compiled into this crate.
fn features(profile: Profile) -> WasmFeatures {
    let absent = WasmFeatures::THREADS | WasmFeatures::GC | WasmFeatures::GC_TYPES | WasmFeatures::EXCEPTIONS;
    let mut features = (WasmFeatures::WASM3 | WasmFeatures::COMPONENT_MODEL) - absent;
    features.set(WasmFeatures::CM_ASYNC, matches!(profile, Profile::Concurrent));
    features
}

/// Formats a parser's message as one line of at most 300 characters.
fn one_line(message: &str) -> String {
    const CHARS_MAX: usize = 300;
    message
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .take(CHARS_MAX)
        .collect()
}
