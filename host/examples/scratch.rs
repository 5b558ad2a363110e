use std::sync::Arc;
use toolwit::plugin::*;
use toolwit::*;
#[tokio::main(flavor = "multi_thread")]
async fn main() {
    let runtime = Runtime::new(RuntimeOptions::default()).unwrap();
    let path = std::env::args().nth(1).unwrap();
    let plugin = match Plugin::from_file(&runtime, "customers", path.into()).await {
        Ok(p) => p,
        Err(e) => {
            println!("ERR {e}");
            return;
        }
    };
    let scope = Scope::new();
    println!("{}", serde_json::to_string_pretty(&plugin.inspection().tools).unwrap());
    println!("{:?}", plugin.inspection().skipped);
    println!("{:?}", plugin.prepare().await);
    let mut set = ToolSet::new();
    for t in plugin.tools(&scope) {
        set.add(t);
    }
    let mut i = 2;
    let args: Vec<String> = std::env::args().collect();
    while i + 1 < args.len() {
        let Lookup::Found(t) = set.look_up(&args[i]) else {
            println!(
                "no {}: {:?}",
                args[i],
                set.iter().map(|t| t.name.to_string()).collect::<Vec<_>>()
            );
            return;
        };
        let a = parse_arguments(&args[i + 1]).unwrap().arguments;
        let r = t.tool.call(a, &ToolContext::new()).await;
        match r {
            Ok(r) => {
                println!("{} -> {} {:?}", args[i], r.for_llm, r.usage);
                for p in &r.providers {
                    for t in p.tools() {
                        set.add(t);
                    }
                }
            }
            Err(e) => println!("ERR {}", serde_json::to_string(e.report()).unwrap()),
        }
        i += 2;
    }
    let _ = Arc::new(());
}
