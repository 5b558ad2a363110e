//! The shell commands of the README and of `docs/` work as they are written.
//!
//! The `sh` blocks of a page run in one directory, one after the other, with the built command on `PATH` and the shipped plugins
//! in `target/plugins`. Files that the page shows (a code block after a line that ends in `` `NAME`: ``) are written first.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

const TOOLWIT: &str = env!("CARGO_BIN_EXE_toolwit");

/// Blocks that contain one of these are skipped: they need the network, a clone, or minutes.
const LEFT_OUT: [&str; 2] = ["cargo ", "export OPENAI_API_KEY"];

/// A fenced block of a page.
struct Block<'a> {
    /// The last line of text before it.
    before: &'a str,
    language: &'a str,
    text: String,
}

fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap()
}

/// The plugins that `toolwit demo` builds in a clone.
const DEMO: [&str; 5] = ["calc", "customers", "quota", "redact", "text"];

/// The directory of the shipped plugins, built by the command itself. It can have other plugins too.
static PLUGINS: LazyLock<PathBuf> = LazyLock::new(|| {
    let target = Path::new(TOOLWIT).ancestors().nth(2).unwrap();
    let mut demo = Command::new(TOOLWIT);
    demo.args(["demo", "--json"])
        .current_dir(repository())
        .env("CARGO_TARGET_DIR", target);
    let output = demo.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    target.join("plugins")
});

fn blocks(page: &str) -> Vec<Block<'_>> {
    let mut blocks: Vec<Block<'_>> = Vec::new();
    let (mut before, mut is_open) = ("", false);
    for line in page.lines() {
        match line.strip_prefix("```") {
            Some(_) if is_open => is_open = false,
            Some(language) => {
                is_open = true;
                let text = String::new();
                blocks.push(Block { before, language, text });
            }
            None if is_open => {
                let block = blocks.last_mut().unwrap();
                block.text.push_str(line);
                block.text.push('\n');
            }
            None if !line.is_empty() => before = line,
            None => {}
        }
    }
    blocks
}

impl Block<'_> {
    /// Returns the path of the file that the block shows.
    fn file(&self) -> Option<&str> {
        let names = self.before.split('`').skip(1).step_by(2);
        names
            .filter(|name| name.contains('/'))
            .last()
            .filter(|_| self.language != "sh")
    }

    fn is_run(&self) -> bool {
        self.language == "sh" && !LEFT_OUT.iter().any(|word| self.text.contains(word))
    }
}

/// Returns `PATH` with the directory of the command first.
#[expect(
    clippy::disallowed_methods,
    reason = "the commands find cargo where the test found it"
)]
fn path() -> OsString {
    let own = Path::new(TOOLWIT).parent().unwrap().to_owned();
    let inherited = std::env::var_os("PATH").unwrap_or_default();
    let directories = std::iter::once(own).chain(std::env::split_paths(&inherited));
    std::env::join_paths(directories).unwrap()
}

/// Writes the files of a page and runs its commands. Returns the number of blocks that ran.
fn run_page(page: &str) -> usize {
    let text = fs::read_to_string(repository().join(page)).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path();
    let plugins = here.join("target/plugins");
    fs::create_dir_all(&plugins).unwrap();
    for name in DEMO {
        let component = format!("{name}.wasm");
        fs::copy(PLUGINS.join(&component), plugins.join(component)).unwrap();
    }
    std::os::unix::fs::symlink(repository(), here.join("toolwit")).unwrap();
    let mut count = 0;
    for block in blocks(&text) {
        if let Some(file) = block.file() {
            let file = here.join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, &block.text).unwrap();
        }
        if !block.is_run() {
            continue;
        }
        count += 1;
        let mut shell = Command::new("sh");
        shell
            .args(["-e", "-c", &block.text])
            .current_dir(here)
            .env("PATH", path())
            .env("XDG_DATA_HOME", here.join(".data"))
            .env("XDG_CONFIG_HOME", here.join(".config"))
            .env("XDG_CACHE_HOME", here.join(".cache"))
            .env_remove("CARGO_TARGET_DIR");
        let output = shell.output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{page}: {}\n{errors}", block.text);
    }
    count
}

#[test]
fn the_readme_works_as_it_is_typed() {
    assert!(run_page("README.md") >= 3, "the blocks were not found");
}

#[test]
fn the_book_works_as_it_is_typed() {
    assert!(run_page("docs/src/operating.md") >= 4, "the blocks were not found");
}

#[test]
fn the_readme_of_the_sdk_works_in_a_clone() {
    assert!(run_page("sdk/rust/README.md") >= 1, "the blocks were not found");
}

#[test]
fn blocks_are_found_with_their_files() {
    let page = "`a/b.toml`:\n\n```toml\nx = 1\n```\ntext\n```sh\ntoolwit list\n```\n```sh\ncargo run\n```\n";
    let blocks = blocks(page);
    assert_eq!(blocks[0].file(), Some("a/b.toml"));
    assert_eq!((blocks[1].file(), blocks[1].is_run()), (None, true));
    assert!(!blocks[2].is_run());
}
