//! `toolwit pack`: a component that carries its manifest.

use std::path::{Path, PathBuf};

use serde_json::json;

use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::atomic_file::write_whole;
use crate::output::page::{FAINT, Page, size};
use crate::output::printer::{Format, Printer};
use toolwit::build::{ResolvedWit, embed_wit};
use toolwit::limits::EngineLimits;
use toolwit::registry::{MANIFEST_BYTES_MAX, pack};
use toolwit::sandbox::{WIT_BYTES_MAX, read_component};
use toolwit::{Error, ErrorKind, Phase};

const EXAMPLES: &str = "\
Examples:
  toolwit pack weather.wasm                                with weather.toml and weather.wit, in place
  toolwit pack weather.wasm --manifest m.toml --out dist/weather.wasm";

/// Put a manifest into a component, so that one file is a package
///
/// The manifest is checked against the component. Its version and description go into the standard sections too, where other
/// tools look; everything else in the file stays as it is. A .wit file beside it goes in with its docs.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Pack {
    /// The component
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The manifest [default: FILE with the extension .toml]
    #[arg(long, value_name = "FILE")]
    manifest: Option<PathBuf>,
    /// The WIT directory or file [default: FILE with the extension .wit, where there is one]
    #[arg(long, value_name = "PATH")]
    wit: Option<PathBuf>,
    /// Where the package goes [default: in the place of FILE]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

impl Pack {
    pub(crate) async fn run(self, printer: Printer) -> Result<Exit, Failure> {
        let out = self.out.clone().unwrap_or_else(|| self.file.clone());
        let packing = tokio::task::spawn_blocking(move || self.pack());
        let packed = packing.await.unwrap_or_else(|error| {
            let message = "packing the component failed unexpectedly";
            Err(Error::new(ErrorKind::Internal, Phase::Build, message).with_source(error))
        })?;
        let bytes = packed.len() as u64;
        write_whole(&out, &packed).map_err(|error| {
            let message = format!("{} could not be written: {error}", out.display());
            Error::new(ErrorKind::Io, Phase::Registry, message)
        })?;
        match printer.format() {
            Format::Json => {
                printer.document(&json!({"ok": true, "component": out.display().to_string(), "size_bytes": bytes}))?;
            }
            Format::Human => {
                let mut page = Page::new();
                page.styled(FAINT, format_args!("packed: {}", size(bytes))).end();
                printer.message(&page);
                printer.data(Page::new().text(out.display()).end())?;
                printer.hint("its digest is another now: what was granted to it is to be granted anew");
            }
        }
        Ok(Exit::Success)
    }

    fn pack(&self) -> Result<Vec<u8>, Error> {
        let mut component = read_component(&self.file, EngineLimits::default().component_bytes_max)?;
        let beside = self.file.with_extension("wit");
        if let Some(wit) = self.wit.as_deref().or(beside.exists().then_some(&*beside)) {
            component = with_wit(&component, wit)?;
        }
        let manifest = self
            .manifest
            .clone()
            .unwrap_or_else(|| self.file.with_extension("toml"));
        let text = read_text(&manifest, MANIFEST_BYTES_MAX).map_err(|error| {
            let message = format!("the manifest {} cannot be used: {}", manifest.display(), error.message);
            Error::new(ErrorKind::Configuration, Phase::Registry, message)
                .with_suggestion("write one beside the component, or name it with `--manifest FILE`")
        })?;
        let name = self.file.file_stem().unwrap_or_default().to_string_lossy();
        let place = manifest.file_name().unwrap_or_default().to_string_lossy();
        pack(&component, &name, &text, &place).map_err(|error| error.with_plugin(&*name))
    }
}

/// Reads a text within its bound, where it is a regular file: a device has no end, and a pipe may never begin.
fn read_text(path: &Path, bytes_max: u64) -> Result<String, Error> {
    String::from_utf8(read_component(path, bytes_max)?).map_err(|error| {
        let message = format!("{} is no UTF-8 text", path.display());
        Error::new(ErrorKind::Io, Phase::Registry, message).with_source(error)
    })
}

fn with_wit(component: &[u8], path: &Path) -> Result<Vec<u8>, Error> {
    let failed = |message: String| Error::new(ErrorKind::Build, Phase::Build, message);
    if path.is_file() {
        read_text(path, WIT_BYTES_MAX)?;
    } else if !path.is_dir() {
        return Err(failed(format!("{} is no file and no directory", path.display())));
    }
    let wit = ResolvedWit::read(path).map_err(|error| failed(error.to_string()).with_source(error))?;
    embed_wit(component, &wit).map_err(|error| failed(error.to_string()).with_source(error))
}
