//! The capabilities that the shipped plugins declare, and the rows of their documentation.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use toolwit::build::{Build, BuildError, Language, Silent};
use toolwit::grants::{Capability, DeclaredCapabilities};
use toolwit::sandbox::{Inspection, PackageContext};

/// The capabilities that Rust's standard library imports in each component. A grant of them is a rule of its own.
const OF_STD: [Capability; 3] = [Capability::Clock, Capability::Env, Capability::Random];

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Returns the texts in backticks.
fn texts_in_backticks(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// Returns the rows of the table of plugins: the names of the plugins, and the other cells.
fn documented_rows() -> BTreeMap<String, Vec<String>> {
    let page = fs::read_to_string(repository().join("docs/src/shipped.md")).unwrap();
    let rows = page.lines().filter(|line| line.starts_with("| `"));
    rows.flat_map(|row| {
        let cells: Vec<String> = row.split('|').map(|cell| cell.trim().to_owned()).collect();
        let names: Vec<String> = texts_in_backticks(&cells[1]).map(str::to_owned).collect();
        names.into_iter().map(move |name| (name, cells[2..].to_vec()))
    })
    .collect()
}

async fn inspect_plugin(plugin: &str) -> Option<Inspection> {
    let source = repository().join("plugins").join(plugin);
    let component = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("declared/{plugin}.wasm"));
    match Build::new(&source).out(&component).run(&Silent).await {
        Ok(_) => {}
        Err(BuildError::MissingTool(missing)) if Language::C.missing_tool(&source).as_ref() == Some(&missing) => {
            return None;
        }
        Err(error) => panic!("{plugin} does not build: {error:?}"),
    }
    let bytes = fs::read(component).unwrap();
    let context = PackageContext {
        name: plugin,
        adjacent_wit: None,
    };
    Some(Inspection::from_bytes(&bytes, context).unwrap())
}

#[tokio::test]
async fn each_plugin_declares_the_least_and_has_a_row_in_the_documentation() {
    use Capability::{Config, Context, Files, Http, Keyvalue};
    let least: BTreeMap<&str, &[Capability]> = BTreeMap::from([
        ("calc", &[][..]),
        ("csv", &[Files]),
        // An example of values that a host passes: it shows the customers of a tenant, if the context names one.
        ("customers", &[Context]),
        ("files", &[Files]),
        ("http_fetch", &[Http]),
        ("image_info", &[Files]),
        ("markdown", &[]),
        ("quota", &[Config, Keyvalue]),
        ("redact", &[Config]),
        ("shell", &[Files]),
        ("sqlite", &[Files]),
        ("text", &[]),
        ("time", &[]),
    ]);
    let documented = documented_rows();
    let sources = fs::read_dir(repository().join("plugins")).unwrap();
    let sources: BTreeSet<String> = sources
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert!(sources.iter().eq(least.keys()), "{sources:?}");
    assert!(sources.iter().eq(documented.keys()), "{:?}", documented.keys());
    for (plugin, expected) in least {
        let Some(inspection) = inspect_plugin(plugin).await else {
            continue;
        };
        let imports = inspection.imports.iter().map(|import| import.name.as_str());
        let declared = DeclaredCapabilities::from_imports(imports);
        let declared: Vec<_> = declared
            .capabilities()
            .iter()
            .filter(|one| !OF_STD.contains(one))
            .collect();
        assert!(declared.iter().copied().eq(expected), "{plugin}: {declared:?}");
        let cells = &documented[plugin];
        let tools: BTreeSet<String> = inspection
            .tools
            .iter()
            .map(|tool| tool.name().replace('-', "_"))
            .collect();
        let listed: BTreeSet<String> = texts_in_backticks(&cells[0]).map(str::to_owned).collect();
        if cells[0].contains("and others") {
            assert!(listed.is_subset(&tools), "{plugin}: {tools:?}");
        } else if !listed.is_empty() {
            assert_eq!(listed, tools, "{plugin}");
        }
        let needs_files = expected.contains(&Files);
        assert_eq!(cells[1].contains("a directory"), needs_files, "{plugin}: {}", cells[1]);
        assert_eq!(
            cells[2].contains("`toolwit grant"),
            needs_files || expected.contains(&Http),
            "{plugin}"
        );
    }
}
