//! Measures the retrieval quality of the tool search: `cargo run --release --example search_eval -- DIR...`
//!
//! A directory is a retrieval set in BEIR layout: `corpus.jsonl` (`_id`, `title`, `text`, optionally `inputSchema`),
//! `queries.jsonl` (`_id`, `text`) and `qrels/test.tsv`. A directory that is not a set is searched for sets. Prints one
//! JSON document per set. `r_at_k` is the recall of the first k hits of the full ranking. `cut_off` is the recall of
//! the hits that an agent receives: at most five, without weak hits.
#![allow(clippy::print_stdout, reason = "stdout is where an example's result goes")]

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use serde_json::{Value, json};
use toolwit::registry::{Catalog, Cutoff, Document, HITS_DEFAULT, Hit, Query};

/// The relevant tools, by query.
type Judgements = BTreeMap<String, BTreeSet<String>>;

fn main() -> Result<(), Box<dyn Error>> {
    let directories: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    if directories.is_empty() {
        return Err("name a directory that holds corpus.jsonl, queries.jsonl and qrels/test.tsv".into());
    }
    for directory in directories {
        for set in sets_in(&directory)? {
            println!("{:#}", evaluate(&set)?);
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
        return Err(format!("{} has no `corpus.jsonl`", directory.display()).into());
    }
    Ok(sets)
}

fn evaluate(set: &Path) -> Result<Value, Box<dyn Error>> {
    let mut catalog = Catalog::new();
    for tool in lines(&set.join("corpus.jsonl"))? {
        let document = document(&tool)?;
        catalog.put(&document.id.clone(), [document]);
    }
    let judgements = judgements(&fs::read_to_string(set.join("qrels/test.tsv"))?);
    let mut queries = Vec::new();
    for query in lines(&set.join("queries.jsonl"))? {
        if let Some(right) = judgements.get(text_of(&query, "_id")?) {
            queries.push((Query::new(text_of(&query, "text")?), right));
        }
    }

    let mut sums = [0.0; 5];
    let mut hits = 0;
    let started = Instant::now();
    let rankings: Vec<_> = queries
        .iter()
        .map(|(query, _)| catalog.search(&query.clone().with_hits_max(10).with_cutoff(Cutoff::None), |_| true))
        .collect();
    let seconds = started.elapsed().as_secs_f64();
    for ((query, right), ranking) in queries.iter().zip(&rankings) {
        let shown = catalog.search(&query.clone().with_hits_max(HITS_DEFAULT), |_| true);
        hits += shown.len();
        let measured = [
            recall(ranking, right, 1),
            recall(ranking, right, 5),
            recall(ranking, right, 10),
            gain(ranking, right, 5),
            recall(&shown, right, 5),
        ];
        sums.iter_mut().zip(measured).for_each(|(sum, value)| *sum += value);
    }
    let count = queries.len().max(1) as f64;
    let [r_at_1, r_at_5, r_at_10, ndcg_at_5, cut_r_at_5] = sums.map(|sum| (sum / count * 1e4).round() / 1e4);
    Ok(json!({
        "set": set.file_name().unwrap_or_default().to_string_lossy(),
        "tools": catalog.len(),
        "queries": queries.len(),
        "r_at_1": r_at_1,
        "r_at_5": r_at_5,
        "r_at_10": r_at_10,
        "ndcg_at_5": ndcg_at_5,
        "queries_per_second": (queries.len() as f64 / seconds).round(),
        "cut_off": {"r_at_5": cut_r_at_5, "hits_mean": (hits as f64 / count * 100.0).round() / 100.0},
    }))
}

fn lines(path: &Path) -> Result<Vec<Value>, Box<dyn Error>> {
    let text = fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    lines.map(|line| Ok(serde_json::from_str(line)?)).collect()
}

fn text_of<'a>(value: &'a Value, key: &str) -> Result<&'a str, String> {
    value[key]
        .as_str()
        .ok_or_else(|| format!("a line has no text `{key}`: {value}"))
}

/// Creates a document as the registry does: the name and the parameters of the schema are separate fields.
fn document(tool: &Value) -> Result<Document, Box<dyn Error>> {
    let (id, text) = (text_of(tool, "_id")?, text_of(tool, "text")?);
    let name = tool["title"].as_str().filter(|title| !title.is_empty()).unwrap_or(id);
    let mut description = text
        .strip_prefix(name)
        .map_or(text, |rest| rest.trim_start_matches(':'))
        .to_owned();
    let mut parameters = String::new();
    for (name, parameter) in tool["inputSchema"]["properties"].as_object().into_iter().flatten() {
        let described = format!("{name} {}", parameter["description"].as_str().unwrap_or_default());
        // Some sets repeat the parameters in the description.
        description = description.replace(&described, "");
        parameters.push_str(&described);
        parameters.push('\n');
    }
    Ok(Document::new(id, name, description).with_parameters(parameters))
}

fn judgements(table: &str) -> Judgements {
    let mut judgements = Judgements::new();
    for row in table.lines() {
        let mut cells = row.split('\t');
        // Skips the header, whose third column is not a number.
        if let (Some(query), Some(tool), Some(Ok(1..))) = (
            cells.next(),
            cells.next(),
            cells.next().map(|score| score.trim().parse::<i32>()),
        ) {
            judgements.entry(query.to_owned()).or_default().insert(tool.to_owned());
        }
    }
    judgements
}

fn recall(hits: &[Hit], right: &BTreeSet<String>, among: usize) -> f64 {
    let found = hits.iter().take(among).filter(|hit| right.contains(&hit.id)).count();
    found as f64 / right.len() as f64
}

/// Returns the normalised discounted cumulative gain: relevant tools count more at higher ranks.
fn gain(hits: &[Hit], right: &BTreeSet<String>, among: usize) -> f64 {
    let worth = |rank: usize| 1.0 / (rank as f64 + 2.0).log2();
    let ranked = hits.iter().take(among).enumerate();
    let found: f64 = ranked
        .filter(|(_, hit)| right.contains(&hit.id))
        .map(|(rank, _)| worth(rank))
        .sum();
    let best: f64 = (0..right.len().min(among)).map(worth).sum();
    found / best
}
