//! Imports have one direction between the top-level modules of each crate, and between the folders inside a module. These
//! tests enforce it. Between crates, Cargo does.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Component;

use crate::files::{TextFile, read_below};
use crate::source::{is_identifier, without_comments};

/// The modules that each module of a crate imports from.
type Imports = BTreeMap<String, BTreeSet<String>>;

/// The crates under `host/`, each with its sources.
fn crates() -> BTreeMap<String, Vec<TextFile>> {
    let mut crates: BTreeMap<String, Vec<TextFile>> = BTreeMap::new();
    for file in read_below("host") {
        let mut parts = file.path.components().skip(1).map(Component::as_os_str);
        let (Some(name), Some(folder)) = (parts.next(), parts.next()) else {
            continue;
        };
        if folder == "src" && file.has_extension("rs") {
            let name = name.to_string_lossy().into_owned();
            crates.entry(name).or_default().push(file);
        }
    }
    crates
}

/// Returns the modules of a crate whose children are checked: the root, and every folder that has folders.
fn parent_modules(files: &[TextFile]) -> BTreeSet<Vec<String>> {
    let mut parents = BTreeSet::from([Vec::new()]);
    for file in files {
        let modules = modules(file);
        parents.extend((1..modules.len().saturating_sub(1)).map(|depth| modules[..depth].to_vec()));
    }
    parents
}

/// Returns the path of a source file below `src` as module names: its folders, and its name without the extension.
fn modules(file: &TextFile) -> Vec<String> {
    let parts = file
        .path
        .components()
        .skip(3)
        .map(|part| part.as_os_str().to_string_lossy());
    parts.map(|part| part.trim_end_matches(".rs").to_owned()).collect()
}

/// Returns the child of the module `level` to which a source file belongs. `None` for the file of the module itself, which
/// imports from every child, for unit tests, and for files outside of the module. At the root of a crate, each file is a
/// child; below, only folders are.
fn module_of(file: &TextFile, level: &[String]) -> Option<String> {
    let modules = modules(file);
    let below = modules.strip_prefix(level)?;
    let module = below.first()?;
    let is_test = below.iter().any(|part| part.ends_with("tests"));
    let is_checked_module = below.len() > 1 || level.is_empty() && !["lib", "main"].contains(&module.as_str());
    (!is_test && is_checked_module).then(|| module.clone())
}

/// Returns which children of the module `level` import from which. Inline `mod tests` are left out.
fn imports(files: &[TextFile], level: &[String]) -> Imports {
    let modules: BTreeSet<String> = files.iter().filter_map(|file| module_of(file, level)).collect();
    let from_root: String = ["crate"]
        .into_iter()
        .chain(level.iter().map(String::as_str))
        .map(|name| format!("{name}::"))
        .collect();
    let mut imports = Imports::new();
    for file in files {
        let Some(module) = module_of(file, level) else { continue };
        let code = without_comments(&file.text);
        let code = code.split("#[cfg(test)]\n#[allow").next().unwrap_or_default();
        let code = code.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        for target in paths_below(code, &from_root)
            .into_iter()
            .chain(paths_below(code, &path_to_ancestor(file, level)))
        {
            if target != module && modules.contains(&target) {
                imports.entry(module.clone()).or_default().insert(target);
            }
        }
    }
    imports
}

/// Returns the path from a file to a module above it: `super::`, once for each level.
fn path_to_ancestor(file: &TextFile, level: &[String]) -> String {
    let levels = modules(file).len() - level.len();
    let is_module_root = file.path.ends_with("mod.rs");
    "super::".repeat(levels - usize::from(is_module_root))
}

/// Returns the first name after each occurrence of a path such as `crate::`, or of each branch of a group after it.
fn paths_below(code: &str, prefix: &str) -> Vec<String> {
    let mut paths = Vec::new();
    for (at, root) in code.match_indices(prefix) {
        if code[..at].ends_with(is_identifier) || code[..at].ends_with("::") {
            continue;
        }
        let rest = &code[at + root.len()..];
        let Some(group) = rest.strip_prefix('{') else {
            paths.push(identifier(rest));
            continue;
        };
        let mut depth = 1;
        let mut is_start = true;
        for (offset, character) in group.char_indices() {
            match character {
                '{' => depth += 1,
                '}' => depth -= 1,
                ',' if depth == 1 => is_start = true,
                _ if is_start && is_identifier(character) => {
                    paths.push(identifier(&group[offset..]));
                    is_start = false;
                }
                _ => {}
            }
            if depth == 0 {
                break;
            }
        }
    }
    paths
}

fn identifier(code: &str) -> String {
    code.chars().take_while(|&character| is_identifier(character)).collect()
}

/// Finds a module that can be reached from itself, and the modules on the path.
fn cycle(imports: &Imports) -> Option<Vec<String>> {
    imports.keys().find_map(|start| {
        let mut path = vec![start.clone()];
        walk(imports, start, &mut path, &mut BTreeSet::new()).then_some(path)
    })
}

fn walk(imports: &Imports, start: &str, path: &mut Vec<String>, visited: &mut BTreeSet<String>) -> bool {
    let current = path.last().cloned().unwrap_or_default();
    for next in imports.get(&current).into_iter().flatten() {
        if next == start {
            path.push(next.clone());
            return true;
        }
        if visited.insert(next.clone()) {
            path.push(next.clone());
            if walk(imports, start, path, visited) {
                return true;
            }
            path.pop();
        }
    }
    false
}

#[test]
fn modules_of_a_crate_import_in_one_direction() {
    let crates = crates();
    assert!(crates.len() >= 9, "the sources of the crates were not found");
    let mut cycles = Vec::new();
    for (name, files) in &crates {
        for level in parent_modules(files) {
            if let Some(modules) = cycle(&imports(files, &level)) {
                cycles.push(format!("{name}/{}: {}", level.join("/"), modules.join(" -> ")));
            }
        }
    }
    assert!(cycles.is_empty(), "\n{}", cycles.join("\n"));
}

#[test]
fn a_cycle_is_found_through_groups_and_other_modules() {
    let file = |path: &str, text: &str| TextFile::made_up(&format!("host/x/src/{path}"), text);
    let straight = [
        file("a.rs", "use crate::{b::{C, crate_x}, Error};\n// use crate::d;\n"),
        file(
            "b/mod.rs",
            "use self::c::C;\n#[cfg(test)]\nmod tests {\n    use crate::a::X;\n}\n",
        ),
        file("b/c.rs", "use super::a;\n"),
        file("b/tests.rs", "use crate::a::X;"),
        file("lib.rs", "mod a; mod b; pub use crate::a::X;"),
    ];
    assert_eq!(cycle(&imports(&straight, &[])), None);
    assert_eq!(imports(&straight, &[])["a"], BTreeSet::from(["b".to_owned()]));
    let round = [
        file("a.rs", "use crate::{Error, b};"),
        file("b/mod.rs", "fn f() { super::c::g() }"),
        file("c/d.rs", "use super::super::a::A;"),
    ];
    assert_eq!(cycle(&imports(&round, &[])).unwrap(), ["a", "b", "c", "a"]);
    let deep = [
        file("a/mod.rs", "mod b; mod c;"),
        file("a/b/mod.rs", "use crate::a::c::X;"),
        file("a/c/x.rs", "use super::super::b::Y;"),
    ];
    assert_eq!(cycle(&imports(&deep, &[])), None);
    assert_eq!(parent_modules(&deep), BTreeSet::from([vec![], vec!["a".to_owned()]]));
    assert_eq!(cycle(&imports(&deep, &["a".to_owned()])).unwrap(), ["b", "c", "b"]);
}
