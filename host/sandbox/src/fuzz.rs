//! Entry points for the fuzzers of private code: the mappings between WIT and JSON and between CBOR and JSON, and the opening
//! of granted directories. Not part of the public API.

use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::contract::cbor;
use crate::grants::directories::{GrantableDirectories, OpenDirectory, WritableRoots};
use crate::grants::{
    AccessMode, AccessRequest, DeclaredCapabilities, DirectoryRule, EffectiveRights, UnenforceableRule,
};
use crate::values::decode::{NoHandles, decode_arguments};
use crate::values::encode::encode;
use crate::values::types::{Case, Field, Label, WitType};
use toolwit_core::text::parse_json;

/// The maximum nesting depth of a type that is generated from a fuzzer's bytes.
const DEPTH_MAX: u32 = 6;

/// Generates a type from the first bytes and parses the other bytes as JSON. If the JSON decodes to a value of the type, the
/// value is encoded to JSON again. A second round trip must return the same JSON as the first.
///
/// # Panics
/// If the second round trip fails or returns other JSON, which means that the fuzzer has found a bug.
#[allow(clippy::panic, reason = "a panic is how a fuzz target reports a finding")]
pub fn values(data: &[u8]) {
    let mut data = data.iter().copied();
    let ty = generate_type(&mut data, 0);
    let Ok(text) = String::from_utf8(data.collect()) else {
        return;
    };
    let Ok(value) = parse_json(&text) else { return };
    let field = Field {
        label: Label::new("value"),
        ty,
    };
    let Some(first) = round_trip(&field, value) else { return };
    match round_trip(&field, first.clone()) {
        Some(second) if second == first => {}
        second => panic!("{first} was re-encoded as {second:?} for {:?}", field.ty),
    }
}

/// Decodes JSON and encodes the value again. Returns `None` if the JSON cannot be decoded, or the value cannot be encoded.
fn round_trip(field: &Field, value: Value) -> Option<Value> {
    let arguments = Map::from_iter([("value".to_owned(), value)]);
    let params = std::slice::from_ref(field);
    let decoded = decode_arguments(params, &arguments, &mut NoHandles).ok()?;
    encode(&field.ty, decoded.into_iter().next()?, &mut std::iter::empty()).ok()
}

/// Generates a type from bytes. At [`DEPTH_MAX`], generates only types without inner types.
fn generate_type(data: &mut impl Iterator<Item = u8>, depth: u32) -> WitType {
    let byte = data.next().unwrap_or_default();
    let item_count = usize::from(byte >> 5) + 1;
    // The numbers below 14 stand for types without inner types.
    let number_count = if depth >= DEPTH_MAX { 14 } else { 22 };
    let mut inner = || Box::new(generate_type(data, depth + 1));
    match byte % number_count {
        0 => WitType::Bool,
        1 => WitType::S8,
        2 => WitType::U8,
        3 => WitType::S16,
        4 => WitType::U16,
        5 => WitType::S32,
        6 => WitType::U32,
        7 => WitType::S64,
        8 => WitType::U64,
        9 => WitType::F32,
        10 => WitType::F64,
        11 => WitType::Char,
        12 => WitType::String,
        13 => WitType::Bytes,
        14 => WitType::List(inner()),
        15 => WitType::Option(inner()),
        16 => WitType::Tuple((0..item_count).map(|_| *inner()).collect()),
        17 => WitType::Record(
            (0..item_count)
                .map(|index| Field {
                    label: label(index),
                    ty: *inner(),
                })
                .collect(),
        ),
        18 => {
            let payload = |index: usize| index.is_multiple_of(2).then(|| *inner());
            let payloads: Vec<_> = (0..item_count).map(payload).collect();
            let cases = payloads.into_iter().enumerate();
            let case = |(index, ty)| Case {
                label: label(index),
                ty,
            };
            WitType::Variant(cases.map(case).collect())
        }
        19 => WitType::Enum((0..item_count).map(label).collect()),
        20 => WitType::Flags((0..item_count).map(label).collect()),
        _ => WitType::Result {
            ok: Some(inner()),
            err: None,
        },
    }
}

fn label(index: usize) -> Label {
    Label::new(&format!("item-{index}"))
}

/// Checks that the CBOR decoder refuses the data or returns a value within the limits. Also checks that such a value remains
/// the same if it is encoded and decoded again.
///
/// # Panics
/// If a check fails, which means that the fuzzer has found a bug.
pub fn cbor(data: &[u8]) {
    cbor::check_round_trip(data);
}

/// The maximum number of rules of one input of [`directories`].
const RULES_MAX: usize = 4;

