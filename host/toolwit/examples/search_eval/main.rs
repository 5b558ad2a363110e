//! Measures the retrieval quality of the tool search:
//! `cargo run --release --example search_eval -- [--vectors DIR] DIR...`
//!
//! A directory is a retrieval set in BEIR layout: `corpus.jsonl` (`_id`, `title`, `text`, optionally `inputSchema`),
//! `queries.jsonl` (`_id`, `text`, optionally `need`) and `qrels/test.tsv`. A directory that is not a set is searched for sets and
//! for `no_answer.jsonl`: queries (`text`) for which none of the `tools` is relevant. Prints one JSON document per set; with a
//! directory of word vectors, another one for the search with them.
//!
//! `r_at_k` is the recall of the first k hits of the full ranking. `search_tools` measures the hits that a model receives when it
//! searches, `auto_search` those of the search for the user's message: at most five, without weak hits. Each has its recall,
//! its precision, and the share of queries for which it returned nothing (`silent`). `needs` measures `search_tools` with the need
//! of each query in addition to its text, if the set has needs.
#![allow(clippy::print_stdout, reason = "stdout is where an example's result goes")]

mod retrieval_set;

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use serde_json::{Value, json};
use toolwit::registry::{Cutoff, HITS_DEFAULT, VectorFiles};

use retrieval_set::{OptionalModel, RetrievalQuality, RetrievalSet, measure_unanswerable, read_unanswerable};

/// The file of queries without a relevant tool.
const UNANSWERABLE: &str = "no_answer.jsonl";

fn main() -> Result<(), Box<dyn Error>> {
    let mut directories: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let mut models: Vec<OptionalModel> = vec![None];
    if directories.len() > 1 && directories[0] == Path::new("--vectors") {
        let files = VectorFiles::find(&[directories.remove(1)])?;
        directories.remove(0);
        models.push(Some(Arc::new(files.read()?)));
    }
    if directories.is_empty() {
        return Err("name a directory that holds corpus.jsonl, queries.jsonl and qrels/test.tsv".into());
    }
    for directory in directories {
        let (sets, unanswerable) = (sets_in(&directory)?, directory.join(UNANSWERABLE));
        for model in &models {
            for set in &sets {
                println!("{:#}", evaluate(set, model)?);
            }
            if unanswerable.exists() {
                println!("{:#}", evaluate_unanswerable(&unanswerable, model)?);
            }
        }
    }
    Ok(())
}

fn sets_in(directory: &Path) -> Result<Vec<PathBuf>, Box<dyn Error>> {
    if directory.join("corpus.jsonl").exists() {
        return Ok(vec![directory.to_owned()]);
    }
    let mut sets: Vec<_> = fs::read_dir(directory)?.flatten().map(|entry| entry.path()).collect();
    sets.retain(|path| path.join("corpus.jsonl").exists());
    sets.sort();
    if sets.is_empty() {
        return Err(format!("{} holds no corpus.jsonl", directory.display()).into());
    }
    Ok(sets)
}

fn evaluate(directory: &Path, model: &OptionalModel) -> Result<Value, Box<dyn Error>> {
    let set = RetrievalSet::read(directory, model)?;
    let started = Instant::now();
    let ranking = set.measure(10, Cutoff::None);
    let seconds = started.elapsed().as_secs_f64();
    Ok(json!({
        "set": directory.file_name().unwrap_or_default().to_string_lossy(),
        "vectors": model.is_some(),
        "tools": set.catalog.len(),
        "queries": set.queries.len(),
        "r_at_1": rounded(ranking.r_at_1),
        "r_at_5": rounded(ranking.r_at_5),
        "r_at_10": rounded(ranking.r_at_10),
        "ndcg_at_5": rounded(ranking.ndcg_at_5),
        "queries_per_second": (set.queries.len() as f64 / seconds).round(),
        "search_tools": given(&set.measure(HITS_DEFAULT, Cutoff::Relative)),
        "auto_search": given(&set.measure(HITS_DEFAULT, Cutoff::Confident)),
        "needs": set.measure_needs(HITS_DEFAULT, Cutoff::Relative).as_ref().map(given),
    }))
}

fn evaluate_unanswerable(file: &Path, model: &OptionalModel) -> Result<Value, Box<dyn Error>> {
    let queries = read_unanswerable(file, model)?;
    Ok(json!({
        "set": UNANSWERABLE,
        "vectors": model.is_some(),
        "queries": queries.len(),
        "search_tools": given(&measure_unanswerable(&queries, Cutoff::Relative)),
        "auto_search": given(&measure_unanswerable(&queries, Cutoff::Confident)),
    }))
}

/// Describes the hits that a conversation receives.
fn given(quality: &RetrievalQuality) -> Value {
    json!({
        "r_at_5": rounded(quality.r_at_5),
        "precision": rounded(quality.precision),
        "hits_mean": rounded(quality.hits_mean),
        "silent": rounded(quality.silent),
    })
}

fn rounded(value: f64) -> f64 {
    (value * 1e4).round() / 1e4
}
