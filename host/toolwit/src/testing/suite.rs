//! The test cases of a file.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;

use super::Expectation;
use toolwit_core::file::read_text_file;
use toolwit_core::{Arguments, Error, ErrorKind, Phase};
use toolwit_sandbox::NewGrant;
use toolwit_sandbox::grants::Grants;

/// Maximum size of a file with test cases, in bytes.
const SUITE_BYTES_MAX: u64 = 4 << 20;

/// The test cases of a plugin.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TestSuite {
    /// The cases, in the order of the file.
    pub cases: Vec<TestCase>,
}

/// A test case: calls in one conversation.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TestCase {
    /// The name. It states the behaviour that the case checks.
    pub name: String,
    /// The grants of the plugin.
    pub grants: Vec<NewGrant>,
    /// The grants as the text of a grants file, or an empty text. Cases with the same text have the same grants.
    pub(super) grants_text: String,
    /// The directory of the file with the case.
    pub(super) directory: PathBuf,
    /// The calls.
    pub calls: Vec<TestCall>,
}

/// A call of a test case.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct TestCall {
    /// The name or id of the tool.
    pub tool: String,
    /// The arguments.
    pub arguments: Arguments,
    /// The expected outcome.
    pub expectation: Expectation,
}

/// The content of a `tests.toml`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SuiteFormat {
    #[serde(default)]
    grants: toml::Table,
    #[serde(default)]
    test: Vec<CaseFormat>,
}

/// A table `[[test]]`. It repeats the fields of [`CallFormat`] instead of a field with `#[serde(flatten)]`, because a
/// flattened struct accepts unknown keys.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CaseFormat {
    name: Option<String>,
    grants: Option<toml::Table>,
    tool: Option<String>,
    #[serde(default)]
    arguments: Arguments,
    result: Option<Value>,
    contains: Option<String>,
    error: Option<String>,
    #[serde(default)]
    calls: Vec<CallFormat>,
}

/// A table `[[test.calls]]`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CallFormat {
    tool: String,
    #[serde(default)]
    arguments: Arguments,
    result: Option<Value>,
    contains: Option<String>,
    error: Option<String>,
}

impl TestSuite {
    /// Reads a file of test cases. `plugin` is the name of the plugin to which the grants of the cases apply.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`] if the file cannot be read, is invalid or has no case.
    pub fn read(path: &Path, plugin: &str) -> Result<Self, Error> {
        let invalid = |message: String| configuration_error(format!("`{}`: {message}", path.display()));
        let text = read_text_file(path, SUITE_BYTES_MAX).map_err(|error| {
            invalid(format!("it cannot be read: {error}")).with_suggestion("write the test cases of the plugin there")
        })?;
        let directory = path.parent().filter(|directory| !directory.as_os_str().is_empty());
        Self::parse(&text, plugin, directory.unwrap_or(Path::new("."))).map_err(invalid)
    }

    /// Parses a file of test cases. A granted directory whose `host` starts with `./` is relative to `directory`.
    fn parse(text: &str, plugin: &str, directory: &Path) -> Result<Self, String> {
        let suite: SuiteFormat = toml::from_str(text).map_err(|error| error.to_string().trim_end().to_owned())?;
        if suite.test.is_empty() {
            return Err("it has no `[[test]]`".to_owned());
        }
        let cases = suite.test.into_iter().enumerate().map(|(index, case)| {
            let name = case.name.clone().unwrap_or_else(|| format!("test {}", index + 1));
            let grants = case.grants.clone().unwrap_or_else(|| suite.grants.clone());
            case.into_case(grants, plugin, directory)
                .map(|case| TestCase {
                    name: name.clone(),
                    ..case
                })
                .map_err(|message| format!("test `{name}`: {message}"))
        });
        Ok(Self {
            cases: cases.collect::<Result<_, _>>()?,
        })
    }
}

impl CaseFormat {
    /// Converts the case. Leaves its name empty; the caller sets the name. The error is the reason why the case is invalid.
    fn into_case(self, grants: toml::Table, plugin: &str, directory: &Path) -> Result<TestCase, String> {
        let calls = match (self.tool, self.calls.is_empty()) {
            (Some(tool), true) => vec![CallFormat {
                tool,
                arguments: self.arguments,
                result: self.result,
                contains: self.contains,
                error: self.error,
            }],
            (None, false) if self.result.is_none() && self.contains.is_none() && self.error.is_none() => self.calls,
            (None, false) => return Err("the expectations of a case with `calls` must be in the calls".to_owned()),
            (Some(_), false) => return Err("`tool` and `calls` exclude each other".to_owned()),
            (None, true) => return Err("it needs a `tool` or `[[test.calls]]`".to_owned()),
        };
        let (grants, grants_text) = parse_grants(grants, plugin, directory)?;
        Ok(TestCase {
            name: String::new(),
            grants,
            grants_text,
            directory: directory.to_owned(),
            calls: calls.into_iter().map(CallFormat::into_call).collect::<Result<_, _>>()?,
        })
    }
}

