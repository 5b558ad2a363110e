//! `toolwit vectors`, and the commands that search by meaning.

#[path = "../../../../tests/src/word_vectors.rs"]
#[allow(dead_code, unreachable_pub, reason = "other tests use the rest")]
mod word_vectors;

use insta::assert_snapshot;

use self::word_vectors::{synonyms, write};
use crate::support::{Run, Workspace};

/// A component with two tools.
const POST: &str = r#"(component
    (core module $m (func (export "f") (param i32) (result i32) local.get 0))
    (core instance $i (instantiate $m))
    (func (export "send-email") (param "number" u32) (result u32) (canon lift (core func $i "f")))
    (func (export "get-forecast") (param "number" u32) (result u32) (canon lift (core func $i "f"))))"#;

fn workspace() -> Workspace {
    let workspace = Workspace::with("post", POST);
    write(&workspace.path().join("model"), &synonyms());
    workspace
}

fn normalized_output(run: &Run, workspace: &Workspace) -> String {
    run.to_string().replace(workspace.path().to_str().unwrap(), "…")
}

#[test]
fn tool_is_found_by_its_meaning_only_while_there_are_word_vectors() {
    let workspace = workspace();
    let found = || workspace.run(&["search", "do I need an umbrella?"]).stdout;
    assert_eq!(found(), "", "no word in common");
    assert_snapshot!(normalized_output(&workspace.run(&["vectors", "show"]), &workspace), @"
    exit: 0

    --- stderr
    hint: there are no word vectors; `toolwit vectors add DIR` adds the word vectors of a directory
    ");
    assert_snapshot!(normalized_output(&workspace.run(&["vectors", "add", "model"]), &workspace), @"
    exit: 0

    --- stdout
    16 word vectors with 4 components, in …/.data/toolwit/vectors
    ");
    assert!(found().starts_with("get_forecast"), "{}", found());
    let by_name = workspace.run(&["search", "send_email", "umbrella"]).stdout;
    assert!(by_name.starts_with("send_email"), "an exact name wins: {by_name}");
    assert!(workspace.run(&["doctor"]).stdout.contains("16 word vectors"));
    let (_, document) = workspace.json(&["vectors", "show", "--json"]);
    assert_eq!((&document["vectors"], &document["components"]), (&16.into(), &4.into()));
    assert_snapshot!(normalized_output(&workspace.run(&["vectors", "remove"]), &workspace), @"
    exit: 0

    --- stderr
    removed the word vectors in …/.data/toolwit/vectors
    ");
    assert_eq!(found(), "", "off without the files");
}

#[test]
fn files_that_are_not_word_vectors_are_refused_with_their_path() {
    let workspace = workspace()
        .file("bad/a.safetensors", "none")
        .file("bad/tokenizer.json", "{}");
    assert_snapshot!(normalized_output(&workspace.run(&["vectors", "add", "bad"]), &workspace), @"
    exit: 2

    --- stderr
    error: `bad/a.safetensors` cannot be used for word vectors: it is not a safetensors file
    hint: use the two files of the Python package wordllama, or its unpacked directory: `pip install --no-deps --target DIR wordllama`
    ");
    assert_snapshot!(normalized_output(&workspace.run(&["vectors", "add", "wordllama.whl"]), &workspace), @"
    exit: 2

    --- stderr
    error: `wordllama.whl` cannot be used for word vectors: it is an archive
    hint: unpack it, and pass its directory
    ");
}

#[test]
fn damaged_word_vectors_are_reported_and_the_search_compares_words() {
    let workspace = workspace();
    assert_eq!(workspace.run(&["vectors", "add", "model"]).code, Some(0));
    let workspace = workspace.file(".data/toolwit/vectors/tokenizer.json", "{}");
    let run = workspace.run(&["search", "email"]);
    assert!(run.stdout.starts_with("send_email"), "{run}");
    assert!(
        run.stderr.contains("tokenizer.json") && run.stderr.contains("compares words only"),
        "{run}"
    );
    let doctor = workspace.run(&["doctor"]).stdout;
    assert!(
        doctor.contains("warning") && doctor.contains("toolwit vectors add"),
        "{doctor}"
    );
}
