//! A host with one shipped plugin and a granted directory.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tempfile::TempDir;
use tokio::sync::Mutex;
use toolwit::build::{Build, Silent};
use toolwit::sandbox::CodeCacheLocation;
use toolwit::{Arguments, ToolContext, Toolwit};

/// Builds a plugin with its manifest, once for all tests of the process.
async fn build_plugin(plugin: &str) -> PathBuf {
    static BUILT: Mutex<BTreeMap<String, PathBuf>> = Mutex::const_new(BTreeMap::new());
    let mut built = BUILT.lock().await;
    if let Some(component) = built.get(plugin) {
        return component.clone();
    }
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../plugins").join(plugin);
    let component = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("shipped/{plugin}.wasm"));
    let report = Build::new(&source).out(&component).run(&Silent).await;
    report.unwrap_or_else(|error| panic!("{plugin} does not build: {error:?}"));
    let manifest = source.join(plugin).with_added_extension("toml");
    std::fs::copy(manifest, component.with_extension("toml")).expect("a shipped plugin has a manifest");
    built.insert(plugin.to_owned(), component.clone());
    component
}

/// A host with one plugin.
pub(crate) struct Host {
    directory: TempDir,
    host: Toolwit,
}

impl Host {
    /// Starts a host whose plugin has no grant.
    pub(crate) async fn without_grant(plugin: &str) -> Self {
        Self::start(plugin, "").await
    }

    /// Starts a host whose plugin may access the directory `data` as `/data`.
    pub(crate) async fn with_files(plugin: &str, access: &str) -> Self {
        let files = format!("files = [{{ host = \"{{dir}}/data\", guest = \"/data\", access = \"{access}\" }}]");
        Self::start(plugin, &files).await
    }

    /// Starts a host with lines of a grant, in which `{dir}` is the directory of the test.
    pub(crate) async fn start(plugin: &str, lines: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir(directory.path().join("data")).unwrap();
        let lines = lines.replace("{dir}", &directory.path().display().to_string());
        let grants = directory.path().join("grants.toml");
        let text = format!("version = 1\n[[grant]]\nplugin = \"{plugin}\"\nany-version = true\n{lines}\n");
        std::fs::write(&grants, if lines.is_empty() { "version = 1\n" } else { &text }).unwrap();
        let code = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("code");
        let host = Toolwit::builder()
            .plugins(build_plugin(plugin).await)
            .code_cache(CodeCacheLocation::Directory(code))
            .grants(grants);
        let host = host.build().await.unwrap();
        for package in host.registry().packages() {
            assert!(package.broken_reason().is_none(), "{:?}", package.broken_reason());
        }
        Self { directory, host }
    }

    /// The directory that a grant may contain.
    pub(crate) fn data(&self) -> PathBuf {
        self.directory.path().join("data")
    }

    /// Calls a tool in a new conversation without a model.
    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> Result<Value, String> {
        let mut session = self.host.call_session(ToolContext::new());
        let tool = session.find(tool).unwrap_or_else(|error| panic!("{error}"));
        let arguments: Arguments = arguments.as_object().unwrap().clone();
        match session.call(&tool, arguments).await.result {
            Ok(result) if result.is_error() => Err(result.for_llm),
            Ok(result) => Ok(result.value.unwrap_or(Value::String(result.for_llm))),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Calls a tool that must succeed.
    pub(crate) async fn value(&self, tool: &str, arguments: Value) -> Value {
        let shown = format!("{tool} {arguments}");
        let result = self.call(tool, arguments).await;
        result.unwrap_or_else(|error| panic!("{shown}: {error}"))
    }

    /// Calls a tool that must fail, and returns the error.
    pub(crate) async fn failure(&self, tool: &str, arguments: Value) -> String {
        let shown = format!("{tool} {arguments}");
        match self.call(tool, arguments).await {
            Ok(value) => panic!("{shown} returned {value}"),
            Err(error) => error,
        }
    }
}
