//! Every bound has an error of its own, which tells the limit and the use.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolwit::limits::LimitRequest;
use toolwit::{Error, ErrorKind, Phase};
use toolwit_tests::{Conversation, Guests};

#[tokio::test(flavor = "multi_thread")]
async fn explore() {
    let guests = Guests::new();
    let compute = guests.wat("compute").await;
    let results = guests.wat("results").await;
    let host = guests.wat("host-calls").await;
    let token = guests.wat("token").await;
    println!("{:?} {:?}", token.inspection().skipped, host.inspection().skipped);
    for t in &token.inspection().tools { println!("{}", serde_json::to_string(t).unwrap()); }
    let limits = LimitRequest::none().fuel(50_000_000).wall(Duration::from_millis(400)).memory_bytes(8 << 20);
    let mut c = Conversation::over(&[&compute, &results, &host, &token]).bounded(limits);
    println!("{:?}", c.names());
    for (n, a) in [
        ("add", json!({"a": "9007199254740993", "b": 0})),
        ("trap", json!({})),
        ("compute_spin", json!({})),
        ("spin", json!({})),
        ("recurse", json!({})),
        ("fill", json!({})),
        ("fill_both", json!({})),
        ("fill_table", json!({})),
        ("copy", json!({})),
        ("text", json!({"bytes": 100})),
        ("text", json!({"bytes": 1<<20})),
        ("text", json!({"bytes": (1<<20) + 1})),
        ("claim", json!({"bytes": 200<<20})),
        ("booleans", json!({"count": 600_000})),
        ("booleans", json!({"count": 1000})),
        ("not_utf8", json!({})),
        ("not_a_char", json!({})),
        ("misaligned", json!({})),
        ("sleep", json!({"seconds": 3600})),
        ("flood", json!({})),
        ("look_at_the_clock", json!({"times": 10000})),
        ("look_at_the_clock", json!({"times": 10001})),
        ("random", json!({"bytes": 1<<20})),
        ("random", json!({"bytes": (1<<20) + 1})),
        ("random", json!({"bytes": 1u64 << 40})),
        ("exit", json!({"failed": false})),
        ("exit", json!({"failed": true})),
        ("print", json!({"times": 1})),
        ("print", json!({"times": 3})),
        ("print", json!({"times": 2000})),
        ("print_much", json!({"bytes": 17 << 20})),
        ("print_much", json!({"bytes": 5 << 20})),
        ("hoard", json!({})),
        ("token_hoard", json!({})),
        ("forge", json!({})),
        ("make", json!({})),
        ("many", json!({"count": 3})),
        ("many", json!({"count": 17})),
        ("fail", json!({})),
        ("sum", json!({"first": "1", "second": "1"})),
        ("burn_beside", json!({"token": "1", "witness": "1"})),
        ("sum", json!({"first": "1", "second": "2"})),
        ("burn", json!({"token": "1"})),
        ("burn", json!({"token": "1"})),
        ("dropped", json!({})),
    ] {
        let look = c.tools.look_up(n);
        if !matches!(look, toolwit::Lookup::Found(_)) { println!("{n}: NO TOOL"); continue; }
        let t = Instant::now();
        match c.call(n, a.clone()).await {
            Ok(r) => println!("{n} {a} -> {:?} {} {:?} {:?} log {:?}", t.elapsed(), r.for_llm.chars().take(200).collect::<String>(), r.is_error, r.usage, r.log.map(|l| l.len())),
            Err(e) => println!("{n} {a} -> {:?} ERR {} [{:?}]", t.elapsed(), serde_json::to_string(&e).unwrap(), std::error::Error::source(&e).map(|s| s.to_string())),
        }
    }
    println!("{:?}", c.names());
    let _ : Option<(Value, Error, ErrorKind, Phase)> = None;
}
