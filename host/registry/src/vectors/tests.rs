//! Tests of word vectors: embedding of texts, finding and storing of files, and damaged or hostile files.
#![allow(clippy::unwrap_used, clippy::panic)]

#[path = "../../../../tests/src/word_vectors.rs"]
#[allow(
    dead_code,
    unreachable_pub,
    missing_docs,
    reason = "other tests use the items that this module does not use"
)]
mod word_vectors;

use std::fs::{self, File};
use std::path::Path;

use proptest::prelude::*;
use serde_json::json;

use self::word_vectors::{safetensors, synonyms, tokenizer, with_header, write};
use super::*;
use toolwit_core::limits::{TOKENIZER_BYTES_MAX, VECTORS_BYTES_MAX};
use toolwit_core::{Error, ErrorKind};

fn find_files(directory: &Path) -> VectorFiles {
    VectorFiles::find(&[directory.to_owned()]).unwrap()
}

fn example_vectors() -> (tempfile::TempDir, WordVectors) {
    let directory = tempfile::tempdir().unwrap();
    write(directory.path(), &synonyms());
    let vectors = find_files(directory.path()).read().unwrap();
    (directory, vectors)
}

/// Writes two files and returns the error of reading them.
fn read_error_of(vectors: &[u8], tokenizer: &[u8]) -> Error {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("a.safetensors"), vectors).unwrap();
    fs::write(directory.path().join("tokenizer.json"), tokenizer).unwrap();
    find_files(directory.path()).read().unwrap_err()
}

#[test]
fn vector_of_a_text_is_the_sum_of_its_word_vectors() {
    let (_directory, vectors) = example_vectors();
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
    let vectors = find_files(directory.path()).read().unwrap();
    let sum = |word: &str| vectors.embed(word).map(|vector| vector[0]);
    assert_eq!(sum("airport"), Some(10.0));
    assert_eq!(sum("airqualityé"), Some(1.0 + 100.0 + 100_000.0));
    assert_eq!(sum("airxqual"), Some(1.0 + 1_000.0));
    assert_eq!(sum("zzz"), None, "the mark `▁` alone is not a piece");
}

#[test]
fn all_number_formats_are_decoded_to_the_same_values() {
    let values = [1.5_f32, -0.25, 2.0_f32.powi(-20), 65_504.0];
    let f32_bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    let to_bytes = |values: [u16; 4]| values.iter().flat_map(|bits| bits.to_le_bytes()).collect::<Vec<u8>>();
    let f16_bytes = to_bytes([0x3e00, 0xb400, 0x0010, 0x7bff]);
    let bf16_bytes = to_bytes([0x3fc0, 0xbe80, 0x3580, 0x477f]);
    let formats = [("F32", &f32_bytes), ("F16", &f16_bytes), ("BF16", &bf16_bytes)];
    for (format, bytes) in formats {
        let header = json!({"v": {"dtype": format, "shape": [1, 4], "data_offsets": [0, bytes.len()]}});
        let matrix = Matrix::parse(with_header(&header, bytes)).unwrap();
        let mut sum = [0.0; 4];
        matrix.add_row(0, &mut sum);
        // The matrix has no row 1, so this adds nothing.
        matrix.add_row(1, &mut sum);
        let is_near = |(a, b): (&f32, &f32)| (a - b).abs() <= b.abs() / 256.0;
        assert!(sum.iter().zip(&values).all(is_near), "{format}: {sum:?}");
    }
}

#[test]
fn error_for_damaged_vectors_names_the_file() {
    let valid_vectors = safetensors(&[&[1.0, 2.0], &[3.0, 4.0]]);
    let vocabulary = tokenizer(&["▁a", "▁b"]).to_string();
    let file_with_header = |header| with_header(&header, &[0; 16]);
    let tensor = |shape: serde_json::Value, end: u64| json!({"dtype": "F32", "shape": shape, "data_offsets": [0, end]});
    let cases = [
        (Vec::new(), "not a safetensors file"),
        (b"PK\x03\x04wheel".to_vec(), "not a safetensors file"),
        (valid_vectors[..valid_vectors.len() - 1].to_vec(), "truncated"),
        (valid_vectors[..20].to_vec(), "truncated"),
        (u64::MAX.to_le_bytes().to_vec(), "header is larger"),
        ([valid_vectors.clone(), vec![0]].concat(), "truncated, or its header"),
        (file_with_header(json!([])), "its header is invalid"),
        (file_with_header(json!({})), "0 tensors"),
        (file_with_header(json!({"a": {}, "b": {}})), "2 tensors"),
        (
            file_with_header(json!({"a": {"dtype": "I64", "shape": [2, 2], "data_offsets": [0, 16]}})),
            "not a matrix",
        ),
        (file_with_header(json!({"a": tensor(json!([16]), 16)})), "1 dimensions"),
        (file_with_header(json!({"a": tensor(json!([0, 2]), 0)})), "0 vectors"),
        (
            file_with_header(json!({"a": tensor(json!([u64::MAX, 2]), 16)})),
            "truncated",
        ),
        (
            file_with_header(json!({"a": tensor(json!([1, 4_096]), 16)})),
            "4096 components",
        ),
        (safetensors(&[&[1.0, f32::NAN], &[0.0, 1.0]]), "not finite"),
        (safetensors(&[&[1.0, f32::INFINITY], &[0.0, 1.0]]), "not finite"),
    ];
    for (bytes, reason) in cases {
        let error = read_error_of(&bytes, vocabulary.as_bytes());
        assert_eq!(error.kind, ErrorKind::Configuration);
        assert!(
            error.message.contains(reason) && error.message.contains("a.safetensors"),
            "{reason}: {error}"
        );
    }
}

