//! `toolwit inspect`: shows the exports and imports of a component.

use std::path::PathBuf;

use serde::Serialize;

use crate::exit::Exit;
use crate::failure::Failure;
use crate::hint::with_fixing_hint;
use crate::input::wasi::WasiFlags;
use crate::output::definition;
use crate::output::package::{CodeStates, PackageDocument, wit_warning};
use crate::output::page::{BAD, FAINT, GOOD, Page, TITLE, WARN, size};
use crate::output::printer::{Format, Printer};
use crate::shell::shell_word;
use toolwit::limits::EngineLimits;
use toolwit::registry::{EnvironmentNeed, Manifest, TOOLS_NOT_DISCOVERED, inspect_package};
use toolwit::sandbox::{
    CodeCacheLocation, EntityType, Import, ImportSupport, Inspection, Profile, component_wit, read_component,
};
use toolwit::{Error, ErrorKind, Phase};

/// Show the tools, imports and WIT of a component without running it
///
/// Shows tools, entities whose methods become tools, skipped exports with the reason, imports, the values that the
/// manifest requires, and WIT.
#[derive(Debug, clap::Args)]
pub(crate) struct Inspect {
    /// Component file
    #[arg(value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    wasi: WasiFlags,
}

/// The document that `toolwit list --json` prints about a package, with more fields.
#[derive(Serialize)]
struct InspectDocument<'a> {
    #[serde(flatten)]
    package: PackageDocument<'a>,
    size_bytes: u64,
    profile: Profile,
    #[serde(rename = "dynamic")]
    has_dynamic_tools: bool,
    /// The interface through which the component lists and calls its dynamic tools.
    contract: Option<&'a str>,
    entities: &'a [EntityType],
    imports: &'a [Import],
    /// The values that the manifest requires. An import is not such a requirement: a component may import an interface
    /// without using it.
    #[serde(rename = "requests")]
    needs: &'a [EnvironmentNeed],
    wit: Option<&'a str>,
}

/// The metadata of a component file.
struct InspectedFile {
    name: String,
    file: PathBuf,
    inspection: Inspection,
    manifest: Option<Manifest>,
    wit: Option<String>,
}

impl Inspect {
    pub(crate) async fn run(self, printer: Printer) -> Result<Exit, Failure> {
        let inspected = inspect(self.file).await?;
        let refusal = inspected.inspection.require_loadable(self.wasi.versions()?).err();
        match printer.format() {
            Format::Json => printer.document(&inspection_document(&inspected, refusal.as_ref()))?,
            Format::Human => printer.print_page(&inspection_page(&inspected, refusal.as_ref()))?,
        }
        Ok(Exit::Success)
    }
}

/// Inspects a component file.
pub(crate) async fn inspection_of(file: PathBuf) -> Result<Inspection, Error> {
    inspect(file).await.map(|inspected| inspected.inspection)
}

async fn inspect(file: PathBuf) -> Result<InspectedFile, Error> {
    tokio::task::spawn_blocking(move || inspect_blocking(file))
        .await
        .unwrap_or_else(|error| {
            let message = "reading the component failed unexpectedly";
            Err(Error::new(ErrorKind::Internal, Phase::Load, message).with_source(error))
        })
}

fn inspect_blocking(file: PathBuf) -> Result<InspectedFile, Error> {
    let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let with_plugin_name = |error: Error| error.with_plugin(&*name);
    let bytes_max = EngineLimits::default().component_bytes_max;
    let (inspection, manifest) = inspect_package(&name, &file, bytes_max).map_err(with_plugin_name)?;
    let bytes = read_component(&file, bytes_max).map_err(with_plugin_name)?;
    Ok(InspectedFile {
        wit: component_wit(&bytes),
        inspection,
        manifest,
        file,
        name,
    })
}

fn inspection_document<'a>(inspected: &'a InspectedFile, refusal: Option<&'a Error>) -> InspectDocument<'a> {
    let InspectedFile {
        name,
        file,
        inspection,
        manifest,
        wit,
    } = inspected;
    let manifest = manifest.as_ref();
    let cache = CodeCacheLocation::User.open();
    let code = CodeStates::in_cache(cache.as_ref()).of_digest(&inspection.digest);
    InspectDocument {
        package: PackageDocument::new(name, file, Some(inspection), manifest, refusal).with_code(code),
        size_bytes: inspection.size_bytes,
        profile: inspection.profile,
        has_dynamic_tools: !inspection.dynamic_tools_state().is_none(),
        contract: inspection.contract(),
        entities: &inspection.entities,
        imports: &inspection.imports,
        needs: manifest.map_or(&[], |manifest| &manifest.environment),
        wit: wit.as_deref(),
    }
}

