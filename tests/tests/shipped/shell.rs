//! The shipped shell.

use std::fs;

use serde_json::{Value, json};

use crate::host::Host;

async fn run(host: &Host, script: &str) -> Value {
    host.value("run_script", json!({"script": script})).await
}

#[tokio::test]
async fn scripts_read_and_change_granted_directories() {
    let host = Host::with_files("shell", "read-write").await;
    fs::write(host.data().join("a.txt"), "pear 3\napple 10\n").unwrap();
    let outcome = run(
        &host,
        "sort -k2 -n a.txt | tail -1 > b && mkdir c && mv b c && find /data -type f; ls /",
    )
    .await;
    assert_eq!(outcome["stdout"], "/data/a.txt\n/data/c/b\n/data\n", "{outcome}");
    assert_eq!(fs::read_to_string(host.data().join("c/b")).unwrap(), "apple 10\n");
    let syntax = host.failure("run_script", json!({"script": "rm a.txt; for x"})).await;
    assert!(syntax.contains("`for` is not supported"), "{syntax}");
    assert!(host.data().join("a.txt").is_file());
}

#[tokio::test]
async fn scripts_reach_nothing_else() {
    let host = Host::with_files("shell", "read").await;
    fs::write(host.data().join("a.txt"), "a\n").unwrap();
    fs::write(host.data().join("../secret"), "secret").unwrap();
    assert_eq!(run(&host, "cat a.txt").await["stdout"], "a\n");
    for script in [
        "cat ../secret",
        "cat /etc/passwd",
        "ls /etc",
        "echo x > b",
        "rm a.txt",
        "mv a.txt ../a",
    ] {
        let outcome = run(&host, script).await;
        assert_eq!(
            (&outcome["stdout"], &outcome["status"]),
            (&json!(""), &json!(1)),
            "{script}: {outcome}"
        );
    }
    assert_eq!(fs::read_dir(host.data()).unwrap().count(), 1);
    let denied = Host::without_grant("shell").await;
    assert_eq!(run(&denied, "ls /; echo ok").await["stdout"], "ok\n");
}
