//! Resources in every position of a type, with valid and invalid ids and descriptions.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use toolwit::limits::LimitOverrides;
use toolwit::tool::Origin;
use toolwit::{ErrorKind, Event, ScriptedModel, Toolwit};
use toolwit_tests::{Conversation, Guests};

async fn museum() -> Conversation {
    let guests = Guests::cached();
    Conversation::over(&[&guests.rust("museum").await])
}

fn tools(entity: &Value) -> Vec<&str> {
    let listed = entity["available_tools"]
        .as_array()
        .unwrap_or_else(|| panic!("{entity}"));
    listed.iter().map(|name| name.as_str().unwrap()).collect()
}

// accept: 28, accept: 39
#[tokio::test]
async fn description_is_merged_into_the_entity_and_fields_of_the_host_win() {
    let mut museum = museum().await;
    let piece = museum.value("piece_find", json!({"id": "p-1"})).await;
    assert_eq!(piece["type"], "piece");
    assert_eq!(piece["id"], "p-1", "the guest's own field of that name is not the id");
    assert_eq!(piece["title"], "Piece p-1");
    assert_eq!(
        tools(&piece),
        [
            "piece_p1_describe",
            "piece_p1_parts",
            "piece_p1_look",
            "piece_p1_is_same",
            "piece_p1_take"
        ]
    );
    assert_eq!(museum.value("piece_p1_look", json!({})).await, json!(1));
}

// accept: 29
#[tokio::test]
async fn resources_are_found_in_every_position_of_a_result() {
    let mut museum = museum().await;
    let two = museum.value("two", json!({})).await;
    assert_eq!(
        (&two["left"]["id"], &two["right"]["id"]),
        (&json!("left"), &json!("right"))
    );
    assert_eq!(two["note"], "side by side");
    assert_eq!(museum.value("maybe", json!({"there": false})).await, Value::Null);
    assert_eq!(museum.value("maybe", json!({"there": true})).await["id"], "maybe");
    assert_eq!(museum.value("either", json!({"fine": true})).await["id"], "either");
    let failed = museum.call("either", json!({"fine": false})).await.unwrap();
    assert!(failed.is_error());
    let ticket = failed.value.unwrap();
    assert_eq!(tools(&ticket), ["ticket_price"]);
    let price = museum.value("ticket_price", json!({"ticket_id": ticket["id"]})).await;
    assert_eq!(price, json!(3), "an entity in an error is live as well");
}

#[tokio::test]
async fn entities_of_two_types_in_one_result_list_their_tools() {
    let mut museum = museum().await;
    let mixed = museum.value("mixed", json!({})).await;
    assert_eq!(tools(&mixed[0]), ["ticket_price"]);
    assert_eq!(tools(&mixed[1][0])[0], "piece_m1_describe");
    assert_eq!(tools(&mixed[1][1])[0], "piece_m2_describe");
    assert!(mixed[2].get("available_tools").is_none(), "listed once per type");
    let second = museum.value("ticket_price", json!({"ticket_id": mixed[2]["id"]})).await;
    assert_eq!(second, json!(2));
}

