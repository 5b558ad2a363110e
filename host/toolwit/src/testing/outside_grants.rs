//! Rejects the grants of test cases that reach outside of the directory of their `tests.toml`.

use std::path::Path;

use super::{TestCase, TestSuite};
use toolwit_core::{Error, ErrorKind, Phase};
use toolwit_sandbox::grants::{DirectoryRule, GrantRules};

impl TestSuite {
    /// Checks that no case has a grant that reaches outside of the directory of the file. The author of the cases may
    /// be untrusted, so a grant that reaches outside needs the consent of the user.
    ///
    /// The following grants reach outside: directories of the host that are not inside the directory of the file,
    /// variables and secrets of the host, and HTTP requests.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`] if a grant reaches outside. The message lists all of these grants.
    pub fn require_grants_inside(&self) -> Result<(), Error> {
        require_all_inside(&self.cases)
    }
}

impl TestCase {
    /// Checks the grants of one case like [`TestSuite::require_grants_inside`].
    pub(super) fn require_grants_inside(&self) -> Result<(), Error> {
        require_all_inside(std::slice::from_ref(self))
    }

    /// Describes the rules of this case that reach outside of its directory.
    fn outside_rules(&self) -> impl Iterator<Item = String> {
        let rules = self
            .grants
            .iter()
            .map(|grant| rules_outside_of(&self.directory, &grant.rules));
        rules.flat_map(|rules| rules.describe())
    }
}

fn require_all_inside(cases: &[TestCase]) -> Result<(), Error> {
    let rules = cases
        .iter()
        .flat_map(|case| case.outside_rules().map(|rule| (&case.name, rule)));
    let lines = rules.map(|(case, rule)| {
        // Line breaks are replaced, so that one rule cannot look like two.
        let line = format!("{rule} (test `{case}`)").replace(['\r', '\n'], "⏎");
        format!("\n  {line}")
    });
    let lines: Vec<_> = lines.collect();
    if lines.is_empty() {
        return Ok(());
    }
    let message = format!(
        "the tests have grants that reach outside of their directory:{}",
        lines.concat()
    );
    Err(Error::new(ErrorKind::Configuration, Phase::Registry, message))
}

/// Returns those rules that reach outside of a directory.
fn rules_outside_of(directory: &Path, rules: &GrantRules) -> GrantRules {
    // The pattern names each field, so that a new kind of rule does not compile until it is handled here.
    let GrantRules {
        http,
        files,
        env,
        secrets,
        // These rules give access to nothing outside of the directory. The values of `config` are in the file.
        config: _,
        clock: _,
        random: _,
        // The host of a case has no other plugin. Its store, context and blackboard exist only during the test run.
        keyvalue: _,
        tools: _,
        context: _,
        blackboard: _,
        // A case has no person who could be asked.
        ask: _,
    } = rules.clone();
    GrantRules {
        http,
        files: files.into_iter().filter(|rule| !is_inside(rule, directory)).collect(),
        env: env.into_iter().filter(|rule| rule.value.is_none()).collect(),
        secrets,
        ..GrantRules::default()
    }
}

/// Returns whether the granted directory of a rule is inside `directory`, after links are resolved. A directory that does
/// not exist is not inside.
fn is_inside(rule: &DirectoryRule, directory: &Path) -> bool {
    let canonical = |path: &Path| std::fs::canonicalize(path).ok();
    let (granted, directory) = (canonical(&rule.host), canonical(directory));
    directory.is_some_and(|directory| granted.is_some_and(|granted| granted.starts_with(directory)))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::fs;

    use super::*;

    /// Returns the message with which the grants of a case in `directory` are refused, or `None` if they are accepted.
    fn refusal(directory: &Path, grants: &str) -> Option<String> {
        let file = directory.join("tests.toml");
        fs::write(
            &file,
            format!("[[test]]\nname = \"a\"\ntool = \"b\"\ngrants = {{ {grants} }}\n"),
        )
        .unwrap();
        let suite = TestSuite::read(&file, "demo").unwrap();
        let error = suite.require_grants_inside().err()?;
        Some(error.message.to_string())
    }

    // attack: J12
    #[test]
    fn only_grants_inside_of_the_directory_of_the_cases_need_no_consent() {
        let root = tempfile::tempdir().unwrap();
        let (work, outside) = (root.path().join("work"), root.path().join("outside"));
        fs::create_dir_all(work.join("data")).unwrap();
        fs::create_dir(&outside).unwrap();
        let directory = |host: &str| format!("files = [{{ host = {host:?}, guest = \"/data\", access = \"read\" }}]");
        let absolute = |path: &Path| directory(path.to_str().unwrap());
        for grants in [
            &*directory("./data"),
            &directory("./"),
            &absolute(&work.join("data")),
            "env = [{ name = \"LANG\", value = \"C\" }], config = { greeting = \"a\" }, keyvalue = { quota = \"1MiB\" }",
            "tools = [\"demo#b\"], context = [\"user\"], blackboard = \"read\"",
        ] {
            assert_eq!(refusal(&work, grants), None, "{grants}");
        }
        for (grants, listed) in [
            (&*directory("./missing"), "files"),
            (&absolute(&outside), "files"),
            (&absolute(root.path()), "files"),
            ("env = [{ name = \"OPENAI_API_KEY\" }]", "env OPENAI_API_KEY"),
            (
                "secrets = [{ name = \"KEY\", host = \"example.com\", bearer = true }]",
                "secret",
            ),
            (
                "http = [{ scheme = \"http\", host = \"127.0.0.1\", methods = [\"GET\"] }]",
                "http",
            ),
        ] {
            let refusal = refusal(&work, grants).unwrap();
            assert!(
                refusal.contains(listed) && refusal.contains("test `a`"),
                "{grants}: {refusal}"
            );
        }
    }

    // attack: J12
    #[cfg(unix)]
    #[test]
    fn a_link_out_of_the_directory_of_the_cases_needs_consent() {
        let root = tempfile::tempdir().unwrap();
        let (work, outside) = (root.path().join("work"), root.path().join("outside"));
        for directory in [&work, &outside] {
            fs::create_dir(directory).unwrap();
        }
        let grant = "files = [{ host = \"./data\", guest = \"/data\" }]";
        std::os::unix::fs::symlink(&outside, work.join("data")).unwrap();
        assert!(refusal(&work, grant).is_some());
        fs::remove_file(work.join("data")).unwrap();
        fs::create_dir(work.join("real")).unwrap();
        std::os::unix::fs::symlink("real", work.join("data")).unwrap();
        assert_eq!(refusal(&work, grant), None);
    }
}
