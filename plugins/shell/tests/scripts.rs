//! Scripts over a temporary directory.

#![allow(clippy::panic, clippy::unwrap_used)]

use std::fs;

use shell::{Outcome, Shell};
use tempfile::TempDir;

struct ScriptDirectory(TempDir);

impl ScriptDirectory {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(directory.path().join("src")).unwrap();
        fs::write(directory.path().join("a.txt"), "pear 3\napple 10\npear 1\n").unwrap();
        fs::write(directory.path().join("src/b.rs"), "fn b() {}\n// TODO\n").unwrap();
        fs::write(directory.path().join("src/c d.rs"), "x\n").unwrap();
        Self(directory)
    }

    fn run(&self, script: &str) -> Outcome {
        let mut shell = Shell::new(self.0.path().to_owned(), vec![self.0.path().display().to_string()]);
        shell
            .run(script, "")
            .unwrap_or_else(|error| panic!("{script}: {error}"))
    }

    /// Returns the output of a script that succeeds.
    fn stdout(&self, script: &str) -> String {
        let outcome = self.run(script);
        assert_eq!((outcome.status, outcome.stderr.as_str()), (0, ""), "{script}");
        outcome.stdout
    }
}

#[test]
fn pipes_redirects_and_conditions_work() {
    let directory = ScriptDirectory::new();
    assert_eq!(
        directory.stdout("cut -d' ' -f1 a.txt | sort | uniq -c | sort -rn | head -n 1"),
        "      2 pear\n"
    );
    assert_eq!(directory.stdout("echo one > n; echo two >> n; cat < n"), "one\ntwo\n");
    assert_eq!(directory.stdout("false || echo no && echo yes; ! false"), "no\nyes\n");
    assert_eq!(directory.stdout("cat missing 2>/dev/null || echo $?"), "1\n");
    assert_eq!(directory.stdout("cat missing 2>&1 | grep -c 'no such'"), "1\n");
    assert_eq!(
        directory.stdout("cat <<'E' | tr a-z A-Z\na $x\nE\necho end"),
        "A $X\nend\n"
    );
    assert_eq!(directory.stdout("x=1\ncat <<E\n$x\nE"), "1\n");
}

#[test]
fn words_are_quoted_expanded_and_globbed() {
    let directory = ScriptDirectory::new();
    assert_eq!(
        directory.stdout("x='a  b'; echo $x \"$x\" '$x' ${y:-z} \\$x"),
        "a b a  b $x z $x\n"
    );
    assert_eq!(
        directory.stdout("echo src/*.rs 'src/*.rs' *.none"),
        "src/b.rs src/c d.rs src/*.rs *.none\n"
    );
    assert_eq!(directory.stdout("cat src/*.rs | wc -l"), "3\n");
    assert_eq!(
        directory.stdout("echo \"n=$(wc -l < a.txt)\" $(echo a; echo b) # comment"),
        "n=3 a b\n"
    );
    assert_eq!(directory.stdout("printf '%s=%03d\\n' a 1 b 22"), "a=001\nb=022\n");
}

#[test]
fn lines_are_filtered_and_edited() {
    let directory = ScriptDirectory::new();
    assert_eq!(directory.stdout("sort -k2 -n a.txt | tail -1"), "apple 10\n");
    assert_eq!(directory.stdout("sed -n '2p' a.txt"), "apple 10\n");
    assert_eq!(
        directory.stdout("sed -E 's/([a-z]+) ([0-9]+)/\\2 \\1/; /^10/d' a.txt"),
        "3 pear\n1 pear\n"
    );
    assert_eq!(
        directory.stdout("sed 's/p\\(e\\)/[\\1&]/' a.txt | head -1"),
        "[epe]ar 3\n"
    );
    assert_eq!(
        directory.stdout("sed -i 's|pear|plum|g' a.txt; grep -c plum a.txt"),
        "2\n"
    );
    assert_eq!(directory.stdout("grep -rn TODO ."), "./src/b.rs:2:// TODO\n");
    assert_eq!(directory.stdout("grep -oE '[0-9]+' a.txt | tr '\\n' ,"), "3,10,1,");
    assert_eq!(directory.stdout("echo aabbc | tr -s ab | tr -d c"), "ab\n");
    assert_eq!(
        directory.stdout("seq 5 | head -n -2 | tail -n +2 | xargs -n 1 echo x"),
        "x 2\nx 3\n"
    );
}

#[test]
fn files_are_found_and_managed() {
    let directory = ScriptDirectory::new();
    assert_eq!(
        directory.stdout("find . -name '*.rs' -type f"),
        "./src/b.rs\n./src/c d.rs\n"
    );
    assert_eq!(
        directory.stdout("mkdir -p x/y && cp -r src x && mv a.txt x/y && ls x x/y"),
        "x:\nsrc\ny\nx/y:\na.txt\n"
    );
    assert_eq!(
        directory.stdout("cd src && pwd | xargs basename; test -f b.rs && [ ! -e nothing ]"),
        "src\n"
    );
    assert_eq!(directory.stdout("rm -rf x src/b.rs nothing; ls src"), "c d.rs\n");
    assert_eq!(directory.run("rm src").status, 1);
    assert_eq!(directory.run("rm -rf .").stderr, "rm: .: is a granted directory\n");
    assert_eq!(directory.run("cp -r src src/inner").status, 1);
}

#[test]
fn syntax_errors_are_reported_before_anything_runs() {
    let directory = ScriptDirectory::new();
    let mut shell = Shell::new(directory.0.path().to_owned(), Vec::new());
    for script in [
        "rm a.txt; echo 'x",
        "rm a.txt; for x in 1; do echo",
        "rm a.txt |",
        "rm a.txt &",
        "rm a.txt; (ls",
        "rm a.txt; echo $((1+1)",
        "rm a.txt; cat <<E\nx",
        "rm a.txt; && ls",
    ] {
        assert!(shell.run(script, "").is_err(), "{script}");
    }
    assert!(directory.0.path().join("a.txt").is_file());
    assert_eq!(directory.run("curl example.com").status, 127);
    assert!(directory.run("ls --color").stderr.contains("not supported"));
    let deep = format!("echo {}x{}", "$(echo ".repeat(40), ")".repeat(40));
    assert!(shell.run(&deep, "").unwrap_err().contains("deeper"));
}

#[test]
fn redirects_are_applied_in_their_order() {
    let directory = ScriptDirectory::new();
    assert_eq!(
        directory.stdout("{ echo a; cat missing; } > both 2>&1 || cat both | wc -l"),
        "2\n"
    );
    assert_eq!(
        directory
            .run("{ echo a; cat missing; } 2>&1 > one")
            .stdout
            .lines()
            .count(),
        1
    );
    assert_eq!(
        directory.stdout("for f in src/*; do if [ -f \"$f\" ]; then echo \"$f\"; fi; done > list; cat list"),
        "src/b.rs\nsrc/c d.rs\n"
    );
    assert_eq!(
        directory.stdout("while read -r name n; do echo $((n * 2)); done < a.txt"),
        "6\n20\n2\n"
    );
    assert_eq!(
        directory.stdout("cat <<< \"a $(echo b)\"; echo x >| n; echo y 1>> n; cat n"),
        "a b\nx\ny\n"
    );
    assert_eq!(
        directory.stdout("printf 'echo sourced $x' > s; x=1; . ./s"),
        "sourced 1\n"
    );
    assert_eq!(directory.run("if true; then echo a; fi < missing").status, 1);
}