// accept: 38, accept: 40
#[tokio::test]
async fn more_than_sixteen_entities_of_a_type_share_their_tools() {
    let mut museum = museum().await;
    let before = museum.names().len();
    let some = museum.value("crowd", json!({"count": 24})).await;
    assert_eq!(
        museum.names().len(),
        before + 16 * 5,
        "sixteen entities have separate tools"
    );
    assert_eq!(some[2], json!({"err": "broken"}));
    let before = museum.names().len();
    let many = museum.value("crowd", json!({"count": 600})).await;
    assert_eq!(
        museum.names().len(),
        before + 5,
        "four hundred entities need as many tools as one"
    );
    assert_eq!(many.as_array().unwrap().len(), 600);
    assert_eq!(
        tools(&many[0]["ok"])[2],
        "piece_p0_look",
        "an entity keeps the tools that it has"
    );
    assert_eq!(tools(&many[24]["ok"])[2], "piece_look");
    assert!(many[25]["ok"].get("available_tools").is_none());
    assert_eq!(many[600 - 2]["ok"]["id"], "p-598");
    assert!(
        many[600 - 2]["ok"].get("title").is_none(),
        "only the first few are described"
    );
    assert_eq!(museum.value("piece_look", json!({"piece_id": "p-598"})).await, json!(1));
    assert_eq!(museum.value("piece_look", json!({"piece_id": "p-0"})).await, json!(1));
    assert_eq!(
        museum.value("piece_p0_look", json!({})).await,
        json!(2),
        "both forms of the tool reach the same instance"
    );
    let before = museum.names();
    let alone = museum.value("piece_find", json!({"id": "p-598"})).await;
    assert_eq!(
        tools(&alone)[2],
        "piece_look",
        "one set of tools, also when it is returned alone"
    );
    assert_eq!(museum.names(), before);
    assert_eq!(museum.value("piece_look", json!({"piece_id": "p-598"})).await, json!(2));
}

// accept: 31
#[tokio::test]
async fn resource_with_an_unusable_id_is_not_an_entity_and_affects_no_other() {
    let mut museum = museum().await;
    museum.value("piece_find", json!({"id": "vase"})).await;
    for (flaw, reason) in [
        ("empty", "its `id` is empty"),
        ("blank", "its `id` is empty"),
        ("long", "its `id` has 1000 bytes; at most 256 are allowed"),
        ("control", "its `id` contains control or invisible characters"),
    ] {
        let before = museum.names();
        let wrong = museum.value("wrong", json!({"flaw": flaw})).await;
        assert_eq!(wrong, json!({"type": "piece", "error": reason}));
        assert_eq!(museum.names(), before);
    }
    assert_eq!(museum.value("piece_vase_look", json!({})).await, json!(1));
}

// accept: 31
#[tokio::test]
async fn resource_with_an_unusable_id_is_an_event() {
    let directory = tempfile::tempdir().unwrap();
    let component = Guests::rust_bytes("museum").await;
    std::fs::write(directory.path().join("museum.wasm"), component).unwrap();
    let host = Toolwit::builder().plugins(directory.path()).build().await.unwrap();
    let model = ScriptedModel::new()
        .call("piece_find", json!({"id": "vase"}))
        .call("wrong", json!({"flaw": "empty"}))
        .call("wrong", json!({"flaw": "id_traps"}))
        .answer("ok");
    let invalid = Arc::new(Mutex::new(Vec::new()));
    let recorded = invalid.clone();
    let conversation = host
        .conversation()
        .model(model)
        .observer(move |event: &Event, _: &Origin| {
            if let Event::ProviderInvalid { kind, reason } = event {
                recorded.lock().unwrap().push((kind.clone(), reason.clone()));
            }
        });
    conversation.run("go").await.unwrap();
    let invalid = invalid.lock().unwrap();
    assert_eq!(invalid.len(), 2, "a usable id raises no such event: {invalid:?}");
    assert_eq!(invalid[0], ("piece".to_owned(), "its `id` is empty".to_owned()));
    assert!(invalid[1].1.starts_with("its `id` failed"), "{invalid:?}");
}

// accept: 30
#[tokio::test]
async fn id_without_latin_letters_is_replaced_by_its_hash_in_tool_names() {
    let mut museum = museum().await;
    let cat = museum.value("wrong", json!({"flaw": "unlatin"})).await;
    assert_eq!(cat["id"], "猫");
    let look = tools(&cat)[2].to_owned();
    assert!(look.starts_with("piece_") && look.ends_with("_look"), "{look}");
    assert_eq!(museum.value(&look, json!({})).await, json!(1));
}

// accept: 30, accept: 37
#[tokio::test]
async fn similar_ids_have_separate_tools() {
    let mut museum = museum().await;
    for id in ["c-1", "c1", "c 1"] {
        museum.value("piece_find", json!({"id": id})).await;
    }
    let looks: Vec<_> = museum
        .names()
        .into_iter()
        .filter(|name| name.ends_with("_look"))
        .collect();
    assert_eq!(looks.len(), 3);
    for look in looks {
        assert_eq!(
            museum.value(&look, json!({})).await,
            json!(1),
            "each tool reaches its own piece"
        );
    }
}

