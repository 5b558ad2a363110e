//! Tests of word vectors: meaning, and files that are damaged or hostile.
#![allow(clippy::unwrap_used, clippy::panic)]

#[path = "../../../../tests/src/word_vectors.rs"]
#[allow(dead_code, unreachable_pub, missing_docs, reason = "other tests use the rest")]
mod word_vectors;

use std::fs::{self, File};
use std::path::Path;

use proptest::prelude::*;
use serde_json::json;

use self::word_vectors::{safetensors, synonyms, tokenizer, with_header, write};
use super::*;
use toolwit_core::limits::{TOKENIZER_BYTES_MAX, VECTORS_BYTES_MAX};
use toolwit_core::{Error, ErrorKind};

fn files(directory: &Path) -> VectorFiles {
    VectorFiles::find(&[directory.to_owned()]).unwrap()
}

fn example() -> (tempfile::TempDir, WordVectors) {
    let directory = tempfile::tempdir().unwrap();
    write(directory.path(), &synonyms());
    let vectors = files(directory.path()).read().unwrap();
    (directory, vectors)
}

/// Returns the error for two files with this content.
fn read_error(vectors: &[u8], tokenizer: &[u8]) -> Error {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("a.safetensors"), vectors).unwrap();
    fs::write(directory.path().join("tokenizer.json"), tokenizer).unwrap();
    files(directory.path()).read().unwrap_err()
}

#[test]
fn vector_of_a_text_is_the_sum_of_its_words() {
    let (_directory, vectors) = example();
    assert_eq!((vectors.count(), vectors.width()), (16, 4));
    assert_eq!(vectors.embed("The weather"), Some(vec![1.0, 0.0, 0.0, 0.0]));
    assert_eq!(vectors.embed("getWeather_mail RAIN"), Some(vec![2.0, 1.0, 0.0, 0.0]));
    for unknown in ["", "the of and", "qqq 天気", "🎉"] {
        assert_eq!(vectors.embed(unknown), None, "{unknown}");
    }
}

#[test]
fn unknown_word_is_split_into_its_longest_pieces() {
    let directory = tempfile::tempdir().unwrap();
    let pieces = ["▁air", "▁airport", "quality", "qual", "▁", "é"];
    let rows: Vec<Vec<f32>> = (0..pieces.len()).map(|row| vec![10_f32.powi(row as i32)]).collect();
    let rows: Vec<&[f32]> = rows.iter().map(Vec::as_slice).collect();
    fs::write(directory.path().join("a.safetensors"), safetensors(&rows)).unwrap();
    fs::write(directory.path().join("tokenizer.json"), tokenizer(&pieces).to_string()).unwrap();
    let vectors = files(directory.path()).read().unwrap();
    let sum = |word: &str| vectors.embed(word).map(|vector| vector[0]);
    assert_eq!(sum("airport"), Some(10.0));
    assert_eq!(sum("airqualityé"), Some(1.0 + 100.0 + 100_000.0));
    assert_eq!(sum("airxqual"), Some(1.0 + 1_000.0));
    assert_eq!(sum("zzz"), None, "the mark of a beginning is not a piece");
}

#[test]
fn number_formats_have_the_same_values() {
    let values = [1.5_f32, -0.25, 2.0_f32.powi(-20), 65_504.0];
    let bits = [[0x3e00_u16, 0xb400, 0x0010, 0x7bff], [0x3fc0, 0xbe80, 0x3580, 0x477f]];
    let f32_bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    let half_bytes = bits.map(|bits| bits.iter().flat_map(|bits| bits.to_le_bytes()).collect::<Vec<u8>>());
    let files = [("F32", &f32_bytes), ("F16", &half_bytes[0]), ("BF16", &half_bytes[1])];
    for (format, bytes) in files {
        let header = json!({"v": {"dtype": format, "shape": [1, 4], "data_offsets": [0, bytes.len()]}});
        let matrix = Matrix::parse(with_header(&header, bytes)).unwrap();
        let mut sum = [0.0; 4];
        matrix.add_row(0, &mut sum);
        matrix.add_row(1, &mut sum);
        let is_near = |(a, b): (&f32, &f32)| (a - b).abs() <= b.abs() / 256.0;
        assert!(sum.iter().zip(&values).all(is_near), "{format}: {sum:?}");
    }
}

