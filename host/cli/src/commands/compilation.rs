//! Compiles components ahead of their first call, for `add`, `build`, `dev` and `test`.

use std::path::Path;

use tokio_util::sync::CancellationToken;

use crate::input::limits::LimitFlags;
use crate::input::plugins::PluginFlags;
use crate::input::wasi::WasiFlags;
use crate::output::printer::Printer;
use crate::output::progress::with_spinner;
use toolwit::{Error, ErrorKind, Phase};

/// The option that leaves compilation to the first call of a component.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct CompileFlags {
    /// Leave the compilation for this machine to the first call
    #[arg(long)]
    no_compile: bool,
}

/// The outcome of compiling a component into the code cache.
#[derive(Debug)]
pub(crate) enum Compilation {
    /// The compiled code is in the code cache.
    Compiled,
    /// The command had the option `--no-compile`.
    Skipped,
    /// The component file is complete, but it could not be compiled. The first call of the component tries again.
    Failed(Error),
}

impl Compilation {
    pub(crate) fn is_compiled(&self) -> bool {
        matches!(self, Self::Compiled)
    }

    /// Checks that the compilation did not fail with an error that every call of the component would repeat.
    ///
    /// # Errors
    /// The reason why the host cannot load the component.
    pub(crate) fn require_loadable(self) -> Result<(), Error> {
        use ErrorKind::{MalformedComponent, UnknownImport, Unsupported};
        match self {
            Self::Failed(error) if matches!(error.kind, MalformedComponent | UnknownImport | Unsupported) => Err(error),
            Self::Compiled | Self::Skipped | Self::Failed(_) => Ok(()),
        }
    }

    /// Returns a warning if the compilation failed. `name` is the name of the plugin.
    pub(crate) fn warning(&self, name: &str) -> Option<String> {
        match self {
            Self::Failed(error) => Some(format!("{name} cannot be compiled for this machine: {}", error.message)),
            Self::Compiled | Self::Skipped => None,
        }
    }
}

impl CompileFlags {
    /// Compiles a component into the code cache, unless the command has the option `--no-compile`. The compilation runs
    /// in a separate process with limits on time and memory. Guest code does not run.
    ///
    /// # Errors
    /// Only if the compilation is interrupted. A compilation that fails is returned as [`Compilation::Failed`].
    pub(crate) async fn compile(
        self,
        component: &Path,
        wasi: WasiFlags,
        printer: Printer,
        cancel: &CancellationToken,
    ) -> Result<Compilation, Error> {
        if self.no_compile {
            return Ok(Compilation::Skipped);
        }
        let name = component.file_stem().unwrap_or_default().to_string_lossy();
        let plugins = PluginFlags::of_component(component).with_wasi(wasi);
        compile_ahead(&plugins, &name, printer, cancel).await
    }
}

/// Compiles the components that `plugins` selects into the code cache, so that later calls do not wait. `name` is the
/// plugin's name for messages. Commands that offer `--no-compile` use [`CompileFlags::compile`] instead.
///
/// # Errors
/// Only if the compilation is interrupted. A compilation that fails is returned as [`Compilation::Failed`].
pub(crate) async fn compile_ahead(
    plugins: &PluginFlags,
    name: &str,
    printer: Printer,
    cancel: &CancellationToken,
) -> Result<Compilation, Error> {
    let text = format!("compiling {name} for this machine");
    let compilation = with_spinner(printer, &text, compile_all(plugins));
    tokio::select! {
        biased;
        compiled = compilation => Ok(compiled.map_or_else(Compilation::Failed, |()| Compilation::Compiled)),
        () = cancel.cancelled() => {
            let message = format!("interrupted while compiling {name}; the component is complete");
            Err(Error::new(ErrorKind::Cancelled, Phase::Build, message))
        }
    }
}

/// Loads and compiles the components that `plugins` selects.
async fn compile_all(plugins: &PluginFlags) -> Result<(), Error> {
    let host = plugins.load(&LimitFlags::default()).await?;
    for package in host.registry().packages() {
        if let Some(reason) = package.broken_reason() {
            return Err(reason.clone());
        }
    }
    for plugin in host.registry().plugins() {
        plugin.compile().await?;
    }
    Ok(())
}