// attack: B1
#[tokio::test]
async fn id_and_describe_share_the_limits_of_the_call() {
    let guests = Guests::cached();
    let limits = LimitOverrides::default().with_fuel_max(50_000_000);
    let mut museum = Conversation::over(&[&guests.rust("museum").await]).limited(limits);
    for (flaw, kind) in [("id-spins", ErrorKind::Fuel), ("describe-traps", ErrorKind::Trap)] {
        museum.value("piece_find", json!({"id": "vase"})).await;
        let error = museum.error("wrong", json!({"flaw": flaw.replace('-', "_")})).await;
        assert_eq!(error.kind, kind, "{flaw}: {error:#?}");
        let gone = museum.error("piece_vase_look", json!({})).await;
        assert_eq!(gone.kind, ErrorKind::EntityGone);
        let hint = gone.suggestion.as_deref().unwrap();
        assert_eq!(
            hint,
            "get one with `piece_new` or `parts` of a `piece` or `piece_find` or `two`"
        );
    }
    museum.value("piece_find", json!({"id": "vase"})).await;
    assert_eq!(
        museum.value("piece_vase_look", json!({})).await,
        json!(1),
        "the entity is live again"
    );
}

#[tokio::test]
async fn oversized_description_fails_the_result_and_keeps_the_instance() {
    let mut museum = museum().await;
    museum.value("piece_find", json!({"id": "vase"})).await;
    let error = museum.error("wrong", json!({"flaw": "describe_long"})).await;
    assert_eq!(error.kind, ErrorKind::ResultBytes, "{error:#?}");
    assert_eq!(museum.value("piece_vase_look", json!({})).await, json!(1));
}

#[tokio::test]
async fn constructor_may_fail_and_a_panic_reports_the_guest_log() {
    let mut museum = museum().await;
    let piece = museum.value("piece_new", json!({"id": "vase"})).await;
    assert_eq!(piece["id"], "vase");
    let failed = museum.call("piece_new", json!({"id": "1st"})).await.unwrap();
    assert!(failed.is_error());
    assert_eq!(failed.for_llm, "`1st` begins with a digit");
    assert_eq!(museum.value("piece_find", json!({"id": "nothing"})).await, Value::Null);
    let error = museum.error("wrong", json!({"flaw": "describe_traps"})).await;
    assert!(error.message.contains("the description is missing"), "{error}");
}

// accept: 31
#[tokio::test]
async fn a_trapping_id_costs_the_id_and_the_instance_but_not_the_value() {
    let mut museum = museum().await;
    museum.value("piece_find", json!({"id": "vase"})).await;
    let piece = museum.value("wrong", json!({"flaw": "id_traps"})).await;
    assert_eq!(piece["type"], "piece");
    let reason = piece["error"].as_str().unwrap();
    assert!(
        reason.starts_with("its `id` failed") && reason.contains("the label fell off"),
        "{reason}"
    );
    assert!(piece.get("available_tools").is_none(), "{piece}");
    let gone = museum.error("piece_vase_look", json!({})).await;
    assert_eq!(
        gone.kind,
        ErrorKind::EntityGone,
        "a guest that trapped is never entered again"
    );
    museum.value("piece_find", json!({"id": "vase"})).await;
    assert_eq!(museum.value("piece_vase_look", json!({})).await, json!(1));
}

// accept: 34
#[tokio::test]
async fn entities_nest_to_any_depth() {
    let mut museum = museum().await;
    museum.value("piece_find", json!({"id": "vase"})).await;
    let mut name = "vase".to_owned();
    for _ in 0..9 {
        museum.value(&format!("piece_{name}_parts"), json!({})).await;
        name.push_str("front");
        assert_eq!(museum.value(&format!("piece_{name}_look"), json!({})).await, json!(1));
    }
}

