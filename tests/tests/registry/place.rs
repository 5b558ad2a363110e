//! A plugin directory of a test.

use std::fs;
use std::path::Path;
use std::time::Duration;

use toolwit::registry::{LiveRegistry, Registry};
use toolwit::sandbox::CodeCacheLocation;
use toolwit::{Toolwit, ToolwitBuilder};
use toolwit_tests::component_of;

/// A plugin directory that goes with the test.
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

    /// Puts a component there as a whole, in the place of an earlier one.
    pub(crate) fn put(&self, name: &str, text: &str) {
        self.put_bytes(&format!("{name}.wasm"), &component_of(text));
    }

    /// Puts a file there as a whole.
    pub(crate) fn put_bytes(&self, name: &str, bytes: &[u8]) {
        let beside = self.path().join(format!(".{name}.new"));
        fs::write(&beside, bytes).unwrap();
        fs::rename(beside, self.path().join(name)).unwrap();
    }

    /// Describes a host of its packages, which compiles everything itself.
    pub(crate) fn host(&self) -> ToolwitBuilder {
        Toolwit::builder()
            .plugins(self.path())
            .code_cache(CodeCacheLocation::Off)
    }
}

/// Adds two numbers modulo 2³², and says which version it is.
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

/// Waits until the registry is as it should be. What takes longer than a minute is lost.
pub(crate) async fn until(live: &LiveRegistry, is_right: impl Fn(&Registry) -> bool) {
    let mut changes = live.changes();
    let wait = async {
        while !is_right(&changes.borrow_and_update()) {
            changes.changed().await.unwrap();
        }
    };
    tokio::time::timeout(Duration::from_secs(60), wait).await.unwrap();
}
