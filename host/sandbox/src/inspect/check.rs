//! Are these bytes a component that an engine here can run? Nothing is compiled to find out.

use wasmparser::{
    FuncToValidate, FuncValidatorAllocations, FunctionBody, Parser, Payload, ValidPayload, Validator,
    ValidatorResources, WasmFeatures,
};

use super::footprint::Footprint;
use super::survey::{NESTING_MAX, Survey};
use crate::inspect::profile::Profile;
use toolwit_core::{Error, ErrorKind, Phase};

const MAGIC: &[u8] = b"\0asm";
const CORE_MODULE: &[u8] = &[0x01, 0x00, 0x00, 0x00];
const COMPONENT: &[u8] = &[0x0d, 0x00, 0x01, 0x00];

/// A component that is valid, with the names and types of its imports and exports.
pub(crate) struct Checked<'a> {
    /// The engine that it needs.
    pub(crate) profile: Profile,
    /// What an instance takes before it runs.
    pub(crate) footprint: Footprint,
    /// Types of everything at the top level.
    pub(crate) types: wasmparser::types::Types,
    /// Names of the imports, in order.
    pub(crate) imports: Vec<&'a str>,
    /// Names of the exports, in order.
    pub(crate) exports: Vec<&'a str>,
    /// Custom sections at the top level.
    pub(crate) custom_sections: Vec<(&'a str, &'a [u8])>,
}

/// Validates a component, function bodies included.
///
/// # Errors
/// [`ErrorKind::MalformedComponent`] or [`ErrorKind::Unsupported`], with one line that says why.
pub(crate) fn check(bytes: &[u8]) -> Result<Checked<'_>, Error> {
    check_header(bytes)?;
    match validate(bytes, Profile::Plain) {
        Ok(checked) => Ok(checked),
        // Most components fail for a reason of their own; those that only need async concurrency pass the second time.
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

/// Tells apart what people put beside components, so that they learn what to do.
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
            malformed("it is no WebAssembly: the magic number `\\0asm` is missing")
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

/// Why bytes are not valid, and where.
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
        message: format!("its components nest deeper than {NESTING_MAX}"),
        offset,
    }
}

fn validate(bytes: &[u8], profile: Profile) -> Result<Checked<'_>, Invalid> {
    let features = features(profile);
    let mut validator = Validator::new_with_features(features);
    let mut parser = Parser::new(0);
    parser.set_features(features);
    let (mut imports, mut exports, mut custom_sections) = (Vec::new(), Vec::new(), Vec::new());
    let mut bodies = Vec::new();
    let mut types = None;
    let mut survey = Survey::new();
    for payload in parser.parse_all(bytes) {
        let payload = payload?;
        let depth = survey.depth();
        if depth > NESTING_MAX {
            return Err(too_deep(&payload));
        }
        survey.read(&payload)?;
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
    let cut = || Invalid {
        message: "it ends too early".to_owned(),
        offset: bytes.len(),
    };
    Ok(Checked {
        profile,
        footprint: survey.count(),
        types: types.ok_or_else(cut)?,
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

/// The proposals that the engine of a profile has, as it is configured and compiled into this crate.
fn features(profile: Profile) -> WasmFeatures {
    let absent = WasmFeatures::THREADS | WasmFeatures::GC | WasmFeatures::GC_TYPES | WasmFeatures::EXCEPTIONS;
    let mut features = (WasmFeatures::WASM3 | WasmFeatures::COMPONENT_MODEL) - absent;
    features.set(WasmFeatures::CM_ASYNC, matches!(profile, Profile::Concurrent));
    features
}

/// Keeps a message of a parser on one line and of a bearable length.
fn one_line(message: &str) -> String {
    const CHARS_MAX: usize = 300;
    message
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .take(CHARS_MAX)
        .collect()
}
