//! Progress events of a build.

use std::fmt;

/// A progress event of a build.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BuildEvent<'a> {
    /// A step started, and the previous one ended.
    Step(&'a Step),
    /// A program wrote this line, for example a compiler's diagnostic. A long line arrives in parts.
    Output(&'a str),
}

/// A step of a build that may take long enough to be displayed.
///
/// Its `Display` is a phrase such as `compiling customers`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Step {
    /// `rustup` downloads the WebAssembly target.
    AddTarget,
    /// This build waits for another build, which sets up the compiler or builds a package of the same name.
    WaitForBuild,
    /// The system's package manager installs these packages.
    InstallPackages(Vec<String>),
    /// Rust's standard library is compiled for WebAssembly, once per compiler version.
    BuildStd,
    /// The named package is compiled.
    Compile(String),
    /// The named program of a language's toolchain runs.
    RunTool(String),
    /// The project's own build command runs.
    RunCommand(String),
    /// A core module is converted to a component.
    Componentize,
    /// The WIT is embedded in the component, doc comments included.
    EmbedWit,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AddTarget => f.write_str("adding the wasm32-wasip2 target with rustup"),
            Self::WaitForBuild => f.write_str("waiting for another build"),
            Self::InstallPackages(packages) => write!(f, "installing {}", packages.join(", ")),
            Self::BuildStd => {
                f.write_str("compiling Rust's standard library for WebAssembly (once, about two minutes)")
            }
            Self::Compile(package) => write!(f, "compiling {package}"),
            Self::RunTool(program) => write!(f, "running {program}"),
            Self::RunCommand(command) => write!(f, "running `{command}`"),
            Self::Componentize => f.write_str("converting the core module to a component"),
            Self::EmbedWit => f.write_str("embedding the WIT"),
        }
    }
}

/// A receiver of the progress events of a build. Every `Fn(BuildEvent)` that is `Send` and `Sync` implements it.
///
/// A receiver is called from the task that runs the build, and must not block.
pub trait Progress: Send + Sync {
    /// Handles one event.
    fn event(&self, event: BuildEvent<'_>);
}

impl<F> Progress for F
where
    F: Fn(BuildEvent<'_>) + Send + Sync,
{
    fn event(&self, event: BuildEvent<'_>) {
        self(event);
    }
}

/// A [`Progress`] that ignores all events.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Progress for Silent {
    fn event(&self, _event: BuildEvent<'_>) {}
}

impl dyn Progress + '_ {
    /// Reports the start of a step.
    pub(super) fn step(&self, step: Step) {
        tracing::debug!(%step, "build step");
        self.event(BuildEvent::Step(&step));
    }
}
