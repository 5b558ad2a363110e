//! Builds plugins from source, with the installed compiler or one that the build sets up.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Mutex,
};

use tempfile::TempDir;
use toolwit_build::{Build, BuildError, BuildEvent, Silent, Step};
use toolwit_sections::WIT_SECTION;
use wasmparser::{Parser, Payload};
use wit_component::DecodedWasm;
use wit_parser::{Docs, PackageId, Resolve, TypeDefKind};

const GREETER_WIT: &str = "
    package example:greeter@0.1.0;

    /// Greet people.
    interface greetings {
        /// Greet a person.
        greet: func(age: u32) -> u32;
    }

    world plugin { export greetings; }
";

/// A core module that implements [`GREETER_WIT`].
const GREETER_MODULE: &str =
    r#"(module (func (export "example:greeter/greetings@0.1.0#greet") (param i32) (result i32) local.get 0))"#;

const GREETINGS: &str = "example:greeter/greetings@0.1.0";

const LIBRARY: &str = "[package]\nname = 'guest'\nedition = '2024'\n[lib]\ncrate-type = ['cdylib']\n[workspace]\n";
const PROGRAM: &str = "[package]\nname = 'guest'\nedition = '2024'\n[workspace]\n";

fn project(files: &[(&str, &str)]) -> TempDir {
    let dir = TempDir::new().unwrap();
    for (path, text) in files {
        write(dir.path(), path, text.as_bytes());
    }
    dir
}

fn write(dir: &Path, path: &str, bytes: &[u8]) {
    let path = dir.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, bytes).unwrap();
}

fn plugin(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../plugins").join(name)
}

/// Returns the packages in a component's `toolwit:wit` sections.
fn packages(component: &[u8]) -> Vec<(Resolve, PackageId)> {
    let sections = Parser::new(0)
        .parse_all(component)
        .filter_map(|payload| match payload.unwrap() {
            Payload::CustomSection(section) if section.name() == WIT_SECTION => Some(section.data().to_vec()),
            _ => None,
        });
    let decoded = sections.map(|section| match wit_component::decode(&section).unwrap() {
        DecodedWasm::WitPackage(resolve, package) => (resolve, package),
        DecodedWasm::Component(..) => panic!("a component where a package was expected"),
    });
    decoded.collect()
}

/// Returns the names of a component's exports.
fn exports(component: &[u8]) -> Vec<String> {
    let DecodedWasm::Component(resolve, world) = wit_component::decode(component).unwrap() else {
        panic!("a package where a component was expected")
    };
    resolve.worlds[world]
        .exports
        .keys()
        .map(|key| resolve.name_world_key(key))
        .collect()
}

/// Returns the items of the package that a model reads and that have no docs.
fn undocumented(resolve: &Resolve, package: PackageId) -> Vec<String> {
    let mut missing = Vec::new();
    let mut check = |name: String, docs: &Docs| {
        if docs.contents.as_deref().unwrap_or_default().trim().is_empty() {
            missing.push(name);
        }
    };
    for (name, id) in &resolve.packages[package].interfaces {
        let interface = &resolve.interfaces[*id];
        check(name.clone(), &interface.docs);
        for (name, function) in &interface.functions {
            check(name.clone(), &function.docs);
        }
        for (name, id) in &interface.types {
            let ty = &resolve.types[*id];
            check(name.clone(), &ty.docs);
            let parts: Vec<(&String, &Docs)> = match &ty.kind {
                TypeDefKind::Record(record) => record.fields.iter().map(|part| (&part.name, &part.docs)).collect(),
                TypeDefKind::Variant(variant) => variant.cases.iter().map(|part| (&part.name, &part.docs)).collect(),
                TypeDefKind::Enum(cases) => cases.cases.iter().map(|part| (&part.name, &part.docs)).collect(),
                TypeDefKind::Flags(flags) => flags.flags.iter().map(|part| (&part.name, &part.docs)).collect(),
                _ => Vec::new(),
            };
            for (part, docs) in parts {
                check(format!("{name}.{part}"), docs);
            }
        }
    }
    missing
}

#[tokio::test]
async fn shipped_plugins_build_and_document_every_item_that_a_model_reads() {
    let out = TempDir::new().unwrap();
    for (name, interface) in [
        ("customers", "toolwit-demo:customers/customers@0.1.0"),
        ("text", "toolwit-demo:text/text@0.1.0"),
        ("calc", "toolwit-demo:calc/calculator@0.1.0"),
    ] {
        let built = Build::new(plugin(name)).out(out.path()).run(&Silent).await;
        let report = built.unwrap_or_else(|error| panic!("{name}: {error}\n{}", error.output().unwrap_or_default()));
        assert_eq!((report.name.as_str(), report.warnings.len()), (name, 0));
        assert_eq!(report.component, out.path().join(format!("{name}.wasm")));
        let component = fs::read(&report.component).unwrap();
        assert_eq!(report.size_bytes, component.len() as u64);
        assert_eq!(exports(&component), [interface]);
        let packages = packages(&component);
        // Dependencies precede the plugin's own package.
        let (resolve, package) = packages.last().expect("the plugin contains its WIT");
        assert_eq!(undocumented(resolve, *package), Vec::<String>::new(), "{name}");
    }
}

