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
    let syntax = host
        .failure("run_script", json!({"script": "rm a.txt\nfor x in *"}))
        .await;
    assert!(syntax.contains("line 2, column 11: `do` is missing"), "{syntax}");
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

#[tokio::test]
async fn loops_and_functions_run_over_files() {
    let host = Host::with_files("shell", "read-write").await;
    for name in ["a.txt", "b.txt"] {
        fs::write(host.data().join(name), "1\n2\n").unwrap();
    }
    let script = "set -eu\nsum() { total=0; while read -r n; do total=$((total + n)); done < \"$1\"; echo $total; }\n\
        for file in *.txt; do\n  case $file in a*) continue;; esac\n  mv \"$file\" \"${file%.txt}.md\"\ndone\n\
        if [ -f b.md ]; then sum b.md > sum; fi; ls";
    assert_eq!(run(&host, script).await["stdout"], "a.txt\nb.md\nsum\n");
    assert_eq!(fs::read_to_string(host.data().join("sum")).unwrap(), "3\n");
}

#[tokio::test]
async fn scripts_without_end_are_ended() {
    let host = Host::with_files("shell", "read").await;
    let endless = host
        .failure("run_script", json!({"script": "while :; do :; done"}))
        .await;
    assert!(endless.contains("used all its fuel"), "{endless}");
    let recursive = host
        .failure("run_script", json!({"script": "f() { x=$( (f) ); }; f"}))
        .await;
    assert!(recursive.contains("deeper than 160 levels"), "{recursive}");
    let nested = "if :; then { ( f ); }; fi";
    let recursive = host
        .failure("run_script", json!({"script": format!("f() {{ {nested}; }}; f")}))
        .await;
    assert!(recursive.contains("deeper than 160 levels"), "{recursive}");
    let output = host
        .failure(
            "run_script",
            json!({"script": "x=$(seq 9999); while :; do echo $x; done"}),
        )
        .await;
    assert!(
        output.contains("larger than 4 MiB") || output.contains("limit"),
        "{output}"
    );
    assert_eq!(run(&host, "echo again").await["stdout"], "again\n");
}