/// Opens the directories of rules, and decides on accesses to a guest path.
///
/// Each line of the input except the last is a rule: a path below `root`, a guest path, and `rw` for a writable directory,
/// separated by spaces. Invalid rules and those after the first four lines are skipped. The last line is the accessed
/// guest path. `links` lists the symbolic links below `root`, each with its target, as paths relative to `root`.
///
/// A rule must open the directory to which its path resolves. No link inside a writable directory may be followed, and an
/// access may be allowed only by a rule whose directory was opened.
///
/// # Panics
/// If one of these conditions is violated, which means that the fuzzer has found a bug.
#[allow(clippy::panic, reason = "a panic is how a fuzz target reports a finding")]
pub fn directories(root: &Path, links: &[(&str, &str)], data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let mut lines: Vec<&str> = text.lines().collect();
    let guest_path = lines.pop().unwrap_or_default();
    let rules: Vec<_> = lines
        .iter()
        .take(RULES_MAX)
        .filter_map(|line| parse_rule(root, line))
        .collect();
    let grantable = GrantableDirectories {
        writable: WritableRoots::of(&rules, Arc::default()),
        ..GrantableDirectories::default()
    };
    let opened = rules.iter().map(|rule| {
        let directory = OpenDirectory::open(rule, &grantable, None, &Arc::default());
        (rule, directory.map(|directory| directory.path))
    });
    let opened: Vec<RuleWithPath<'_>> = opened.collect();
    let is_writable = |directory: &Path| {
        let writable = opened.iter().filter(|(rule, _)| rule.access == AccessMode::ReadWrite);
        let mut paths = writable.filter_map(|(_, path)| path.as_ref().ok());
        paths.any(|path| directory.starts_with(path))
    };
    for (rule, path) in opened
        .iter()
        .filter_map(|(rule, path)| Some((rule, path.as_ref().ok()?)))
    {
        let (expected, followed_links) = resolve_with_links(root, links, &rule.host);
        assert_eq!(*path, expected, "{rule}");
        let mut followed_links = followed_links.iter();
        let writable_link = followed_links.find(|link| link.parent().is_some_and(is_writable));
        assert!(
            writable_link.is_none(),
            "{rule} follows {writable_link:?} under {opened:?}"
        );
    }
    check_decisions(&opened, guest_path);
}

/// A rule, and the real path of its directory or the reason why it cannot be opened.
type RuleWithPath<'r> = (&'r DirectoryRule, std::io::Result<PathBuf>);

/// Decides on reading and writing a guest path. Panics if an access is allowed although no rule with an opened directory
/// covers it.
fn check_decisions(opened: &[RuleWithPath<'_>], guest_path: &str) {
    let mut rights = EffectiveRights {
        declared: DeclaredCapabilities::from_imports(["wasi:filesystem/preopens@0.2.6"]),
        ..EffectiveRights::default()
    };
    for (rule, path) in opened {
        // `real_paths` has one entry for each guest path, so only the first rule of a guest path is used.
        if rights.rules.files.iter().any(|earlier| earlier.guest == rule.guest) {
            continue;
        }
        rights.rules.files.push(DirectoryRule::clone(rule));
        let guest = rule.guest.clone();
        match path {
            Ok(path) => drop(rights.real_paths.insert(guest, path.clone())),
            Err(error) => {
                let reason = error.to_string();
                let position = None;
                rights
                    .unenforceable_directories
                    .insert(guest, UnenforceableRule { position, reason });
            }
        }
    }
    for mode in [AccessMode::Read, AccessMode::ReadWrite] {
        let allowed = rights.require(&AccessRequest::File(guest_path, mode)).is_ok();
        let allows = |rule: &DirectoryRule| {
            let guest = Path::new(guest_path);
            let is_open = rights.real_paths.contains_key(&rule.guest);
            let has_parent_component = guest.components().any(|component| component == Component::ParentDir);
            is_open
                && !has_parent_component
                && guest.starts_with(&rule.guest)
                && (mode == AccessMode::Read || rule.access == mode)
        };
        assert!(
            !allowed || rights.rules.files.iter().any(allows),
            "{mode} {guest_path} under {opened:?}"
        );
    }
}

/// Parses a rule in the input of [`directories`].
fn parse_rule(root: &Path, line: &str) -> Option<DirectoryRule> {
    let mut parts = line.split(' ');
    let host = root.join(parts.next()?.trim_start_matches('/'));
    let guest = parts.next()?;
    let access = match parts.next() {
        Some("rw") => AccessMode::ReadWrite,
        _ => AccessMode::Read,
    };
    DirectoryRule::new(host.to_str()?, guest, access, None).ok()
}

/// Resolves the symbolic links in a path, from the list `links` instead of the file system. Returns the resolved path and the
/// links that were followed.
fn resolve_with_links(root: &Path, links: &[(&str, &str)], path: &Path) -> (PathBuf, Vec<PathBuf>) {
    let (mut resolved, mut followed_links) = (PathBuf::new(), Vec::new());
    for component in path.components() {
        resolved.push(component);
        while let Some((link, target)) = links.iter().find(|(link, _)| resolved == root.join(link)) {
            followed_links.push(root.join(link));
            resolved = root.join(target);
        }
    }
    (resolved, followed_links)
}