#[test]
fn damaged_vectors_are_refused_with_the_path() {
    let good = safetensors(&[&[1.0, 2.0], &[3.0, 4.0]]);
    let vocabulary = tokenizer(&["▁a", "▁b"]).to_string();
    let header = |tensors| with_header(&tensors, &[0; 16]);
    let tensor = |shape: serde_json::Value, end: u64| json!({"dtype": "F32", "shape": shape, "data_offsets": [0, end]});
    let cases = [
        (Vec::new(), "not a safetensors file"),
        (b"PK\x03\x04wheel".to_vec(), "not a safetensors file"),
        (good[..good.len() - 1].to_vec(), "truncated"),
        (good[..20].to_vec(), "truncated"),
        (u64::MAX.to_le_bytes().to_vec(), "header is larger"),
        ([good.clone(), vec![0]].concat(), "truncated, or its header"),
        (header(json!([])), "its header is invalid"),
        (header(json!({})), "0 tensors"),
        (header(json!({"a": {}, "b": {}})), "2 tensors"),
        (
            header(json!({"a": {"dtype": "I64", "shape": [2, 2], "data_offsets": [0, 16]}})),
            "not a matrix",
        ),
        (header(json!({"a": tensor(json!([16]), 16)})), "1 dimensions"),
        (header(json!({"a": tensor(json!([0, 2]), 0)})), "0 vectors"),
        (header(json!({"a": tensor(json!([u64::MAX, 2]), 16)})), "truncated"),
        (header(json!({"a": tensor(json!([1, 4_096]), 16)})), "4096 components"),
        (safetensors(&[&[1.0, f32::NAN], &[0.0, 1.0]]), "not finite"),
        (safetensors(&[&[1.0, f32::INFINITY], &[0.0, 1.0]]), "not finite"),
    ];
    for (bytes, why) in cases {
        let error = read_error(&bytes, vocabulary.as_bytes());
        assert_eq!(error.kind, ErrorKind::Configuration);
        assert!(
            error.message.contains(why) && error.message.contains("a.safetensors"),
            "{why}: {error}"
        );
    }
}

#[test]
fn unsuitable_tokenizer_is_refused_with_the_path() {
    let good = safetensors(&[&[1.0, 2.0], &[3.0, 4.0]]);
    let model =
        |kind: &str, vocabulary: serde_json::Value| json!({"model": {"type": kind, "vocab": vocabulary}}).to_string();
    let cases = [
        ("{".to_owned(), "not a tokenizer"),
        ("[".repeat(100_000), "not a tokenizer"),
        (model(&"x".repeat(100_000), json!({"▁a": 0})), "its model `xxx"),
        (model("Unigram", json!([["▁a", 0.5]])), "not a tokenizer"),
        (
            model("WordPiece", json!({"a": 0, "##b": 1})),
            "`WordPiece` is not supported",
        ),
        (model("BPE", json!({"Ġa": 0, "b": 1})), "`▁` at the beginning"),
        (
            model("BPE", json!({"▁a": 0, "▁b": 2})),
            "does not belong to the vectors",
        ),
        (model("BPE", json!({"▁a": -1})), "not a tokenizer"),
    ];
    for (json, why) in cases {
        let error = read_error(&good, json.as_bytes());
        assert!(error.message.len() < 1_000, "a reason quotes little of the file");
        assert!(
            error.message.contains(why) && error.message.contains("tokenizer.json"),
            "{why}: {error}"
        );
    }
}

