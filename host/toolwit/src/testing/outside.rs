//! The grants of test cases that reach outside of the directory of the cases.

use std::path::Path;

use super::{TestCase, TestSuite};
use toolwit_core::{Error, ErrorKind, Phase};
use toolwit_sandbox::grants::{DirectoryRule, GrantRules};

impl TestSuite {
    /// Checks that no case has a grant that reaches outside of the directory of the file. The author of the cases may
    /// be untrusted, so such grants need the consent of the user.
    ///
    /// Such grants are directories of the host that are not inside that directory, variables and secrets of the host,
    /// and requests to the network.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`]. The message lists all of these grants.
    pub fn require_grants_inside(&self) -> Result<(), Error> {
        require_inside(&self.cases)
    }
}

impl TestCase {
    /// Checks the grants of one case like [`TestSuite::require_grants_inside`].
    pub(super) fn require_grants_inside(&self) -> Result<(), Error> {
        require_inside(std::slice::from_ref(self))
    }

    fn outside_grants(&self) -> impl Iterator<Item = String> {
        let rules = self
            .grants
            .iter()
            .map(|grant| outside_rules(&grant.rules, &self.directory));
        rules.flat_map(|rules| rules.describe())
    }
}

fn require_inside(cases: &[TestCase]) -> Result<(), Error> {
    let grants = cases
        .iter()
        .flat_map(|case| case.outside_grants().map(|grant| (&case.name, grant)));
    let lines = grants.map(|(case, grant)| {
        // In one line, so that one grant cannot look like two.
        let line = format!("{grant} (test `{case}`)").replace(['\r', '\n'], "⏎");
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

/// Returns the rules that reach outside of a directory.
fn outside_rules(rules: &GrantRules, directory: &Path) -> GrantRules {
    // Each field is named, so that a new kind of rule must be handled here.
    let GrantRules {
        http,
        files,
        env,
        secrets,
        // These rules give access to nothing outside of the directory. The values of `config` are in the file.
        config: _,
        clock: _,
        random: _,
        // The host of a case has no other plugin, and its store, context and blackboard end with it.
        keyvalue: _,
        tools: _,
        context: _,
        blackboard: _,
    } = rules.clone();
    GrantRules {
        http,
        files: files.into_iter().filter(|rule| !is_inside(rule, directory)).collect(),
        env: env.into_iter().filter(|rule| rule.value.is_none()).collect(),
        secrets,
        ..GrantRules::default()
    }
}

/// Returns whether the directory of a rule is inside another directory, after links are resolved. A directory that does
/// not exist is not inside.
fn is_inside(rule: &DirectoryRule, directory: &Path) -> bool {
    let canonical = |path: &Path| std::fs::canonicalize(path).ok();
    let (rule, directory) = (canonical(&rule.host), canonical(directory));
    directory.is_some_and(|directory| rule.is_some_and(|rule| rule.starts_with(directory)))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::fs;

    use super::*;

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
