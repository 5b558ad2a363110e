//! Guests, and the runtime that executes them.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use tokio::sync::Mutex;
use toolwit::Error;
use toolwit::build::{Build, Silent};
use toolwit::sandbox::{CodeCacheLocation, Plugin, Runtime, RuntimeOptions};

/// A runtime with methods that load guests.
pub struct Guests {
    /// Executes the guests.
    pub runtime: Arc<Runtime>,
}

impl Guests {
    /// Creates a runtime with defaults and without a code cache.
    #[must_use]
    pub fn new() -> Self {
        Self::with(|_| {})
    }

    /// Creates a runtime with a code cache, for guests that take long to compile.
    #[must_use]
    pub fn cached() -> Self {
        let executable = std::env::current_exe().expect("a test has an executable");
        let code = executable.with_file_name("toolwit-tests-code");
        Self::with(|options| options.code_cache = CodeCacheLocation::Directory(code))
    }

    /// Creates a runtime with changed options.
    #[must_use]
    pub fn with(change: impl FnOnce(&mut RuntimeOptions)) -> Self {
        let mut options = RuntimeOptions {
            code_cache: CodeCacheLocation::Off,
            ..RuntimeOptions::default()
        };
        change(&mut options);
        Self {
            runtime: Runtime::new(options).expect("the options of a test are valid"),
        }
    }

    /// Loads a guest of `guests/wat` under its own name, ready to be called.
    pub async fn wat(&self, name: &str) -> Arc<Plugin> {
        let path = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("guests/wat")
            .join(name)
            .with_extension("wat");
        let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let plugin = self
            .text(name, &text)
            .await
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        plugin
            .compile()
            .await
            .unwrap_or_else(|error| panic!("{name}: {error}: {:?}", std::error::Error::source(&error)));
        plugin
    }

    /// Loads a guest of `guests/rust`, ready to be called.
    pub async fn rust(&self, name: &str) -> Arc<Plugin> {
        self.bytes(name, Self::rust_bytes(name).await)
            .await
            .unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// Builds a guest of `guests/rust`, once for all tests of the process.
    pub async fn rust_bytes(name: &str) -> Vec<u8> {
        static BUILT: Mutex<BTreeMap<String, Vec<u8>>> = Mutex::const_new(BTreeMap::new());
        let mut built = BUILT.lock().await;
        if !built.contains_key(name) {
            let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("guests/rust").join(name);
            // A separate directory, because users list the directory of the shipped plugins.
            let out = tempfile::tempdir().expect("a directory can be created");
            let report = Build::new(source).out(out.path()).run(&Silent).await;
            let report = report.unwrap_or_else(|error| panic!("{name} does not build: {error:?}"));
            let bytes = std::fs::read(report.component).expect("the built component can be read");
            built.insert(name.to_owned(), bytes);
        }
        built[name].clone()
    }

    /// Loads a guest from text.
    ///
    /// # Errors
    /// The error with which the host rejects it.
    pub async fn text(&self, name: &str, text: &str) -> Result<Arc<Plugin>, Error> {
        self.bytes(name, component_of(text)).await
    }

    /// Loads a guest from bytes.
    ///
    /// # Errors
    /// The error with which the host rejects it.
    pub async fn bytes(&self, name: &str, bytes: Vec<u8>) -> Result<Arc<Plugin>, Error> {
        Plugin::from_bytes(&self.runtime, name, bytes).await
    }
}

impl Default for Guests {
    fn default() -> Self {
        Self::new()
    }
}

/// Assembles WebAssembly text.
#[must_use]
pub fn component_of(text: &str) -> Vec<u8> {
    wat::parse_str(text).unwrap_or_else(|error| panic!("{error}"))
}
