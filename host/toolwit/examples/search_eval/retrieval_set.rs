//! A set of tools and of queries, with the relevant tools of each query.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use serde_json::Value;
use toolwit::registry::{Catalog, Cutoff, Document, EmbeddingModel, Hit, Query};

/// The embedding model of semantic search, if it is used.
pub(crate) type OptionalModel = Option<Arc<dyn EmbeddingModel>>;

/// Tools, and queries with the ids of the relevant tools.
pub(crate) struct RetrievalSet {
    pub(crate) catalog: Catalog,
    pub(crate) queries: Vec<AnswerableQuery>,
}

/// A query with its relevant tools.
pub(crate) struct AnswerableQuery {
    text: String,
    /// The capability in the words of a tool description, if the set has it.
    need: Option<String>,
    relevant: BTreeSet<String>,
}

/// A query without a relevant tool.
pub(crate) struct UnanswerableQuery {
    pub(crate) catalog: Catalog,
    pub(crate) text: String,
}

/// The quality of the hits of all queries of a set.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RetrievalQuality {
    pub(crate) r_at_1: f64,
    pub(crate) r_at_5: f64,
    pub(crate) r_at_10: f64,
    pub(crate) ndcg_at_5: f64,
    /// The share of relevant tools among all hits.
    pub(crate) precision: f64,
    pub(crate) hits_mean: f64,
    /// The share of queries for which the search returned nothing.
    pub(crate) silent: f64,
}

impl RetrievalSet {
    /// Reads a set in BEIR layout.
    pub(crate) fn read(directory: &Path, model: &OptionalModel) -> Result<Self, Box<dyn Error>> {
        let judgements = judgements(&fs::read_to_string(directory.join("qrels/test.tsv"))?);
        let mut queries = Vec::new();
        for query in lines(&directory.join("queries.jsonl"))? {
            if let Some(relevant) = judgements.get(text_of(&query, "_id")?) {
                queries.push(AnswerableQuery {
                    text: text_of(&query, "text")?.to_owned(),
                    need: query["need"].as_str().map(str::to_owned),
                    relevant: relevant.clone(),
                });
            }
        }
        let catalog = catalog(&lines(&directory.join("corpus.jsonl"))?, model)?;
        Ok(Self { catalog, queries })
    }

    /// Searches for each query, and measures the hits.
    pub(crate) fn measure(&self, hits_max: usize, cutoff: Cutoff) -> RetrievalQuality {
        self.measure_queries(hits_max, cutoff, |query| Query::new(query.text.as_str()))
    }

    /// Searches like `search_tools` with a need and a task, and measures the hits. `None` if not every query has a need.
    pub(crate) fn measure_needs(&self, hits_max: usize, cutoff: Cutoff) -> Option<RetrievalQuality> {
        let has_needs = self.queries.iter().all(|query| query.need.is_some());
        let need =
            |query: &AnswerableQuery| Query::new(query.need.as_deref().unwrap_or_default()).with_task(&*query.text);
        has_needs.then(|| self.measure_queries(hits_max, cutoff, need))
    }

    fn measure_queries(
        &self,
        hits_max: usize,
        cutoff: Cutoff,
        query_of: impl Fn(&AnswerableQuery) -> Query,
    ) -> RetrievalQuality {
        let results = self.queries.iter().map(|query| {
            let search = query_of(query).with_hits_max(hits_max).with_cutoff(cutoff);
            (self.catalog.search(&search, |_| true), query.relevant.clone())
        });
        RetrievalQuality::of(&results.collect::<Vec<_>>())
    }
}

/// Reads queries without a relevant tool. Each line has the `text` and the `tools`, none of which is relevant.
pub(crate) fn read_unanswerable(file: &Path, model: &OptionalModel) -> Result<Vec<UnanswerableQuery>, Box<dyn Error>> {
    let queries = lines(file)?.into_iter().map(|query| {
        let tools = query["tools"].as_array().ok_or("a line has no `tools`")?;
        Ok(UnanswerableQuery {
            catalog: catalog(tools, model)?,
            text: text_of(&query, "text")?.to_owned(),
        })
    });
    queries.collect()
}

/// Searches for each query without a relevant tool, and measures the hits. Every hit is an error.
pub(crate) fn measure_unanswerable(queries: &[UnanswerableQuery], cutoff: Cutoff) -> RetrievalQuality {
    let results = queries.iter().map(|query| {
        let hits = query
            .catalog
            .search(&Query::new(query.text.as_str()).with_cutoff(cutoff), |_| true);
        (hits, BTreeSet::new())
    });
    RetrievalQuality::of(&results.collect::<Vec<_>>())
}

impl RetrievalQuality {
    fn of(results: &[(Vec<Hit>, BTreeSet<String>)]) -> Self {
        let count = results.len().max(1) as f64;
        let mean = |value: &dyn Fn(&[Hit], &BTreeSet<String>) -> f64| {
            results
                .iter()
                .map(|(hits, relevant)| value(hits, relevant))
                .sum::<f64>()
                / count
        };
        let hits: usize = results.iter().map(|(hits, _)| hits.len()).sum();
        let relevant: f64 = mean(&|hits, relevant| found(hits, relevant, usize::MAX) as f64) * count;
        Self {
            r_at_1: mean(&|hits, relevant| recall(hits, relevant, 1)),
            r_at_5: mean(&|hits, relevant| recall(hits, relevant, 5)),
            r_at_10: mean(&|hits, relevant| recall(hits, relevant, 10)),
            ndcg_at_5: mean(&|hits, relevant| gain(hits, relevant, 5)),
            precision: relevant / hits.max(1) as f64,
            hits_mean: hits as f64 / count,
            silent: mean(&|hits, _| f64::from(u8::from(hits.is_empty()))),
        }
    }
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

fn catalog(tools: &[Value], model: &OptionalModel) -> Result<Catalog, Box<dyn Error>> {
    let mut catalog = model
        .iter()
        .cloned()
        .fold(Catalog::new(), Catalog::with_embedding_model);
    for tool in tools {
        let document = document(tool)?;
        catalog.put(&document.id.clone(), [document]);
    }
    Ok(catalog)
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
        let text = format!("{name} {}", parameter["description"].as_str().unwrap_or_default());
        // Some sets repeat the parameters in the description.
        description = description.replace(&text, "");
        parameters.push_str(&text);
        parameters.push('\n');
    }
    Ok(Document::new(id, name, description).with_parameters(parameters))
}

/// Returns the relevant tools, by query.
fn judgements(table: &str) -> BTreeMap<String, BTreeSet<String>> {
    let mut judgements: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
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

fn found(hits: &[Hit], relevant: &BTreeSet<String>, among: usize) -> usize {
    hits.iter().take(among).filter(|hit| relevant.contains(&hit.id)).count()
}

fn recall(hits: &[Hit], relevant: &BTreeSet<String>, among: usize) -> f64 {
    found(hits, relevant, among) as f64 / relevant.len().max(1) as f64
}

/// Returns the normalised discounted cumulative gain: relevant tools count more at higher ranks.
fn gain(hits: &[Hit], relevant: &BTreeSet<String>, among: usize) -> f64 {
    let discount = |rank: usize| 1.0 / (rank as f64 + 2.0).log2();
    let ranked = hits.iter().take(among).enumerate();
    let found: f64 = ranked
        .filter(|(_, hit)| relevant.contains(&hit.id))
        .map(|(rank, _)| discount(rank))
        .sum();
    let best: f64 = (0..relevant.len().clamp(1, among)).map(discount).sum();
    found / best
}