fn inspection_page(inspected: &InspectedFile, refusal: Option<&Error>) -> Page {
    let mut page = Page::new();
    write_summary(&mut page, inspected, refusal);
    write_exports(&mut page, &inspected.inspection);
    write_imports(&mut page, &inspected.inspection.imports);
    let needs = inspected.manifest.as_ref().map(|manifest| &*manifest.environment);
    write_needs(&mut page, needs.unwrap_or_default());
    if let Some(wit) = &inspected.wit {
        page.title("WIT").block(2, anstyle::Style::new(), wit);
    }
    page
}

fn write_summary(page: &mut Page, inspected: &InspectedFile, refusal: Option<&Error>) {
    let inspection = &inspected.inspection;
    page.styled(TITLE, shell_word(&inspected.name))
        .text("  ")
        .styled(FAINT, inspected.file.display())
        .end();
    for (label, value) in [
        ("sha256", inspection.digest.to_string()),
        ("size  ", size(inspection.size_bytes)),
        ("engine", inspection.profile.to_string()),
    ] {
        page.spaces(2).text(format_args!("{label}  {value}")).end();
    }
    page.spaces(2).text("status  ");
    match refusal {
        None if inspection.dynamic_tools_state().is_undiscovered() => {
            page.styled(WARN, "undiscovered").text(": ").text(TOOLS_NOT_DISCOVERED)
        }
        None => page.styled(GOOD, "ready"),
        Some(error) => page.styled(BAD, "broken").text(": ").text(&error.message),
    };
    page.end();
    if let Some(problem) = &inspection.wit_problem {
        page.spaces(2).styled(WARN, "warning").text(" ");
        page.text(wit_warning(&inspected.name, problem)).end();
    }
    if let Some(suggestion) = refusal.and_then(|error| with_fixing_hint(error).suggestion.clone()) {
        page.spaces(10).styled(FAINT, format_args!("hint: {suggestion}")).end();
    }
}

fn write_exports(page: &mut Page, inspection: &Inspection) {
    page.title("Tools");
    for tool in &inspection.tools {
        definition::write_summary(page, tool, 2);
    }
    if let Some(contract) = inspection.contract() {
        let note = "listed at run time; discovered by `toolwit add`, `toolwit refresh`, or at the first use";
        page.spaces(2)
            .styled(FAINT, format_args!("dynamic, by `{contract}`: {note}"))
            .end();
    } else if inspection.tools.is_empty() {
        page.spaces(2).styled(FAINT, "none").end();
    }
    if !inspection.entities.is_empty() {
        page.title("Entities");
        for entity_type in &inspection.entities {
            definition::write_entity_type(page, entity_type, 2);
        }
    }
    if !inspection.skipped.is_empty() {
        page.title("Skipped");
        for skipped in &inspection.skipped {
            page.spaces(2)
                .text(&skipped.export)
                .text(": ")
                .styled(FAINT, &skipped.reason)
                .end();
        }
    }
}

fn write_imports(page: &mut Page, imports: &[Import]) {
    if !imports.is_empty() {
        page.title("Imports");
    }
    for import in imports {
        page.spaces(2).text(&import.name).text("  ");
        if !import.functions.is_empty() {
            page.text(import.functions.join(", ")).text("  ");
        }
        match import.support {
            ImportSupport::Linked | ImportSupport::Wasi3 if import.name.starts_with("wasi:sockets/") => {
                page.styled(FAINT, "linked; every use is denied, because no grant allows sockets")
            }
            ImportSupport::Linked => page.styled(FAINT, "linked; a use is denied unless granted"),
            ImportSupport::Wasi3 => page.styled(FAINT, "WASI 0.3; linked with `--wasi-p3`, and denied unless granted"),
            ImportSupport::TypesOnly => page.styled(FAINT, "types only"),
            ImportSupport::Unknown => page.styled(WARN, "unknown to the host"),
        };
        page.end();
    }
}

fn write_needs(page: &mut Page, needs: &[EnvironmentNeed]) {
    if !needs.is_empty() {
        page.title("Needs");
    }
    for need in needs {
        page.spaces(2).text(&need.name).text("  ");
        page.styled(FAINT, if need.required { "required" } else { "optional" });
        if !need.description.is_empty() {
            page.text("  ").styled(FAINT, &need.description);
        }
        page.end();
    }
}
