//! Rooms: the top-level modules of each crate. Between crates Cargo enforces the direction of imports; between the rooms of a
//! crate these tests do.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Component;

use crate::files::{TextFile, read_below};
use crate::source::{is_identifier, without_comments};

/// The rooms that each room of a crate imports from.
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

/// The room of a source file; `None` for the root of a crate, which names every room, and for unit tests.
fn room_of(file: &TextFile) -> Option<String> {
    let parts: Vec<_> = file.path.components().skip(3).map(Component::as_os_str).collect();
    let is_test = parts
        .iter()
        .any(|part| part.to_string_lossy().trim_end_matches(".rs").ends_with("tests"));
    let first = parts.first()?.to_string_lossy();
    let room = first.trim_end_matches(".rs");
    (!is_test && !["lib", "main"].contains(&room)).then(|| room.to_owned())
}

/// Reads which room imports from which. Inline `mod tests` are left out.
fn imports(files: &[TextFile]) -> Imports {
    let rooms: BTreeSet<String> = files.iter().filter_map(room_of).collect();
    let mut imports = Imports::new();
    for file in files {
        let Some(room) = room_of(file) else { continue };
        let code = without_comments(&file.text);
        let code = code.split("#[cfg(test)]\n#[allow").next().unwrap_or_default();
        let code = code.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        for target in paths_below(code, "crate::")
            .into_iter()
            .chain(paths_below(code, &way_up(file)))
        {
            if target != room && rooms.contains(&target) {
                imports.entry(room.clone()).or_default().insert(target);
            }
        }
    }
    imports
}

/// Returns the path from a file to the root of its crate: `super::`, once for each level.
fn way_up(file: &TextFile) -> String {
    let levels = file.path.components().skip(3).count();
    let is_room_root = file.path.ends_with("mod.rs");
    "super::".repeat(levels - usize::from(is_room_root))
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

/// Finds a room that can be reached from itself, and the rooms on the path.
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
fn rooms_of_a_crate_import_in_one_direction() {
    let crates = crates();
    assert!(crates.len() >= 9, "the sources of the crates were not found");
    let cycles: Vec<String> = crates
        .iter()
        .filter_map(|(name, files)| Some(format!("{name}: {}", cycle(&imports(files))?.join(" -> "))))
        .collect();
    assert!(cycles.is_empty(), "\n{}", cycles.join("\n"));
}

#[test]
fn a_cycle_is_found_through_groups_and_other_rooms() {
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
    assert_eq!(cycle(&imports(&straight)), None);
    assert_eq!(imports(&straight)["a"], BTreeSet::from(["b".to_owned()]));
    let round = [
        file("a.rs", "use crate::{Error, b};"),
        file("b/mod.rs", "fn f() { super::c::g() }"),
        file("c/d.rs", "use super::super::a::A;"),
    ];
    assert_eq!(cycle(&imports(&round)).unwrap(), ["a", "b", "c", "a"]);
}
