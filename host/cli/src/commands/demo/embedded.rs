//! The source of a shipped plugin inside the command, for a demo without a clone of the repository.

use std::fs;
use std::io;
use std::path::Path;

use toml::{Table, Value};

/// Embeds files of the repository, with their paths.
macro_rules! files {
    ($($path:literal,)*) => { [$(($path, include_str!(concat!("../../../../../", $path)))),*] };
}

/// The plugin `customers`, and the SDK that it uses.
const FILES: [(&str, &str); 21] = files![
    "Cargo.lock",
    "plugins/customers/Cargo.toml",
    "plugins/customers/seed/customers.tsv",
    "plugins/customers/seed/orders.tsv",
    "plugins/customers/seed/products.tsv",
    "plugins/customers/src/cart.rs",
    "plugins/customers/src/catalogue.rs",
    "plugins/customers/src/customer.rs",
    "plugins/customers/src/lib.rs",
    "plugins/customers/src/money.rs",
    "plugins/customers/src/order.rs",
    "plugins/customers/src/plugin.rs",
    "plugins/customers/src/receipt.rs",
    "plugins/customers/src/seed.rs",
    "plugins/customers/src/shop.rs",
    "plugins/customers/src/spend.rs",
    "plugins/customers/wit/customers.wit",
    "plugins/customers/wit/deps/toolwit-plugin.wit",
    "sdk/rust/Cargo.toml",
    "sdk/rust/README.md",
    "sdk/rust/src/lib.rs",
];

/// The manifest of the repository's workspace, which the plugin inherits from.
const WORKSPACE: &str = include_str!("../../../../../Cargo.toml");

/// Writes the source as a workspace. Files with the same content are not rewritten, so that the plugin is not built again.
pub(super) fn unpack(root: &Path) -> io::Result<()> {
    for (path, text) in FILES {
        write(&root.join(path), text)?;
    }
    write(&root.join("Cargo.toml"), &workspace()?)
}

/// Returns the manifest of a workspace that has only the embedded packages.
fn workspace() -> io::Result<String> {
    let mut manifest: Table = WORKSPACE.parse().map_err(io::Error::other)?;
    if let Some(Value::Table(workspace)) = manifest.get_mut("workspace") {
        for key in ["default-members", "exclude"] {
            workspace.remove(key);
        }
        let members = ["plugins/customers", "sdk/rust"].map(Value::from);
        workspace.insert("members".to_owned(), members.to_vec().into());
    }
    toml::to_string(&manifest).map_err(io::Error::other)
}

fn write(path: &Path, text: &str) -> io::Result<()> {
    if fs::read_to_string(path).is_ok_and(|present| present == text) {
        return Ok(());
    }
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory)?;
    }
    fs::write(path, text)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn all_files_of_the_plugin_are_embedded() {
        let plugin = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../plugins/customers");
        let mut directories = vec![plugin.clone()];
        let mut count = 0;
        while let Some(directory) = directories.pop() {
            for entry in fs::read_dir(directory).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    directories.push(path);
                    continue;
                }
                count += 1;
                let name = Path::new("plugins/customers").join(path.strip_prefix(&plugin).unwrap());
                assert!(
                    FILES.iter().any(|(path, _)| Path::new(path) == name),
                    "{}",
                    name.display()
                );
            }
        }
        assert!(count > 10);
    }

    #[test]
    fn unpacked_source_is_a_workspace_and_is_written_once() {
        let root = tempfile::tempdir().unwrap();
        unpack(root.path()).unwrap();
        let manifest: Table = fs::read_to_string(root.path().join("Cargo.toml"))
            .unwrap()
            .parse()
            .unwrap();
        assert_eq!(manifest["workspace"]["members"].as_array().unwrap().len(), 2);
        assert!(manifest["workspace"]["dependencies"].get("strsim").is_some());
        let modified = || {
            fs::metadata(root.path().join("Cargo.toml"))
                .unwrap()
                .modified()
                .unwrap()
        };
        let first = modified();
        unpack(root.path()).unwrap();
        assert_eq!(modified(), first);
    }
}
