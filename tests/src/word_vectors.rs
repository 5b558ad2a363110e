//! Small word vectors for tests, as the two files in which a user has them.

use std::fs;
use std::path::Path;

use serde_json::{Map, Value, json};

/// The directions of some words: words of one row are synonyms, and no two rows are similar.
pub const SYNONYMS: [&[&str]; 4] = [
    &["forecast", "weather", "umbrella", "rain"],
    &["email", "send", "letter", "mail"],
    &["currency", "convert", "euros", "exchange"],
    &["flight", "book", "travel", "airport"],
];

/// Returns the words of [`SYNONYMS`], each with its vector.
pub fn synonyms() -> Vec<(&'static str, Vec<f32>)> {
    let rows = SYNONYMS.iter().enumerate();
    let vector = |row: usize| {
        (0..SYNONYMS.len())
            .map(|column| f32::from(u8::from(column == row)))
            .collect()
    };
    rows.flat_map(|(row, words)| words.iter().map(move |word| (*word, vector(row))))
        .collect()
}

/// Writes `vectors.safetensors` and `tokenizer.json` with a vector for each word.
pub fn write(directory: &Path, words: &[(&str, Vec<f32>)]) {
    let rows: Vec<&[f32]> = words.iter().map(|(_, vector)| vector.as_slice()).collect();
    let pieces: Vec<String> = words.iter().map(|(word, _)| format!("▁{word}")).collect();
    fs::create_dir_all(directory).unwrap();
    fs::write(directory.join("vectors.safetensors"), safetensors(&rows)).unwrap();
    fs::write(directory.join("tokenizer.json"), tokenizer(&pieces).to_string()).unwrap();
}

/// Returns a safetensors file with a matrix of 32-bit numbers.
pub fn safetensors(rows: &[&[f32]]) -> Vec<u8> {
    let values: Vec<u8> = rows
        .iter()
        .copied()
        .flatten()
        .flat_map(|value| value.to_le_bytes())
        .collect();
    let shape = [rows.len(), rows.first().map_or(0, |row| row.len())];
    let tensor = json!({"dtype": "F32", "shape": shape, "data_offsets": [0, values.len()]});
    with_header(&json!({"embedding.weight": tensor}), &values)
}

/// Returns a safetensors file with any header.
pub fn with_header(header: &Value, values: &[u8]) -> Vec<u8> {
    let header = header.to_string();
    let mut file = (header.len() as u64).to_le_bytes().to_vec();
    file.extend(header.as_bytes());
    file.extend(values);
    file
}

/// Returns a tokenizer whose pieces are numbered in their order.
pub fn tokenizer<P: AsRef<str>>(pieces: &[P]) -> Value {
    let numbered = pieces.iter().enumerate();
    let vocabulary: Map<String, Value> = numbered
        .map(|(row, piece)| (piece.as_ref().to_owned(), row.into()))
        .collect();
    json!({"version": "1.0", "model": {"type": "BPE", "vocab": vocabulary, "merges": []}})
}
