//! A host with the hostile guests and the grants of a test.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;
use tempfile::TempDir;
use tokio::sync::OnceCell;
use toolwit::build::{Build, BuildEvent};
use toolwit::limits::LimitOverrides;
use toolwit::registry::{DiscoveryTargets, DynamicDiscovery};
use toolwit::sandbox::{CodeCacheLocation, KeyValueStore, Resolve, Scope, WasiVersions};
use toolwit::{Error, ErrorKind, Tool, ToolContext, ToolResult, Toolwit, ToolwitBuilder};

/// The guests. `Setup::grant` grants to all of them.
const NAMES: [&str; 6] = ["courier", "hoarder", "inquirer", "keeper", "looper", "probe"];

/// The components of `guests/rust`, built once for all tests.
static GUESTS: OnceCell<PathBuf> = OnceCell::const_new();

/// The guests of the contracts of other hosts.
const CONTRACTS: [&str; 3] = ["actor", "nearby", "neighbor"];

/// The components of these guests.
static CONTRACT_GUESTS: OnceCell<PathBuf> = OnceCell::const_new();

/// The guest of a contract that uses WASI 0.3.
const CONTRACTS3: [&str; 1] = ["understudy"];

/// The component of this guest.
static CONTRACT_GUESTS3: OnceCell<PathBuf> = OnceCell::const_new();

/// The guest of WASI 0.3.
static GUESTS3: OnceCell<PathBuf> = OnceCell::const_new();

/// Returns the directory with the built guests.
pub(crate) async fn guests() -> &'static Path {
    GUESTS.get_or_init(|| build_guests("guests", &NAMES)).await
}

/// Returns the directory with the guest of WASI 0.3.
pub(crate) async fn guests3() -> &'static Path {
    GUESTS3.get_or_init(|| build_guests("guests3", &["river"])).await
}

/// Returns the directory with the guests of the contracts of other hosts.
pub(crate) async fn contract_guests() -> &'static Path {
    CONTRACT_GUESTS
        .get_or_init(|| build_guests("contracts", &CONTRACTS))
        .await
}

/// Returns the directory with the guest of a contract that uses WASI 0.3.
pub(crate) async fn contract_guests3() -> &'static Path {
    CONTRACT_GUESTS3
        .get_or_init(|| build_guests("contracts3", &CONTRACTS3))
        .await
}

