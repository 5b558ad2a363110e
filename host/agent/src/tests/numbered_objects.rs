//! Objects without an id, which a conversation numbers.

use super::*;
use toolwit_core::{NativeEntity, NoArguments};

// accept: 31, accept: 39
#[tokio::test]
async fn objects_without_an_id_get_numbers_and_share_one_set_of_tools() {
    let count = Arc::new(Mutex::new(0));
    let next = count.clone();
    let new = tool("new", move |arguments, _| {
        let mut count = next.lock().unwrap();
        *count += 1;
        let shout = format!("thing {count}!");
        let entity = NativeEntity::new("thing", Arc::new(shout)).method(
            "shout",
            "Shouts.",
            |shout, _: NoArguments, _| async move { Ok::<_, String>((*shout).clone()) },
        );
        let result = match arguments.contains_key("text") {
            true => ToolResult::text("a thing"),
            false => ToolResult::value(json!({"type": "thing", "available_tools": []})),
        };
        Ok(result.with_provider(Arc::new(entity.unwrap())))
    });
    let shout = |id: &str| call([("thing_shout", json!({"thing_id": id}))]);
    let steps = [
        call([("new", json!({})), ("new", json!({"text": true}))]),
        shout("1"),
        shout("2"),
        shout("3"),
        reply("ok"),
    ];
    let (builder, model) = TestModel::playing(steps);
    let outcome = builder.tools([new]).run("go").await.unwrap();
    let results = tool_results(&outcome.history);
    assert_eq!(
        results[0],
        r#"{"type":"thing","id":"1","available_tools":["thing_shout"]}"#
    );
    assert_eq!(results[1], "a thing\n[the `thing` of this result has the id 2]");
    assert_eq!(
        results[2..4],
        ["\"thing 1!\"", "\"thing 2!\""].map(|text| text.trim_matches('"'))
    );
    assert!(results[4].contains("does not exist"), "{}", results[4]);
    assert_eq!(
        model.request(4).names,
        ["new", "thing_shout"],
        "no tools are added for each object"
    );
}