impl CallFormat {
    fn into_call(self) -> Result<TestCall, String> {
        let expectation = match (self.result, self.contains, self.error) {
            (None, None, None) => Expectation::Success,
            (Some(result), None, None) => Expectation::Result(result),
            (None, Some(text), None) => Expectation::Contains(text),
            (None, None, Some(text)) => Expectation::Error(text),
            _ => return Err("`result`, `contains` and `error` exclude each other".to_owned()),
        };
        Ok(TestCall {
            tool: self.tool,
            arguments: self.arguments,
            expectation,
        })
    }
}

/// Converts a table `grants` to a grant of the plugin. Returns the grant and the text of a grants file with this grant. Both
/// are empty if the table is empty.
fn parse_grants(mut rules: toml::Table, plugin: &str, directory: &Path) -> Result<(Vec<NewGrant>, String), String> {
    if rules.is_empty() {
        return Ok((Vec::new(), String::new()));
    }
    for key in ["plugin", "any-version", "digest", "scope", "issued"] {
        if rules.contains_key(key) {
            return Err(format!(
                "`grants.{key}` cannot be set: the grants of a test apply to every version of its plugin"
            ));
        }
    }
    make_absolute(&mut rules, directory)?;
    rules.insert("plugin".to_owned(), plugin.into());
    rules.insert("any-version".to_owned(), true.into());
    let mut file = toml::Table::new();
    file.insert("version".to_owned(), 1.into());
    file.insert("grant".to_owned(), vec![toml::Value::Table(rules)].into());
    let text = file.to_string();
    let grants = Grants::parse(text.as_bytes()).map_err(|error| format!("`grants`: {error}"))?;
    let grants = grants.grants.into_iter().map(|grant| NewGrant {
        plugin: grant.plugin,
        version: grant.version,
        scope: grant.scope,
        rules: grant.rules,
    });
    Ok((grants.collect(), text))
}

/// Makes granted directories that start with `./` absolute, relative to `directory`.
fn make_absolute(rules: &mut toml::Table, directory: &Path) -> Result<(), String> {
    let Some(toml::Value::Array(files)) = rules.get_mut("files") else {
        return Ok(());
    };
    for rule in files {
        let Some(toml::Value::String(host)) = rule.get_mut("host") else {
            continue;
        };
        if let Some(relative) = host.strip_prefix("./") {
            let absolute = std::path::absolute(directory.join(relative)).map_err(|error| error.to_string())?;
            *host = absolute.to_string_lossy().into_owned();
        }
    }
    Ok(())
}

fn configuration_error(message: String) -> Error {
    Error::new(ErrorKind::Configuration, Phase::Registry, message)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<TestSuite, String> {
        TestSuite::parse(text, "demo", Path::new("/work"))
    }

    #[test]
    fn cases_are_parsed_with_their_calls_grants_and_expectations() {
        let suite = parse(
            r#"
            grants = { env = [{ name = "HOME" }] }

            [[test]]
            name = "one"
            tool = "add"
            arguments = { a = 1, b = [true] }
            result = 3

            [[test]]
            grants = {}
            [[test.calls]]
            tool = "open"
            [[test.calls]]
            tool = "read"
            error = "denied"
            "#,
        )
        .unwrap();
        let [one, two] = suite.cases.as_slice() else {
            unreachable!()
        };
        assert_eq!((one.name.as_str(), one.grants.len(), one.calls.len()), ("one", 1, 1));
        assert_eq!(one.calls[0].expectation, Expectation::Result(3.into()));
        assert_eq!((two.name.as_str(), two.grants.len(), two.calls.len()), ("test 2", 0, 2));
        assert_eq!(two.calls[0].expectation, Expectation::Success);
        assert_eq!(two.calls[1].expectation, Expectation::Error("denied".to_owned()));
    }

    #[test]
    fn an_ambiguous_or_misspelt_case_is_refused() {
        for (text, why) in [
            ("", "no `[[test]]`"),
            ("[[test]]\nname = \"a\"\n", "needs a `tool`"),
            ("[[test]]\ntool = \"a\"\nresults = 1\n", "unknown field `results`"),
            (
                "[[test]]\ntool = \"a\"\nresult = 1\nerror = \"b\"\n",
                "exclude each other",
            ),
            (
                "[[test]]\ntool = \"a\"\n[[test.calls]]\ntool = \"b\"\n",
                "exclude each other",
            ),
            (
                "[[test]]\ntool = \"a\"\ngrants = { htpp = [] }\n",
                "unknown field `htpp`",
            ),
            (
                "[[test]]\ntool = \"a\"\ngrants = { plugin = \"b\" }\n",
                "`grants.plugin`",
            ),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
    }
}
