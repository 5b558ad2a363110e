//! The quality of the tool search on samples of public sets. `docs/src/search.md` has the numbers of the full sets.

#[path = "../../../host/toolwit/examples/search_eval/retrieval_set.rs"]
#[expect(dead_code, reason = "the example prints more measures than are asserted here")]
mod retrieval_set;

use std::path::{Path, PathBuf};

use toolwit::registry::{Cutoff, HITS_DEFAULT};

use retrieval_set::{RetrievalSet, measure_unanswerable, read_unanswerable};

fn data_file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("data/retrieval").join(name)
}

// accept: 110, accept: 111
#[test]
fn right_tool_is_among_the_first_five_as_often_as_documented() {
    for (set, r_at_1, r_at_5) in [
        ("metatool_single", 0.41, 0.60),
        ("metatool_multi", 0.27, 0.69),
        ("bfcl_multiple", 0.75, 0.97),
    ] {
        let set_read = RetrievalSet::read(&data_file(set), &None).unwrap();
        let quality = set_read.measure(HITS_DEFAULT, Cutoff::None);
        assert!(
            quality.r_at_1 >= r_at_1 && quality.r_at_5 >= r_at_5,
            "{set}: {quality:?}"
        );
    }
}

// accept: 111
#[test]
fn automatic_search_is_quiet_when_no_tool_fits_and_keeps_most_right_tools() {
    let unanswerable = read_unanswerable(&data_file("no_answer.jsonl"), &None).unwrap();
    let (lenient, strict) = (Cutoff::Relative, Cutoff::Confident);
    let quiet = measure_unanswerable(&unanswerable, strict);
    assert!(quiet.silent >= 0.8, "{quiet:?}");
    for (name, kept) in [
        ("metatool_single", 0.9),
        ("metatool_multi", 0.9),
        ("bfcl_multiple", 0.97),
    ] {
        let set = RetrievalSet::read(&data_file(name), &None).unwrap();
        let (all, strict) = (set.measure(HITS_DEFAULT, lenient), set.measure(HITS_DEFAULT, strict));
        assert!(strict.precision >= 1.25 * all.precision, "{name}: {all:?} {strict:?}");
        assert!(strict.r_at_5 >= kept * all.r_at_5, "{name}: {all:?} {strict:?}");
    }
}