#[tokio::test]
async fn a_program_with_a_main_becomes_a_command_component() {
    let dir = project(&[
        ("Cargo.toml", PROGRAM),
        ("src/main.rs", "fn main() { println!(\"hello\"); }"),
    ]);
    let report = Build::new(dir.path()).out(dir.path()).run(&Silent).await.unwrap();
    assert_eq!(report.component, dir.path().join("guest.wasm"));
    assert!(
        report.warnings.iter().any(|warning| warning.contains("no WIT")),
        "{:?}",
        report.warnings
    );
    let exports = exports(&fs::read(report.component).unwrap());
    assert!(
        exports.iter().any(|export| export.starts_with("wasi:cli/run@0.2.")),
        "{exports:?}"
    );
}

#[tokio::test]
async fn a_compile_error_contains_the_compilers_diagnostics() {
    let dir = project(&[
        ("Cargo.toml", LIBRARY),
        ("src/lib.rs", "pub fn f() -> u32 { \"text\" }\n"),
    ]);
    let lines = Mutex::new(String::new());
    let sink = |event: BuildEvent<'_>| {
        if let BuildEvent::Output(line) = event {
            lines.lock().unwrap().push_str(line);
        }
    };
    let error = Build::new(dir.path())
        .out(dir.path().join("out"))
        .run(&sink)
        .await
        .unwrap_err();
    let BuildError::Compile { package, diagnostics } = &error else {
        panic!("{error:?}")
    };
    assert_eq!(package, "guest");
    assert!(diagnostics.contains("error[E0308]: mismatched types") && diagnostics.contains("src/lib.rs:1:21"));
    assert!(
        lines.lock().unwrap().contains("mismatched types"),
        "the diagnostics were streamed as well"
    );
    assert!(!dir.path().join("out").exists());
}

#[tokio::test]
async fn a_package_without_a_component_target_is_refused_with_a_hint() {
    let library = "[package]\nname = 'guest'\nedition = '2024'\n[workspace]\n";
    let dir = project(&[("Cargo.toml", library), ("src/lib.rs", "")]);
    let error = Build::new(dir.path()).run(&Silent).await.unwrap_err();
    assert!(matches!(error, BuildError::NoTarget { .. }), "{error:?}");
    assert!(error.suggestion().unwrap().contains("cdylib"));

    let dir = project(&[("Cargo.toml", "[workspace]\n")]);
    let error = Build::new(dir.path()).run(&Silent).await.unwrap_err();
    assert!(matches!(error, BuildError::Workspace { .. }), "{error:?}");

    let dir = project(&[("Cargo.toml", "[package\n")]);
    let error = Build::new(dir.path()).run(&Silent).await.unwrap_err();
    assert!(
        error.output().is_some_and(|output| output.contains("Cargo.toml:1:9")),
        "{error:?}"
    );
}

#[tokio::test]
async fn wit_with_an_error_is_refused_before_anything_is_compiled() {
    let wit = "package a:b;\ninterface i {\n  f: func(x: nope);\n}\n";
    let dir = project(&[("Cargo.toml", LIBRARY), ("src/lib.rs", ""), ("wit/a.wit", wit)]);
    let events = Mutex::new(Vec::new());
    let sink = |event: BuildEvent<'_>| events.lock().unwrap().push(format!("{event:?}"));
    let error = Build::new(dir.path()).run(&sink).await.unwrap_err();
    assert!(error.to_string().contains("a.wit:3:14"), "{error}");
    assert_eq!(*events.lock().unwrap(), Vec::<String>::new());
}

#[tokio::test]
async fn a_directory_without_a_project_is_refused() {
    let dir = project(&[("README.md", "")]);
    let error = Build::new(dir.path()).run(&Silent).await.unwrap_err();
    assert!(matches!(error, BuildError::NothingToBuild { .. }), "{error:?}");
    let error = Build::new(dir.path().join("missing")).run(&Silent).await.unwrap_err();
    assert!(matches!(error, BuildError::NotADirectory { .. }), "{error:?}");
}

#[tokio::test]
async fn a_core_module_next_to_its_wit_becomes_a_component_with_docs() {
    let dir = project(&[("wit/greeter.wit", GREETER_WIT)]);
    write(dir.path(), "greeter.wasm", &wat::parse_str(GREETER_MODULE).unwrap());
    let report = Build::new(dir.path())
        .out(dir.path().join("out/hello.wasm"))
        .run(&Silent)
        .await
        .unwrap();
    assert_eq!(report.name, "hello");
    let component = fs::read(dir.path().join("out/hello.wasm")).unwrap();
    assert_eq!(exports(&component), [GREETINGS]);
    let packages = packages(&component);
    let (resolve, package) = &packages[0];
    assert_eq!(undocumented(resolve, *package), Vec::<String>::new());
}

