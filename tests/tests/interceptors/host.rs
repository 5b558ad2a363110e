//! A host with the shipped interceptors, a plugin and native tools.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::OnceCell;
use toolwit::build::{Build, BuildEvent};
use toolwit::sandbox::CodeCacheLocation;
use toolwit::{Arguments, Error, NativeTool, ToolContext, ToolResult, Toolwit, ToolwitBuilder};

static PLUGINS: OnceCell<PathBuf> = OnceCell::const_new();

/// Returns the directory with the built plugins: the shipped interceptors, a hostile one, and a guest that calls tools.
async fn plugins() -> &'static Path {
    PLUGINS
        .get_or_init(|| async {
            let root = Path::new(env!("CARGO_MANIFEST_DIR"));
            let built = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("interceptors");
            for source in [
                "../plugins/redact",
                "../plugins/quota",
                "guests/rust/courier",
                "guests/rust/meddler",
            ] {
                let source = root.join(source);
                let out = built.join(source.file_name().unwrap()).with_extension("wasm");
                let report = Build::new(&source).out(out).run(&|_: BuildEvent<'_>| {}).await;
                report.unwrap_or_else(|error| panic!("{} does not build: {error:?}", source.display()));
            }
            built
        })
        .await
}

/// A native tool that returns its argument `text`.
pub(crate) fn echo() -> NativeTool {
    let schema = json!({"type": "object", "properties": {"text": {"type": "string"}}});
    NativeTool::new("echo", "Returns a text.", schema, |arguments, _| async move {
        Ok(ToolResult::value(arguments.get("text").cloned().unwrap_or_default()))
    })
    .unwrap()
}

/// Starts to configure a host with grants.
pub(crate) async fn builder(directory: &TempDir, grants: &str) -> ToolwitBuilder {
    let file = directory.path().join("grants.toml");
    std::fs::write(&file, format!("version = 1\n{grants}")).unwrap();
    let code = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("code");
    Toolwit::builder()
        .plugins(plugins().await)
        .code_cache(CodeCacheLocation::Directory(code))
        .grants(file)
        .tool(echo())
}

/// Returns a grant of any version of a plugin.
pub(crate) fn grant(plugin: &str, lines: &str) -> String {
    format!("[[grant]]\nplugin = \"{plugin}\"\nany-version = true\n{lines}\n")
}

pub(crate) fn object(value: Value) -> Arguments {
    value.as_object().unwrap().clone()
}

/// Calls a tool in a new conversation without a model.
pub(crate) async fn call(host: &Toolwit, tool: &str, arguments: Value) -> Result<ToolResult, Error> {
    let mut session = host.call_session(ToolContext::new());
    let tool = session.find(tool).map_err(Error::from)?;
    session.call(&tool, object(arguments)).await.result.map_err(Error::from)
}
