//! Plugins that access granted directories.

use std::fs;

use serde_json::json;

use crate::host::Host;

#[tokio::test]
async fn files_are_found_read_and_edited_with_a_grant() {
    let host = Host::with_files("files", "read-write").await;
    fs::create_dir(host.data().join("src")).unwrap();
    fs::write(host.data().join("src/a.rs"), "fn a() {}\n// TODO: test\n").unwrap();
    let granted = host.value("list_files", json!({})).await;
    assert_eq!(granted["entries"][0]["path"], "/data");
    let listed = host
        .value("list_files", json!({"path": "/data", "pattern": "*.rs"}))
        .await;
    assert_eq!(listed["entries"][0]["path"], "/data/src/a.rs");
    let found = host
        .value(
            "search_files",
            json!({"path": "/data", "pattern": "todo", "ignore_case": true}),
        )
        .await;
    assert_eq!(found["matches"][0]["line"], 2, "{found}");
    let edit = json!({"path": "/data/src/a.rs", "old": "TODO: test", "new": "tested"});
    assert_eq!(host.value("edit_file", edit).await, 1);
    let read = host
        .value("read_file", json!({"path": "/data/src/a.rs", "first_line": 2}))
        .await;
    assert_eq!(
        (&read["text"], &read["total_lines"]),
        (&json!("// tested\n"), &json!(2))
    );
    let write = json!({"path": "/data/new/b.txt", "text": "b"});
    host.value("write_file", write.clone()).await;
    assert!(host.failure("write_file", write).await.contains("exists"));
    assert_eq!(fs::read_to_string(host.data().join("new/b.txt")).unwrap(), "b");
}

#[tokio::test]
async fn files_outside_of_the_grant_are_refused() {
    let read_only = Host::with_files("files", "read").await;
    fs::write(read_only.data().join("a.txt"), "a").unwrap();
    fs::write(read_only.data().join("../secret"), "secret").unwrap();
    assert_eq!(
        read_only.value("read_file", json!({"path": "/data/a.txt"})).await["text"],
        "a"
    );
    for path in ["/data/../secret", "/etc/passwd", "secret"] {
        let refused = read_only.failure("read_file", json!({"path": path})).await;
        assert!(!refused.contains("root:"), "{refused}");
    }
    let edit = json!({"path": "/data/a.txt", "old": "a", "new": "b"});
    read_only.failure("edit_file", edit).await;
    read_only
        .failure("write_file", json!({"path": "/data/b.txt", "text": "b"}))
        .await;
    assert_eq!(fs::read_to_string(read_only.data().join("a.txt")).unwrap(), "a");

    let denied = Host::without_grant("files").await;
    assert_eq!(denied.value("list_files", json!({})).await["entries"], json!([]));
    let refused = denied.failure("read_file", json!({"path": "/data/a.txt"})).await;
    assert!(refused.contains("in a granted directory"), "{refused}");
}

#[tokio::test]
async fn csv_files_are_read_with_a_grant_and_text_without_one() {
    let host = Host::with_files("csv", "read").await;
    fs::write(
        host.data().join("orders.csv"),
        "city,price\nRome,0.1\nParis,5\nRome,0.2\n",
    )
    .unwrap();
    let source = json!({"file": "/data/orders.csv"});
    let sum = json!([{"function": "sum", "column": "price"}]);
    let groups = json!({"source": source, "by": ["city"], "aggregates": sum});
    let groups = host.value("group_rows", groups).await;
    assert_eq!(groups["csv"], "city,rows,sum(price)\nRome,2,0.3\nParis,1,5\n");

    let denied = Host::without_grant("csv").await;
    let refused = denied.failure("describe_table", json!({"source": source})).await;
    assert!(refused.contains("granted directory"), "{refused}");
    let text = json!({"text": "a;b\n1;2\n3;4\n"});
    let condition = json!([{"column": "a", "comparison": "greater", "value": "1"}]);
    let rows = denied
        .value("filter_rows", json!({"source": text, "conditions": condition}))
        .await;
    assert_eq!((&rows["csv"], &rows["total_rows"]), (&json!("a,b\n3,4\n"), &json!(1)));
    let join = json!({"left": text, "right": {"text": "a,c\n3,x\n"}, "on": [{"left": "a", "right": "a"}]});
    assert_eq!(denied.value("join_tables", join).await["csv"], "a,b,c\n3,4,x\n");
}

#[tokio::test]
async fn images_are_described_with_a_grant() {
    let png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x03\0\0\0\x02\x08\x02\0\0\0";
    let host = Host::with_files("image_info", "read").await;
    fs::write(host.data().join("a.png"), png).unwrap();
    fs::write(host.data().join("b.png"), "text").unwrap();
    let image = host.value("describe_image", json!({"path": "/data/a.png"})).await;
    assert_eq!(
        (&image["format"], &image["width"], &image["height"]),
        (&json!("png"), &json!(3), &json!(2))
    );
    host.failure("describe_image", json!({"path": "/data/b.png"})).await;
    let denied = Host::without_grant("image_info").await;
    let refused = denied.failure("describe_image", json!({"path": "/data/a.png"})).await;
    assert!(refused.contains("granted directory"), "{refused}");
}
