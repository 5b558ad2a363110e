//! Measures scans of a plugin directory with 10,000 packages, and searches over 10,000 and 100,000 tools: by words, and by
//! words and meaning.
//!
//! Run `packages` and `searches` with `cargo bench --bench registry`, or one part with `-- packages`, `-- restart` or
//! `-- searches`. The first scan is reported as a ratio to the time for decoding every package once on all cores.
//! Restarts and searches are reported as absolute times, because they are the latencies that a user notices.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    clippy::field_reassign_with_default
)]
#![allow(missing_docs, unreachable_pub)]

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use toolwit::registry::{Catalog, Document, EmbeddingModel, Query, Registry};
use toolwit::sandbox::{CodeCacheLocation, Inspection, PackageContext, Runtime, RuntimeOptions};
use toolwit::store::SqliteStore;

const PACKAGES: usize = 10_000;
const ROUNDS: usize = 5;
const SEARCHES: usize = 4_000;

const VERBS: [&str; 20] = [
    "get",
    "find",
    "list",
    "create",
    "delete",
    "send",
    "convert",
    "compute",
    "render",
    "parse",
    "merge",
    "split",
    "fetch",
    "translate",
    "compress",
    "sign",
    "verify",
    "schedule",
    "export",
    "plan",
];
const NOUNS: [&str; 25] = [
    "weather",
    "invoice",
    "customer",
    "image",
    "calendar",
    "email",
    "route",
    "recipe",
    "stock",
    "currency",
    "document",
    "ticket",
    "video",
    "contract",
    "flight",
    "hotel",
    "playlist",
    "article",
    "database",
    "shipment",
    "translation",
    "forecast",
    "meeting",
    "password",
    "report",
];
const PLACES: [&str; 20] = [
    "europe",
    "archive",
    "warehouse",
    "browser",
    "office",
    "cloud",
    "server",
    "phone",
    "bank",
    "school",
    "airport",
    "museum",
    "garden",
    "harbour",
    "studio",
    "clinic",
    "factory",
    "library",
    "kitchen",
    "market",
];

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    let wanted: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    let is_wanted = |part: &str| wanted.is_empty() || wanted.iter().any(|wanted| wanted == part);
    if is_wanted("packages") {
        runtime.block_on(packages());
    } else if is_wanted("restart") {
        runtime.block_on(restarts());
    }
    for tools in [10_000, 100_000].into_iter().filter(|_| is_wanted("searches")) {
        searches("words", tools, Catalog::new());
        let catalog = Catalog::new().with_embedding_model(Arc::new(RandomVectors));
        searches("words and meaning", tools, catalog);
    }
}

fn host() -> Arc<Runtime> {
    let options = RuntimeOptions {
        code_cache: CodeCacheLocation::Off,
        ..RuntimeOptions::default()
    };
    Runtime::new(options).unwrap()
}

/// Returns the words of the package with this number. The first 10,000 packages have different words.
fn words(number: usize) -> (&'static str, &'static str, &'static str) {
    let verb = VERBS[number % VERBS.len()];
    let noun = NOUNS[number / VERBS.len() % NOUNS.len()];
    let place = PLACES[number / VERBS.len() / NOUNS.len() % PLACES.len()];
    (verb, noun, place)
}

fn component(number: usize) -> Vec<u8> {
    let (verb, noun, place) = words(number);
    let text = format!(
        r#"(component
            (core module $m (func (export "f") (param i32 i32) (result i32) local.get 0 local.get 1 i32.add))
            (core instance $i (instantiate $m))
            (func (export "{verb}-{noun}-{place}") (param "{noun}-number" u32) (param "{place}-number" u32) (result u32)
                (canon lift (core func $i "f"))))"#
    );
    wat::parse_str(text).unwrap()
}

/// Writes the packages, with modification times in the past so that the scan treats them as settled.
fn fill(directory: &Path) {
    let age = SystemTime::now() - Duration::from_secs(3_600);
    for number in 0..PACKAGES {
        let (verb, noun, place) = words(number);
        let manifest = format!(
            "description = \"A package to {verb} a {noun} of the {place}\"\nuse_case = \"When the user wants to {verb} a {noun}\"\n"
        );
        for (extension, bytes) in [("wasm", component(number)), ("toml", manifest.into_bytes())] {
            let path = directory.join(format!("package-{number}.{extension}"));
            fs::write(&path, bytes).unwrap();
            File::options()
                .write(true)
                .open(&path)
                .unwrap()
                .set_modified(age)
                .unwrap();
        }
    }
}