#[test]
fn error_for_an_unsuitable_tokenizer_names_the_file() {
    let valid_vectors = safetensors(&[&[1.0, 2.0], &[3.0, 4.0]]);
    let model =
        |name: &str, vocabulary: serde_json::Value| json!({"model": {"type": name, "vocab": vocabulary}}).to_string();
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
    for (json, reason) in cases {
        let error = read_error_of(&valid_vectors, json.as_bytes());
        assert!(
            error.message.len() < 1_000,
            "the error quotes only a short part of the file"
        );
        assert!(
            error.message.contains(reason) && error.message.contains("tokenizer.json"),
            "{reason}: {error}"
        );
    }
}

#[test]
fn file_over_its_limit_is_refused_before_it_is_read() {
    for (name, bytes_max) in [
        ("vectors.safetensors", VECTORS_BYTES_MAX),
        ("tokenizer.json", TOKENIZER_BYTES_MAX),
    ] {
        let (directory, _) = example_vectors();
        // `set_len` creates a sparse file, which takes no space on the disk.
        let file = File::options().write(true).open(directory.path().join(name)).unwrap();
        file.set_len(bytes_max + 1).unwrap();
        let error = find_files(directory.path()).read().unwrap_err();
        assert!(
            error.message.contains("is larger than") && error.message.contains(name),
            "{error}"
        );
    }
}

#[test]
fn files_are_found_in_a_directory_or_among_arguments() {
    let (directory, _) = example_vectors();
    let root = directory.path().join("package");
    for (from, to) in [
        ("vectors.safetensors", "weights/l2_256.safetensors"),
        ("tokenizer.json", "tokenizers/l2_tokenizer_config.json"),
    ] {
        fs::create_dir_all(root.join(to).parent().unwrap()).unwrap();
        fs::rename(directory.path().join(from), root.join(to)).unwrap();
    }
    fs::write(root.join("settings.json"), "{}").unwrap();
    let found = find_files(&root);
    assert!(found.vectors.ends_with("weights/l2_256.safetensors") && found.read().is_ok());
    let from_arguments = VectorFiles::find(&[found.tokenizer.clone(), found.vectors.clone()]).unwrap();
    assert_eq!(from_arguments, found, "the order of the arguments does not matter");
    let missing = VectorFiles::find(std::slice::from_ref(&found.vectors)).unwrap_err();
    assert!(missing.message.contains("no `tokenizer"), "{missing}");
    fs::write(root.join("other.safetensors"), "").unwrap();
    let ambiguous = VectorFiles::find(std::slice::from_ref(&root)).unwrap_err();
    assert!(ambiguous.message.contains("other.safetensors"), "{ambiguous}");
    let archive = VectorFiles::find(&["wordllama.whl".into()]).unwrap_err();
    assert!(archive.suggestion.as_deref().unwrap().contains("unpack it"));
}

#[test]
fn directory_holds_one_model_and_keeps_it_if_a_new_model_is_invalid() {
    let (source, _) = example_vectors();
    let target = tempfile::tempdir().unwrap();
    let directory = VectorDirectory::new(target.path().join("vectors"));
    assert!(directory.open().unwrap().is_none() && !directory.remove().unwrap());
    directory.add(&find_files(source.path())).unwrap();
    write(source.path(), &[("only", vec![1.0, 2.0])]);
    directory.add(&find_files(source.path())).unwrap();
    assert_eq!(
        directory.open().unwrap().unwrap().width(),
        2,
        "the second model replaced the first"
    );
    fs::write(source.path().join("vectors.safetensors"), "no vectors").unwrap();
    assert!(directory.add(&find_files(source.path())).is_err());
    assert_eq!(directory.open().unwrap().unwrap().width(), 2);
    // If only one of the two files exists, the error names the missing file.
    fs::remove_file(directory.path().join("tokenizer.json")).unwrap();
    assert!(directory.open().unwrap_err().message.contains("tokenizer.json"));
    assert!(directory.remove().unwrap() && directory.open().unwrap().is_none());
}

proptest! {
    #[test]
    fn damaged_bytes_do_not_panic(changes in proptest::collection::vec((any::<usize>(), any::<u8>()), 1..8), removed in 0_usize..20) {
        let mut bytes = safetensors(&[&[1.0, 2.0], &[3.0, 4.0]]);
        for (number, byte) in changes {
            let position = number % bytes.len();
            bytes[position] = byte;
        }
        bytes.truncate(bytes.len().saturating_sub(removed));
        if let Ok(matrix) = Matrix::parse(bytes) {
            let mut sum = vec![0.0; matrix.column_count()];
            matrix.add_row(matrix.row_count() - 1, &mut sum);
            prop_assert!(sum.iter().all(|value| value.is_finite()));
        }
    }

    #[test]
    fn any_text_can_be_embedded(text in ".{0,300}") {
        let (_directory, vectors) = example_vectors();
        prop_assert!(vectors.embed(&text).is_none_or(|vector| vector.len() == 4));
    }
}
