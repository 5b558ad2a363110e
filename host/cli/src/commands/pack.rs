//! `toolwit pack`: embeds a manifest in a component.

use std::path::{Path, PathBuf};

use serde_json::json;

use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::page::{FAINT, Page, size};
use crate::output::printer::{Format, Printer};
use toolwit::build::{ResolvedWit, embed_wit};
use toolwit::limits::EngineLimits;
use toolwit::registry::{MANIFEST_BYTES_MAX, pack, write_atomically};
use toolwit::sandbox::{WIT_BYTES_MAX, read_component};
use toolwit::{Error, ErrorKind, Phase};

const EXAMPLES: &str = "\
Examples:
  toolwit pack weather.wasm                                embed weather.toml and weather.wit in file_name
  toolwit pack weather.wasm --manifest m.toml --out dist/weather.wasm";

/// Embed a manifest in a component, to ship a package as one file
///
/// Checks the manifest against the component. Writes its version and description to the standard custom sections too, for other
/// tools. Embeds the docs of the .wit file next to the component, if it exists. Nothing else in the file changes.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Pack {
    /// Component file
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Path to the manifest [default: FILE with the extension .toml]
    #[arg(long, value_name = "FILE")]
    manifest: Option<PathBuf>,
    /// Path to the WIT directory or file [default: FILE with the extension .wit, if it exists]
    #[arg(long, value_name = "PATH")]
    wit: Option<PathBuf>,
    /// Path to the output file [default: FILE]
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
        write_atomically(&out, &packed).map_err(|error| {
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
                printer.hint("the digest has changed: grants for the previous version no longer apply");
            }
        }
        Ok(Exit::Success)
    }

    fn pack(&self) -> Result<Vec<u8>, Error> {
        let mut component = read_component(&self.file, EngineLimits::default().component_bytes_max)?;
        let sibling_wit = self.file.with_extension("wit");
        if let Some(wit) = self.wit.as_deref().or(sibling_wit.exists().then_some(&*sibling_wit)) {
            component = with_wit(&component, wit)?;
        }
        let manifest = self
            .manifest
            .clone()
            .unwrap_or_else(|| self.file.with_extension("toml"));
        let text = read_text(&manifest, MANIFEST_BYTES_MAX).map_err(|error| {
            let message = format!("the manifest {} cannot be used: {}", manifest.display(), error.message);
            Error::new(ErrorKind::Configuration, Phase::Registry, message)
                .with_suggestion("create it next to the component, or pass `--manifest FILE`")
        })?;
        let name = self.file.file_stem().unwrap_or_default().to_string_lossy();
        let file_name = manifest.file_name().unwrap_or_default().to_string_lossy();
        pack(&component, &name, &text, &file_name).map_err(|error| error.with_plugin(&*name))
    }
}

/// Reads a text file within the size limit. Rejects devices and pipes, which may be endless or block.
fn read_text(path: &Path, bytes_max: u64) -> Result<String, Error> {
    String::from_utf8(read_component(path, bytes_max)?).map_err(|error| {
        let message = format!("{} is not UTF-8 text", path.display());
        Error::new(ErrorKind::Io, Phase::Registry, message).with_source(error)
    })
}

fn with_wit(component: &[u8], path: &Path) -> Result<Vec<u8>, Error> {
    let failed = |message: String| Error::new(ErrorKind::Build, Phase::Build, message);
    if path.is_file() {
        read_text(path, WIT_BYTES_MAX)?;
    } else if !path.is_dir() {
        return Err(failed(format!("{} is not a file or directory", path.display())));
    }
    let wit = ResolvedWit::read(path).map_err(|error| failed(error.to_string()).with_source(error))?;
    embed_wit(component, &wit).map_err(|error| failed(error.to_string()).with_source(error))
}
