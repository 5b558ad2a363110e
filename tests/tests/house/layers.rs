//! The direction of the arrows between the modules of `host/src`.

use crate::files::{TextFile, read_below};

/// The modules in the order in which data flows; modules of one row stand beside each other. **A module imports only from
/// the rows above its own.** `lib.rs` and `main.rs` stand outside: they name every module and none names them.
const ROWS: &[&[&str]] = &[
    &["error"],
    &["tool"],
    &["limits"],
    &["capability"],
    &["store"],
    &["plugin"],
    &["build", "registry"],
    &["injection"],
    &["model"],
    &["agent"],
    &["mcp"],
    &["host"],
    &["cli"],
];

/// The only module that knows the engine.
const SANDBOX: &str = "plugin";

/// Every import in a file of `host/src` that points the wrong way, as `file:line: what is wrong`. Tests inside a module are
/// held to the same as its code.
fn wrong_arrows(file: &TextFile) -> Vec<String> {
    let Some(module) = module_of(file) else {
        return Vec::new();
    };
    let Some(row) = row_of(&module) else {
        return vec![format!(
            "{}: `{module}` has no place in the order of modules",
            file.at(1)
        )];
    };
    let code = without_comments(&file.text);
    let line_of = |at: usize| code[..at].matches('\n').count() + 1;
    let mut complaints = Vec::new();
    for (at, target) in crate_paths(&code) {
        let complaint = match row_of(&target) {
            _ if target == module => continue,
            Some(below) if below < row => continue,
            Some(below) if below == row => format!("`{module}` may not import from `{target}`, which stands beside it"),
            Some(_) => format!("`{module}` may not import from `{target}`, which stands below it"),
            None => format!("`{module}` imports `crate::{target}`, which is no module: name the module that holds it"),
        };
        complaints.push(format!("{}: {complaint}", file.at(line_of(at))));
    }
    if module != SANDBOX {
        complaints.extend(engine_paths(&code).map(|(at, krate)| {
            format!(
                "{}: `{module}` may not use `{krate}`: only `{SANDBOX}` does",
                file.at(line_of(at))
            )
        }));
    }
    complaints
}

/// The module of `host/src` to which a file belongs; none for the crate's roots.
fn module_of(file: &TextFile) -> Option<String> {
    let path = file.path.strip_prefix("host/src").ok()?;
    let first = path.components().next()?.as_os_str().to_str()?;
    (!["lib.rs", "main.rs"].contains(&first)).then(|| first.trim_end_matches(".rs").to_owned())
}

fn row_of(module: &str) -> Option<usize> {
    ROWS.iter().position(|row| row.contains(&module))
}

/// The source with the text of its line comments gone; lines stay where they are. A `//` after a colon is a URL.
fn without_comments(source: &str) -> String {
    let comment = |line: &str| {
        line.match_indices("//")
            .map(|(at, _)| at)
            .find(|&at| !line[..at].ends_with(':'))
    };
    let lines = source.lines().map(|line| comment(line).map_or(line, |at| &line[..at]));
    lines.collect::<Vec<_>>().join("\n")
}

/// What follows every `crate::`, with where it stands: one name, or the first name of each branch of a group.
fn crate_paths(code: &str) -> Vec<(usize, String)> {
    let mut paths = Vec::new();
    for (at, root) in code.match_indices("crate::") {
        if code[..at].ends_with(is_identifier) {
            continue;
        }
        let rest = at + root.len();
        if !code[rest..].starts_with('{') {
            paths.push((rest, identifier(&code[rest..])));
            continue;
        }
        let mut depth = 0;
        for (offset, character) in code[rest..].char_indices() {
            match character {
                '{' => depth += 1,
                '}' => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                break;
            }
            if depth == 1 && matches!(character, '{' | ',') {
                let branch = code[rest + offset + 1..].trim_start();
                let name = identifier(branch);
                paths.extend((!name.is_empty()).then(|| (code.len() - branch.len(), name)));
            }
        }
    }
    paths
}

/// Every path into a crate of the engine, `wasmtime::…` or `wasmtime_wasi::…`, with where it stands.
fn engine_paths(code: &str) -> impl Iterator<Item = (usize, String)> {
    code.match_indices("wasmtime")
        .filter(|&(at, _)| !code[..at].ends_with(is_identifier))
        .filter_map(|(at, _)| {
            let krate = identifier(&code[at..]);
            let is_path = code[at + krate.len()..].starts_with("::") || code[..at].ends_with("use ");
            is_path.then_some((at, krate))
        })
}

fn identifier(code: &str) -> String {
    code.chars().take_while(|&character| is_identifier(character)).collect()
}

fn is_identifier(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

#[test]
fn modules_import_only_from_those_above_them() {
    let sources: Vec<TextFile> = read_below("host/src")
        .into_iter()
        .filter(|file| file.has_extension("rs"))
        .collect();
    assert!(
        sources.iter().any(|file| file.path.ends_with("lib.rs")),
        "the host's sources were not found"
    );
    let complaints: Vec<String> = sources.iter().flat_map(wrong_arrows).collect();
    assert!(complaints.is_empty(), "\n{}", complaints.join("\n"));
}

#[test]
fn an_import_from_above_or_from_itself_is_fine() {
    let source = "use crate::limits::CallLimits;\nuse crate::{error::Error, tool::{Tool, ToolName}};\n\
                  // use crate::agent::ToolLoop;\n/// [`crate::cli`], wasmtime::Engine\nuse crate::plugin::reflect;\n\
                  use wasmtime::Engine;\nlet url = \"https://example.com\";\nuse my_crate::agent;\n";
    assert_eq!(
        wrong_arrows(&TextFile::made_up("host/src/plugin/call.rs", source)),
        [""; 0]
    );
    assert_eq!(
        wrong_arrows(&TextFile::made_up("host/src/lib.rs", "pub use crate::cli::run;\n")),
        [""; 0]
    );
}

#[test]
fn a_wrong_arrow_is_reported_with_its_line_and_its_ends() {
    let source = "use crate::{\n    agent::{ToolLoop, event::Event},\n    limits::CallLimits,\n};\nuse crate::Error;\n\
                  fn engine() -> wasmtime::Engine {}\nmod tests {\n    use wasmtime_wasi;\n    use crate::mcp::server;\n}\n";
    assert_eq!(
        wrong_arrows(&TextFile::made_up("host/src/tool/set.rs", source)),
        [
            "host/src/tool/set.rs:2: `tool` may not import from `agent`, which stands below it",
            "host/src/tool/set.rs:3: `tool` may not import from `limits`, which stands below it",
            "host/src/tool/set.rs:5: `tool` imports `crate::Error`, which is no module: name the module that holds it",
            "host/src/tool/set.rs:9: `tool` may not import from `mcp`, which stands below it",
            "host/src/tool/set.rs:6: `tool` may not use `wasmtime`: only `plugin` does",
            "host/src/tool/set.rs:8: `tool` may not use `wasmtime_wasi`: only `plugin` does",
        ]
    );
}

#[test]
fn neighbours_and_strangers_are_reported() {
    let neighbour = TextFile::made_up("host/src/build.rs", "use crate::registry::Package;\n");
    assert_eq!(
        wrong_arrows(&neighbour),
        ["host/src/build.rs:1: `build` may not import from `registry`, which stands beside it"]
    );
    let stranger = TextFile::made_up("host/src/utils/mod.rs", "");
    assert_eq!(
        wrong_arrows(&stranger),
        ["host/src/utils/mod.rs:1: `utils` has no place in the order of modules"]
    );
}