#[tokio::test]
async fn the_docs_of_a_finished_component_are_replaced_once() {
    let module = project(&[("wit/greeter.wit", GREETER_WIT)]);
    write(module.path(), "greeter.wasm", &wat::parse_str(GREETER_MODULE).unwrap());
    let component = Build::new(module.path())
        .out(module.path().join("out"))
        .run(&Silent)
        .await
        .unwrap()
        .component;

    let dir = project(&[("wit/greeter.wit", &GREETER_WIT.replace("Greet a person", "Say hello"))]);
    fs::copy(component, dir.path().join("greeter.wasm")).unwrap();
    let build = Build::new(dir.path()).out(dir.path().join("out"));
    let report = build.run(&Silent).await.unwrap();
    let packages = packages(&fs::read(&report.component).unwrap());
    assert_eq!(packages.len(), 1);
    let (resolve, package) = &packages[0];
    let greetings = &resolve.interfaces[resolve.packages[*package].interfaces["greetings"]];
    assert_eq!(
        greetings.functions["greet"].docs.contents.as_deref(),
        Some("Say hello.")
    );

    let written = fs::metadata(&report.component).unwrap().modified().unwrap();
    assert_eq!(build.run(&Silent).await.unwrap(), report);
    assert_eq!(fs::metadata(&report.component).unwrap().modified().unwrap(), written);
}

#[tokio::test]
async fn the_build_command_of_a_project_is_run_and_its_output_is_used() {
    let toml = "[build]\ncommand = ['sh', '-c', 'echo building; cp given greeter.wasm']\noutput = 'greeter.wasm'\n";
    let dir = project(&[("toolwit.toml", toml), ("wit/greeter.wit", GREETER_WIT)]);
    write(dir.path(), "given", &wat::parse_str(GREETER_MODULE).unwrap());
    let events = Mutex::new(Vec::new());
    let sink = |event: BuildEvent<'_>| match event {
        BuildEvent::Output(line) => events.lock().unwrap().push(line.to_owned()),
        BuildEvent::Step(Step::RunCommand(_)) => events.lock().unwrap().push("run".to_owned()),
        BuildEvent::Step(step) => events.lock().unwrap().push(step.to_string()),
    };
    let build = Build::new(dir.path()).out(dir.path().join("out"));
    let report = build.run(&sink).await.unwrap();
    let conversion = "converting the core module to a component";
    assert_eq!(
        *events.lock().unwrap(),
        ["run", "building", conversion, "embedding the WIT"]
    );
    assert_eq!(exports(&fs::read(report.component).unwrap()), [GREETINGS]);

    write(
        dir.path(),
        "toolwit.toml",
        b"[build]\ncommand = ['sh', '-c', 'echo no >&2; exit 3']\noutput = 'x.wasm'\n",
    );
    let error = build.run(&Silent).await.unwrap_err();
    assert!(
        matches!(&error, BuildError::Command { output, .. } if output == "no"),
        "{error:?}"
    );

    write(
        dir.path(),
        "toolwit.toml",
        b"[build]\ncommand = ['true']\noutput = 'x.wasm'\n",
    );
    let error = build.run(&Silent).await.unwrap_err();
    assert!(error.to_string().ends_with("x.wasm`"), "{error}");
}

#[tokio::test]
async fn a_component_is_not_reported_as_converted() {
    let dir = project(&[("wit/greeter.wit", GREETER_WIT)]);
    write(dir.path(), "greeter.wasm", &wat::parse_str("(component)").unwrap());
    let steps = Mutex::new(Vec::new());
    let sink = |event: BuildEvent<'_>| steps.lock().unwrap().push(format!("{event:?}"));
    let build = Build::new(dir.path()).out(dir.path().join("out"));
    build.run(&sink).await.unwrap();
    assert_eq!(*steps.lock().unwrap(), ["Step(EmbedWit)"]);
}

#[tokio::test]
async fn a_file_is_built_with_the_wit_of_its_name() {
    let dir = project(&[("greeter.wit", GREETER_WIT)]);
    let file = dir.path().join("greeter.wasm");
    fs::write(&file, wat::parse_str(GREETER_MODULE).unwrap()).unwrap();
    let report = Build::new(&file)
        .out(dir.path().join("out"))
        .run(&Silent)
        .await
        .unwrap();
    assert_eq!(report.component, dir.path().join("out/greeter.wasm"));
    assert_eq!(
        packages(&fs::read(&report.component).unwrap()).len(),
        1,
        "the docs are embedded"
    );
    let error = Build::new(dir.path().join("greeter.wit"))
        .run(&Silent)
        .await
        .unwrap_err();
    assert!(matches!(error, BuildError::NotWasm { .. }), "{error:?}");
}
