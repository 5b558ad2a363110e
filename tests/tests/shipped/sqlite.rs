//! The plugin whose library is written in C.

use std::fs;
use std::path::Path;

use serde_json::json;
use toolwit::build::{Build, BuildError, Language, Silent};

use crate::host::Host;

/// Whether C code can be compiled here. If not, the error of the build must name the missing program.
#[expect(clippy::print_stderr, reason = "a skipped test is reported by name")]
async fn has_c_compiler() -> bool {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../plugins/sqlite");
    let Some(missing) = Language::C.missing_tool(&source) else {
        return true;
    };
    let out = tempfile::tempdir().unwrap();
    match Build::new(&source).out(out.path()).run(&Silent).await {
        Err(BuildError::MissingTool(found)) => assert_eq!(found, missing),
        other => panic!("{other:?}"),
    }
    eprintln!("skipped: sqlite, because `{}` is not installed", missing.program);
    false
}

#[tokio::test]
async fn a_database_is_created_changed_and_queried_with_a_grant() {
    if !has_c_compiler().await {
        return;
    }
    let host = Host::with_files("sqlite", "read-write").await;
    let database = "/data/shop.db";
    let create = json!({"database": database, "sql": "CREATE TABLE cake (name TEXT, price REAL)", "create": true});
    host.value("execute", create).await;
    let insert = json!({
        "database": database,
        "sql": "INSERT INTO cake VALUES (?1, ?2), ('Roll', NULL)",
        "parameters": [{"text": "Torte"}, {"real": 4.5}],
    });
    assert_eq!(host.value("execute", insert).await["changed_rows"], 2);
    let query = json!({
        "database": database,
        "sql": "SELECT name, price FROM cake WHERE price > ? OR price IS NULL ORDER BY name",
        "parameters": [{"integer": 4}],
    });
    let rows = host.value("query", query).await;
    assert_eq!(
        rows,
        json!({"columns": ["name", "price"], "rows": [["Roll", null], ["Torte", "4.5"]], "truncated": false})
    );
    let tables = host.value("list_tables", json!({"database": database})).await;
    assert_eq!(tables[0]["sql"], "CREATE TABLE cake (name TEXT, price REAL)");
    let all_or_nothing = json!({"database": database, "sql": "DELETE FROM cake; DELETE FROM bread"});
    assert!(
        host.failure("execute", all_or_nothing)
            .await
            .contains("no such table: bread")
    );
    let files: Vec<_> = fs::read_dir(host.data())
        .unwrap()
        .map(|file| file.unwrap().file_name())
        .collect();
    assert_eq!(files, ["shop.db"], "neither a lock nor a journal is left");
    let header = fs::read(host.data().join("shop.db")).unwrap();
    assert!(header.starts_with(b"SQLite format 3\0"), "other programs can read it");
}

#[tokio::test]
async fn databases_beyond_the_grant_are_refused() {
    if !has_c_compiler().await {
        return;
    }
    let writer = Host::with_files("sqlite", "read-write").await;
    let create =
        json!({"database": "/data/a.db", "sql": "CREATE TABLE t (x); INSERT INTO t VALUES (7)", "create": true});
    writer.value("execute", create).await;
    let reader = Host::with_files("sqlite", "read").await;
    fs::copy(writer.data().join("a.db"), reader.data().join("a.db")).unwrap();
    fs::copy(writer.data().join("a.db"), reader.data().join("../secret.db")).unwrap();
    let select = |database: &str| json!({"database": database, "sql": "SELECT x FROM t"});
    assert_eq!(
        reader.value("query", select("/data/a.db")).await["rows"],
        json!([["7"]])
    );
    for outside in ["/data/../secret.db", "/secret.db", "secret.db"] {
        let refused = reader.failure("query", select(outside)).await;
        assert!(refused.contains("in a granted directory"), "{refused}");
    }
    let before = fs::read(reader.data().join("a.db")).unwrap();
    let delete = json!({"database": "/data/a.db", "sql": "DELETE FROM t"});
    let refused = reader.failure("execute", delete).await;
    assert!(refused.contains("granted for writing"), "{refused}");
    let attach = json!({"database": "/data/a.db", "sql": "ATTACH '/data/b.db' AS b"});
    assert!(writer.failure("execute", attach).await.contains("may not do that"));
    let copy = json!({"database": "/data/a.db", "sql": "VACUUM INTO '/data/b.db'"});
    assert!(writer.failure("query", copy).await.contains("may not do that"));
    assert!(!writer.data().join("b.db").exists());
    assert_eq!(fs::read(reader.data().join("a.db")).unwrap(), before);

    let denied = Host::without_grant("sqlite").await;
    let refused = denied.failure("query", select("/data/a.db")).await;
    assert!(refused.contains("in a granted directory"), "{refused}");
}

#[tokio::test]
async fn the_log_of_another_program_is_read_and_its_database_is_not_changed() {
    if !has_c_compiler().await {
        return;
    }
    let host = Host::with_files("sqlite", "read-write").await;
    let other = rusqlite::Connection::open(host.data().join("live.db")).unwrap();
    other.pragma_update(None, "journal_mode", "WAL").unwrap();
    other
        .execute_batch("CREATE TABLE t (x); INSERT INTO t VALUES (7)")
        .unwrap();
    let count = json!({"database": "/data/live.db", "sql": "SELECT count(*) FROM t"});
    assert_eq!(host.value("query", count.clone()).await["rows"], json!([["1"]]));
    let insert = json!({"database": "/data/live.db", "sql": "INSERT INTO t VALUES (8)"});
    assert!(
        host.failure("execute", insert.clone())
            .await
            .contains("another program")
    );
    drop(other);
    host.value("execute", insert).await;
    assert_eq!(host.value("query", count).await["rows"], json!([["2"]]));
}

#[tokio::test]
async fn a_query_without_end_is_stopped() {
    if !has_c_compiler().await {
        return;
    }
    let host = Host::with_files("sqlite", "read-write").await;
    let endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT sum(i) FROM n";
    let create = json!({"database": "/data/a.db", "sql": "CREATE TABLE t (x)", "create": true});
    host.value("execute", create).await;
    let stopped = host
        .failure("query", json!({"database": "/data/a.db", "sql": endless}))
        .await;
    assert!(stopped.contains("fuel") || stopped.contains("time"), "{stopped}");
}