async fn build_guests(directory: &str, names: &[&str]) -> PathBuf {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("guests/rust");
    let built = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(directory);
    for name in names {
        let out = built.join(name).with_extension("wasm");
        let report = Build::new(sources.join(name))
            .out(out)
            .run(&|_: BuildEvent<'_>| {})
            .await;
        report.unwrap_or_else(|error| panic!("{name} does not build: {error:?}"));
    }
    built
}

/// A host, its grants, and one conversation.
pub(crate) struct TestHost {
    pub(crate) host: Toolwit,
    pub(crate) directory: TempDir,
    tools: Vec<Arc<dyn Tool>>,
    pub(crate) context: ToolContext,
}

/// The configuration of a test host.
#[derive(Default)]
pub(crate) struct Setup {
    grants: Option<String>,
    resolver: Option<Arc<dyn Resolve>>,
    keyvalue: Option<Arc<dyn KeyValueStore>>,
    secrets: Vec<(&'static str, &'static str)>,
    directory: Option<TempDir>,
    limits: LimitOverrides,
    roots: Option<String>,
    frozen_at: Option<u64>,
    has_wasi3: bool,
    has_contracts: bool,
}

impl Setup {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Adds the lines of a grant for every guest and every digest. `{dir}` stands for the test's directory.
    pub(crate) fn grant(self, lines: &str) -> Self {
        self.file(&grants_to_all(lines))
    }

    /// Adds the lines of a grant for some guests only.
    pub(crate) fn grant_to(mut self, guests: &[&str], lines: &str) -> Self {
        let text = self.grants.take().unwrap_or_else(|| "version = 1\n".to_owned());
        let grants: String = guests.iter().map(|guest| grant_text(guest, lines)).collect();
        self.file(&format!("{text}{grants}"))
    }

    /// Replaces the grants file.
    pub(crate) fn file(mut self, text: &str) -> Self {
        self.grants = Some(text.to_owned());
        self
    }

    pub(crate) fn resolver(mut self, resolver: Arc<dyn Resolve>) -> Self {
        self.resolver = Some(resolver);
        self
    }

    pub(crate) fn keyvalue(mut self, store: Arc<dyn KeyValueStore>) -> Self {
        self.keyvalue = Some(store);
        self
    }

    /// Sets the operator's limits of every call.
    pub(crate) fn limits(mut self, limits: LimitOverrides) -> Self {
        self.limits = limits;
        self
    }

    /// Adds trusted root certificates.
    pub(crate) fn roots(mut self, pem: &str) -> Self {
        self.roots = Some(pem.to_owned());
        self
    }

    /// Freezes the clocks of all guests at a time, in seconds since 1970.
    pub(crate) fn frozen_at(mut self, seconds: u64) -> Self {
        self.frozen_at = Some(seconds);
        self
    }

    /// Uses the guest of WASI 0.3 instead of the others.
    pub(crate) fn wasi3(mut self) -> Self {
        self.has_wasi3 = true;
        self
    }

    /// Uses the guests of the contracts of other hosts instead of the others, or with [`Self::wasi3`] the one of them that uses WASI 0.3.
    pub(crate) fn contracts(mut self) -> Self {
        self.has_contracts = true;
        self
    }

    pub(crate) fn secret(mut self, name: &'static str, value: &'static str) -> Self {
        self.secrets.push((name, value));
        self
    }

    /// Uses a directory that a test has prepared. Granted files are in its subdirectory `data`.
    pub(crate) fn directory(mut self, directory: TempDir) -> Self {
        self.directory = Some(directory);
        self
    }

    pub(crate) async fn try_start(self) -> Result<TestHost, Error> {
        let directory = self.directory.unwrap_or_else(|| tempfile::tempdir().unwrap());
        std::fs::create_dir_all(directory.path().join("data")).unwrap();
        std::fs::create_dir_all(directory.path().join("own")).unwrap();
        let (plugins, wasi) = match (self.has_contracts, self.has_wasi3) {
            (false, false) => (guests().await, WasiVersions::Wasi2),
            (false, true) => (guests3().await, WasiVersions::Wasi2And3),
            (true, false) => (contract_guests().await, WasiVersions::Wasi2),
            (true, true) => (contract_guests3().await, WasiVersions::Wasi2And3),
        };
        let mut builder: ToolwitBuilder = Toolwit::builder()
            .plugins(plugins)
            .wasi(wasi)
            .limits(self.limits)
            .dynamic_discovery(DynamicDiscovery::Never)
            .code_cache(CodeCacheLocation::Directory(
                PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("code"),
            ));
        if let Some(grants) = &self.grants {
            let file = grants_file(&directory);
            std::fs::write(&file, with_directory(grants, directory.path())).unwrap();
            builder = builder.grants(file);
        }
        if !self.secrets.is_empty() {
            let store = toolwit::sandbox::SecretStore::new(directory.path().join("own/secrets.toml"));
            for (name, value) in &self.secrets {
                store.set(name, value).unwrap();
            }
            builder = builder.secrets(store.path());
        }
        if let Some(roots) = self.roots {
            builder = builder.extra_root_certificates(roots);
        }
        if let Some(seconds) = self.frozen_at {
            builder = builder.frozen_at(seconds);
        }
        if let Some(resolver) = self.resolver {
            builder = builder.resolver(resolver);
        }
        if let Some(keyvalue) = self.keyvalue {
            builder = builder.keyvalue(keyvalue);
        }
        let host = builder.build().await?;
        if self.has_contracts {
            // The named ones are compiled first, which takes more than the time of a discovery on a busy machine.
            let names: &[&str] = if self.has_wasi3 { &CONTRACTS3 } else { &CONTRACTS };
            let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
            host.live_registry()
                .discover_dynamic_tools(DiscoveryTargets::Named(&names))
                .await?;
        }
        let tools = host.tools(&Scope::new());
        Ok(TestHost {
            host,
            directory,
            tools,
            context: ToolContext::new(),
        })
    }

    pub(crate) async fn start(self) -> TestHost {
        self.try_start().await.unwrap()
    }
}

fn grant_text(guest: &str, lines: &str) -> String {
    format!("[[grant]]\nplugin = \"{guest}\"\nany-version = true\n{lines}\n")
}

fn grants_to_all(lines: &str) -> String {
    let guests = NAMES.iter().chain(&["river"]).chain(&CONTRACTS).chain(&CONTRACTS3);
    let grants: String = guests.map(|guest| grant_text(guest, lines)).collect();
    format!("version = 1\n{grants}")
}

fn grants_file(directory: &TempDir) -> PathBuf {
    directory.path().join("own/grants.toml")
}

fn with_directory(text: &str, directory: &Path) -> String {
    text.replace("{dir}", directory.to_str().unwrap())
}

impl TestHost {
    /// The directory that tests grant.
    pub(crate) fn data(&self) -> PathBuf {
        self.directory.path().join("data")
    }

    pub(crate) fn grants_file(&self) -> PathBuf {
        grants_file(&self.directory)
    }

    /// Changes the grants file of the running host, as an editor does.
    pub(crate) fn regrant(&self, lines: &str) {
        let text = grants_to_all(lines);
        let new_file = self.directory.path().join("own/grants.new");
        std::fs::write(&new_file, with_directory(&text, self.directory.path())).unwrap();
        std::fs::rename(new_file, self.grants_file()).unwrap();
    }

    /// The tools of the conversation.
    pub(crate) fn tools(&self) -> &[Arc<dyn Tool>] {
        &self.tools
    }

    /// Starts another conversation on the same host.
    pub(crate) fn another_conversation(&self) -> Vec<Arc<dyn Tool>> {
        self.host.tools(&Scope::new())
    }

    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> Result<ToolResult, Error> {
        self.call_in(&self.tools, tool, arguments).await
    }

    pub(crate) async fn call_in(
        &self,
        tools: &[Arc<dyn Tool>],
        tool: &str,
        arguments: Value,
    ) -> Result<ToolResult, Error> {
        let tool = Toolwit::find_tool(tools, tool)?;
        let Value::Object(arguments) = arguments else {
            panic!("arguments are an object")
        };
        tool.call(arguments.into_iter().collect(), &self.context)
            .await
            .map_err(Error::from)
    }

    /// Calls a tool that must succeed, and returns its value.
    pub(crate) async fn value(&self, tool: &str, arguments: Value) -> Value {
        let result = self
            .call(tool, arguments)
            .await
            .unwrap_or_else(|error| panic!("{tool}: {error} {error:?}"));
        assert!(!result.is_error(), "{tool}: {}", result.for_llm);
        result.value.unwrap()
    }

    /// Calls a tool that must return an error, and returns the text.
    pub(crate) async fn failure(&self, tool: &str, arguments: Value) -> String {
        match self.call(tool, arguments.clone()).await {
            Ok(result) if result.is_error() => result.for_llm,
            Ok(result) => panic!("{tool} {arguments}: {}", result.for_llm),
            Err(error) => panic!("{tool} {arguments}: {error:?}"),
        }
    }

    /// Calls a tool that the grants must stop, and returns the host's error.
    pub(crate) async fn denial(&self, tool: &str, arguments: Value) -> Error {
        match self.call(tool, arguments.clone()).await {
            Err(error) if error.kind == ErrorKind::Denied => error,
            other => panic!("{tool} {arguments}: {other:?}"),
        }
    }
}
