//! The convention for setters: a builder's setter has the name of its setting, and a finished value has `with_…` methods.

use crate::files::{TextFile, read_below};
use crate::source::is_identifier;

/// Types that only collect settings without being named `…Builder`: each ends in a run.
const COLLECTORS: [&str; 9] = [
    "Build",
    "Expectation",
    "Installation",
    "LoginRequest",
    "Packing",
    "ScriptedModel",
    "ScriptedTurn",
    "TextMatch",
    "UserTurn",
];

/// A public method that takes `self` and returns it.
struct Setter<'s> {
    owner: &'s str,
    name: &'s str,
    /// The number of its line, from 1.
    line: usize,
    /// Whether its body changes a field with its own name.
    sets_its_field: bool,
}

/// Returns the type of an `impl` block without a trait.
fn impl_type(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("impl")?;
    if rest.contains(" for ") {
        return None;
    }
    // The parameters of `impl<T: Bound<X>>` end before the first space outside brackets.
    let mut depth = 0;
    let start = rest.find(|character| {
        depth += i32::from(character == '<') - i32::from(character == '>');
        depth == 0 && character == ' '
    })?;
    let name = rest[start..].trim_start();
    Some(&name[..name.find(|character| !is_identifier(character)).unwrap_or(name.len())])
}

/// Returns the public methods of a file that take `self` and at least one argument.
fn setters(source: &str) -> Vec<Setter<'_>> {
    let lines: Vec<&str> = source.lines().collect();
    let mut setters = Vec::new();
    let mut current = None;
    for (index, line) in lines.iter().enumerate() {
        if line.starts_with("impl") {
            current = impl_type(line);
        }
        let Some((Some(owner), rest)) = line.strip_prefix("    pub fn ").map(|rest| (current, rest)) else {
            continue;
        };
        let name = &rest[..rest.find(|character| !is_identifier(character)).unwrap_or(rest.len())];
        if !(rest.contains("(mut self, ") || rest.contains("(self, ")) {
            continue;
        }
        let field = format!("self.{name}");
        let mut body = lines[index..].iter().take_while(|line| **line != "    }");
        let sets_its_field = body.any(|line| {
            let rest = line.trim_start().strip_prefix(&field);
            rest.is_some_and(|rest| rest.starts_with([' ', '.']) || rest.is_empty())
        });
        setters.push(Setter {
            owner,
            name,
            line: index + 1,
            sets_its_field,
        });
    }
    setters
}

fn complaints(file: &TextFile) -> Vec<String> {
    let complaint = |setter: Setter<'_>| {
        let Setter { owner, name, line, .. } = setter;
        let collects = owner.ends_with("Builder") || COLLECTORS.contains(&owner);
        let at = file.at(line);
        if owner.ends_with("Builder") && name.starts_with("with_") {
            Some(format!("{at}: `{owner}::{name}`: a builder's setter has no `with_`"))
        } else if !collects && setter.sets_its_field {
            Some(format!("{at}: `{owner}::{name}`: write `with_{name}`"))
        } else {
            None
        }
    };
    setters(&file.text).into_iter().filter_map(complaint).collect()
}

#[test]
fn setters_of_builders_are_named_after_settings_and_those_of_values_begin_with_with() {
    let sources = read_below("host");
    let sources = sources.iter().filter(|file| file.has_extension("rs"));
    let complaints: Vec<String> = sources.flat_map(complaints).collect();
    assert!(complaints.is_empty(), "\n{}", complaints.join("\n"));
}

#[test]
fn a_setter_against_the_convention_is_found() {
    let source = "\
impl<T: Into<X>> Query<T> {
    pub fn hits_max(mut self, hits_max: usize) -> Self {
        self.hits_max = hits_max;
        self
    }

    pub fn and(mut self, other: Self) -> Self {
        self.parts.extend(other.parts);
        self
    }
}

impl HostBuilder {
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }
}
";
    let file = TextFile::made_up("a.rs", source);
    assert_eq!(
        complaints(&file),
        [
            "a.rs:2: `Query::hits_max`: write `with_hits_max`",
            "a.rs:14: `HostBuilder::with_limits`: a builder's setter has no `with_`",
        ]
    );
}
