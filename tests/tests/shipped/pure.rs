//! Plugins that need no grant.

use serde_json::json;

use crate::host::Host;

#[tokio::test]
async fn times_are_converted_and_calculated_without_a_grant() {
    let host = Host::without_grant("time").await;
    let time = json!({"time": "2026-07-01T09:30", "from_zone": "Asia/Tokyo", "zone": "Europe/Berlin"});
    let moment = host.value("convert_time", time).await;
    assert_eq!(moment["time"], "2026-07-01T02:30:00+02:00[Europe/Berlin]");
    assert_eq!(
        (&moment["weekday"], &moment["daylight_saving"]),
        (&json!("Wednesday"), &json!(true))
    );
    let now = host.value("convert_time", json!({})).await;
    assert!(now["unix_seconds"].as_i64().unwrap() > 1_700_000_000, "{now}");
    let added = json!({"time": "2026-03-28T12:00", "duration": "1 day", "zone": "Europe/Berlin"});
    assert_eq!(host.value("add_time", added).await["utc"], "2026-03-29T10:00:00Z");
    let days = host
        .value("time_between", json!({"start": "2026-11-20", "end": "2026-12-24"}))
        .await;
    assert_eq!(days["words"], "34 days");
    assert_eq!(
        host.value("find_zones", json!({"query": "new york"})).await,
        json!(["America/New_York"])
    );
    let refused = host.failure("convert_time", json!({"zone": "Germany/Berlin"})).await;
    assert!(refused.contains("Europe/Berlin"), "{refused}");
}

#[tokio::test]
async fn markdown_is_outlined_and_converted_without_a_grant() {
    let host = Host::without_grant("markdown").await;
    let text = "# Guide\n\n## Setup\nRun `it`.\n\n## Use\n[a](javascript:x)\n";
    let outline = host.value("outline", json!({"markdown": text})).await;
    assert_eq!(outline[1], json!({"level": 2, "title": "Setup", "line": 3}));
    let section = json!({"markdown": text, "title": "Setup"});
    assert_eq!(host.value("extract_section", section).await, "## Setup\nRun `it`.\n\n");
    let html = host.value("markdown_to_html", json!({"markdown": text})).await;
    assert!(html.as_str().unwrap().contains("<h2>Setup</h2>"), "{html}");
    assert!(!html.as_str().unwrap().contains("javascript"), "{html}");
    let plain = host.value("markdown_to_text", json!({"markdown": text})).await;
    assert_eq!(plain, "Guide\n\nSetup\n\nRun it.\n\nUse\n\na");
    assert_eq!(
        host.value("list_links", json!({"markdown": text})).await[0]["text"],
        "a"
    );
    let refused = host
        .failure("extract_section", json!({"markdown": text, "title": "x"}))
        .await;
    assert!(refused.contains("`Setup`"), "{refused}");
}