async fn packages() {
    let directory = tempfile::tempdir().unwrap();
    fill(directory.path());
    let directories = vec![directory.path().to_owned()];
    let own = tempfile::tempdir().unwrap();

    let mut decoded = Vec::new();
    let mut first = Vec::new();
    let mut restarted = Vec::new();
    for round in 0..ROUNDS {
        decoded.push(timed(|| decode_all(directory.path())));
        let file = own.path().join(format!("store-{round}.db"));
        first.push(scan_and_search(&directories, &file).await);
        restarted.push(scan_and_search(&directories, &file).await);
    }
    let (decoded, first, restarted) = (median(decoded), median(first), median(restarted));
    println!("{PACKAGES} packages:");
    println!("  decoding each once, on all cores    {:>8.0} ms", ms(decoded));
    println!(
        "  first look, to the first answer     {:>8.0} ms, {:.2} times that",
        ms(first),
        first.as_secs_f64() / decoded.as_secs_f64()
    );
    println!("  restart, unchanged, to first answer {:>8.0} ms", ms(restarted));
}

/// Measures many restarts and nothing else, for a profiler.
async fn restarts() {
    const RESTARTS: usize = 30;
    let directory = tempfile::tempdir().unwrap();
    fill(directory.path());
    let directories = vec![directory.path().to_owned()];
    let own = tempfile::tempdir().unwrap();
    let file = own.path().join("store.db");
    scan_and_search(&directories, &file).await;
    let mut times = Vec::new();
    for _ in 0..RESTARTS {
        times.push(scan_and_search(&directories, &file).await);
    }
    println!("restart, unchanged, to first answer {:>8.0} ms", ms(median(times)));
}

/// Opens the store, scans the directory and searches once, as a process does before its first answer.
async fn scan_and_search(directories: &[PathBuf], file: &Path) -> Duration {
    let started = Instant::now();
    let store = Arc::new(SqliteStore::open(file).unwrap());
    let registry = Registry::scan_into(&host(), directories, store).await.unwrap();
    let hits = registry.search(&Query::new("compute the invoice of a warehouse"), |_| true);
    let elapsed = started.elapsed();
    assert_eq!((registry.tool_count(), hits.is_empty()), (PACKAGES, false));
    elapsed
}

fn decode_all(directory: &Path) {
    let files: Vec<PathBuf> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    let components: Vec<_> = files
        .iter()
        .filter(|path| path.extension().is_some_and(|extension| extension == "wasm"))
        .collect();
    let cores = std::thread::available_parallelism().map_or(2, usize::from);
    std::thread::scope(|scope| {
        for part in components.chunks(components.len().div_ceil(cores)) {
            scope.spawn(move || {
                for path in part {
                    let bytes = fs::read(path).unwrap();
                    let context = PackageContext {
                        name: "package",
                        adjacent_wit: None,
                    };
                    Inspection::from_bytes(&bytes, context).unwrap();
                }
            });
        }
    });
}

/// A model with a pseudo-random vector for each word, of the usual length of word vectors.
struct RandomVectors;

impl EmbeddingModel for RandomVectors {
    fn embed(&self, text: &str) -> Option<Vec<f32>> {
        const WIDTH: usize = 256;
        let mut sum = vec![0.0; WIDTH];
        for word in text.split(|c: char| !c.is_alphanumeric()) {
            let mut state = word
                .bytes()
                .fold(0_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
            for component in &mut sum {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                *component += (state >> 16) as f32 - 32_768.0;
            }
        }
        Some(sum)
    }
}

fn searches(kind: &str, tools: usize, mut catalog: Catalog) {
    for number in 0..tools {
        let (verb, noun, place) = words(number);
        let mut document = Document::new(
            format!("package-{number}#{verb}-{noun}-{place}"),
            format!("{verb}_{noun}_{place}"),
            format!("Can {verb} a {noun} that belongs to the {place}, number {number}."),
        );
        document.use_case = format!("When the user wants to {verb} something about a {noun}");
        document.examples = format!("{verb} the {noun} of my {place}");
        catalog.put(&format!("package-{number}.wasm"), [document]);
    }
    let mut times: Vec<Duration> = (0..SEARCHES)
        .map(|number| {
            let (verb, noun, place) = words(number * 7);
            let query = Query::new(format!("please {verb} the {noun} from our {place} for tomorrow"));
            timed(|| assert!(!catalog.search(&query, |_| true).is_empty()))
        })
        .collect();
    times.sort();
    let at = |share: f64| times[((times.len() as f64 * share) as usize).min(times.len() - 1)];
    println!(
        "search by {kind} over {tools} tools: p50 {:.3} ms, p99 {:.3} ms",
        ms(at(0.5)),
        ms(at(0.99))
    );
}

fn timed(work: impl FnOnce()) -> Duration {
    let started = Instant::now();
    work();
    started.elapsed()
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1_000.0
}