#[test]
fn file_over_its_limit_is_refused_before_it_is_read() {
    for (name, bytes_max) in [
        ("vectors.safetensors", VECTORS_BYTES_MAX),
        ("tokenizer.json", TOKENIZER_BYTES_MAX),
    ] {
        let (directory, _) = example();
        // A file with a hole takes no space.
        let file = File::options().write(true).open(directory.path().join(name)).unwrap();
        file.set_len(bytes_max + 1).unwrap();
        let error = files(directory.path()).read().unwrap_err();
        assert!(
            error.message.contains("is larger than") && error.message.contains(name),
            "{error}"
        );
    }
}

#[test]
fn files_are_found_in_a_directory_or_among_arguments() {
    let (directory, _) = example();
    let root = directory.path().join("package");
    for (from, to) in [
        ("vectors.safetensors", "weights/l2_256.safetensors"),
        ("tokenizer.json", "tokenizers/l2_tokenizer_config.json"),
    ] {
        fs::create_dir_all(root.join(to).parent().unwrap()).unwrap();
        fs::rename(directory.path().join(from), root.join(to)).unwrap();
    }
    fs::write(root.join("settings.json"), "{}").unwrap();
    let found = files(&root);
    assert!(found.vectors.ends_with("weights/l2_256.safetensors") && found.read().is_ok());
    let from_arguments = VectorFiles::find(&[found.tokenizer.clone(), found.vectors.clone()]).unwrap();
    assert_eq!(from_arguments, found, "in any order");
    let missing = VectorFiles::find(std::slice::from_ref(&found.vectors)).unwrap_err();
    assert!(missing.message.contains("no `tokenizer"), "{missing}");
    fs::write(root.join("other.safetensors"), "").unwrap();
    let ambiguous = VectorFiles::find(std::slice::from_ref(&root)).unwrap_err();
    assert!(ambiguous.message.contains("other.safetensors"), "{ambiguous}");
    let archive = VectorFiles::find(&["wordllama.whl".into()]).unwrap_err();
    assert!(archive.suggestion.as_deref().unwrap().contains("unpack it"));
}

#[test]
fn directory_holds_one_model_and_keeps_it_when_another_is_refused() {
    let (source, _) = example();
    let target = tempfile::tempdir().unwrap();
    let directory = VectorDirectory::new(target.path().join("vectors"));
    assert!(directory.open().unwrap().is_none() && !directory.remove().unwrap());
    directory.add(&files(source.path())).unwrap();
    write(source.path(), &[("only", vec![1.0, 2.0])]);
    directory.add(&files(source.path())).unwrap();
    assert_eq!(
        directory.open().unwrap().unwrap().width(),
        2,
        "the second model replaced the first"
    );
    fs::write(source.path().join("vectors.safetensors"), "no vectors").unwrap();
    assert!(directory.add(&files(source.path())).is_err());
    assert_eq!(directory.open().unwrap().unwrap().width(), 2);
    // Half of a model is an error that names the missing file.
    fs::remove_file(directory.path().join("tokenizer.json")).unwrap();
    assert!(directory.open().unwrap_err().message.contains("tokenizer.json"));
    assert!(directory.remove().unwrap() && directory.open().unwrap().is_none());
}

proptest! {
    #[test]
    fn damaged_bytes_do_not_panic(changes in proptest::collection::vec((any::<usize>(), any::<u8>()), 1..8), cut in 0_usize..200) {
        let mut bytes = safetensors(&[&[1.0, 2.0], &[3.0, 4.0]]);
        for (number, byte) in changes {
            let position = number % bytes.len();
            bytes[position] = byte;
        }
        bytes.truncate(bytes.len().saturating_sub(cut / 10));
        if let Ok(matrix) = Matrix::parse(bytes) {
            let mut sum = vec![0.0; matrix.columns()];
            matrix.add_row(matrix.rows() - 1, &mut sum);
            prop_assert!(sum.iter().all(|value| value.is_finite()));
        }
    }

    #[test]
    fn any_text_can_be_embedded(text in ".{0,300}") {
        let (_directory, vectors) = example();
        prop_assert!(vectors.embed(&text).is_none_or(|vector| vector.len() == 4));
    }
}