#[tokio::test]
async fn entities_are_borrowed_and_consumed_by_their_ids() {
    let mut museum = museum().await;
    for id in ["a", "b"] {
        museum.value("piece_find", json!({"id": id})).await;
        museum.value(&format!("piece_{id}_look"), json!({})).await;
    }
    assert_eq!(
        museum.value("piece_a_is_same", json!({"other": "b"})).await,
        json!(false)
    );
    assert_eq!(
        museum.value("piece_a_is_same", json!({"other": "a"})).await,
        json!(true)
    );
    let itself = museum.error("piece_a_take", json!({"other": "a"})).await;
    assert_eq!(itself.kind, ErrorKind::InvalidArguments);
    assert_eq!(museum.value("piece_a_take", json!({"other": "b"})).await, json!(2));
    let gone = museum.error("piece_b_look", json!({})).await;
    assert_eq!(gone.kind, ErrorKind::EntityGone);
    assert_eq!(gone.message, "the piece `b` is gone: it was given to `take`");
    let twice = museum.error("swallow", json!({"all": ["a", null, "a"]})).await;
    assert_eq!(twice.kind, ErrorKind::InvalidArguments);
    assert!(twice.message.starts_with("/all/2: "), "{twice}");
    assert_eq!(museum.value("swallow", json!({"all": ["a", null]})).await, json!(1));
    let again = museum.value("piece_find", json!({"id": "b"})).await;
    assert_eq!(again["id"], "b");
    assert_eq!(
        museum.value("piece_b_look", json!({})).await,
        json!(1),
        "a new piece with the same id"
    );
}

#[tokio::test]
async fn plugin_never_reaches_entities_of_another() {
    let guests = Guests::cached();
    let (mine, twin) = (guests.rust("museum").await, guests.rust("museum").await);
    let mut both = Conversation::over(&[&mine, &twin]);
    both.value("piece_find", json!({"id": "vase"})).await;
    assert_eq!(both.value("piece_vase_look", json!({})).await, json!(1));
    // Both have the same name and digest: they are one plugin, and share the session.
    assert_eq!(both.names().iter().filter(|name| name.ends_with("_look")).count(), 1);
    let token = guests.wat("token").await;
    let mut others = Conversation::over(&[&mine, &token]);
    others.value("make", json!({})).await;
    let foreign = others.error("swallow", json!({"all": ["1"]})).await;
    assert_eq!(foreign.kind, ErrorKind::InvalidArguments);
}

#[tokio::test]
async fn end_of_a_conversation_frees_its_instances() {
    let guests = Guests::with(|options| {
        options.engine_limits.instances_max = 3;
        options.engine_limits.sessions_max = 100;
    });
    let token = guests.wat("token").await;
    for _ in 0..20 {
        let mut conversation = Conversation::over(&[&token]);
        conversation.value("make", json!({})).await;
        conversation.end();
    }
    let live: Vec<_> = (0..3).map(|_| Conversation::over(&[&token])).collect();
    for mut conversation in live {
        conversation.value("make", json!({})).await;
    }
}

#[tokio::test]
async fn sessions_of_a_conversation_are_limited() {
    let guests = Guests::with(|options| options.engine_limits.sessions_per_conversation_max = 2);
    let text = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/guests/wat/token.wat")).unwrap();
    let mut plugins = Vec::new();
    for name in ["one", "two", "three"] {
        plugins.push(guests.text(name, &text).await.unwrap());
    }
    let mut conversation = Conversation::over(&[&plugins[0], &plugins[1], &plugins[2]]);
    let mut other = Conversation::over(&[&plugins[0]]);
    other.value("make", json!({})).await;
    for make in ["make", "two_make", "three_make"] {
        conversation.value(make, json!({})).await;
    }
    let gone = conversation.error("token_bump", json!({"token_id": "1"})).await;
    assert_eq!(
        gone.message,
        "the token `1` is gone: the host evicted it to make room for other instances"
    );
    assert_eq!(
        other.value("token_bump", json!({"token_id": "1"})).await,
        json!(1),
        "the session of another conversation is not evicted"
    );
}
