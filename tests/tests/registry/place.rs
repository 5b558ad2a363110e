//! A plugin directory for a test.

use std::fs;
use std::path::Path;
use std::time::Duration;

use toolwit::registry::{LiveRegistry, Registry};
use toolwit::sandbox::CodeCacheLocation;
use toolwit::{Toolwit, ToolwitBuilder};
use toolwit_tests::component_of;

/// A temporary plugin directory.
pub(crate) struct Place {
    directory: tempfile::TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        Self {
            directory: tempfile::tempdir().unwrap(),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Writes a component atomically, and replaces an earlier one.
    pub(crate) fn put(&self, name: &str, text: &str) {
        self.put_bytes(&format!("{name}.wasm"), &component_of(text));
    }

    /// Writes a file atomically.
    pub(crate) fn put_bytes(&self, name: &str, bytes: &[u8]) {
        let temporary = self.path().join(format!(".{name}.new"));
        fs::write(&temporary, bytes).unwrap();
        fs::rename(temporary, self.path().join(name)).unwrap();
    }

    /// Returns a builder of a host for this directory, without a code cache.
    pub(crate) fn host(&self) -> ToolwitBuilder {
        Toolwit::builder()
            .plugins(self.path())
            .code_cache(CodeCacheLocation::Off)
    }
}

/// Returns a component that adds two numbers modulo 2³² and reports its version.
pub(crate) fn adder(version: u32) -> String {
    format!(
        r#"(component
            (core module $m
                (func (export "add") (param i32 i32) (result i32) local.get 0 local.get 1 i32.add)
                (func (export "version") (result i32) i32.const {version}))
            (core instance $i (instantiate $m))
            (func (export "add") (param "a" u32) (param "b" u32) (result u32) (canon lift (core func $i "add")))
            (func (export "version") (result u32) (canon lift (core func $i "version"))))"#
    )
}

/// Waits until the registry meets a condition, for at most a minute.
pub(crate) async fn until(live: &LiveRegistry, is_met: impl Fn(&Registry) -> bool) {
    let mut changes = live.changes();
    let wait = async {
        while !is_met(&changes.borrow_and_update()) {
            changes.changed().await.unwrap();
        }
    };
    tokio::time::timeout(Duration::from_secs(60), wait).await.unwrap();
}
