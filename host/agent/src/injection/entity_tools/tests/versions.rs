//! Entities whose code is replaced by another version.

use super::*;

// accept: 37
#[test]
fn an_entity_that_another_version_of_its_code_returns_is_one_object_under_the_same_names() {
    let mut conversation = TestConversation::default();
    let method = |name: &str, id: &str| ToolId::native(&format!("cart.{name}")).bound_to(id);
    let of_version = |version, id: &str, methods: &[&str]| TestEntity {
        version,
        method_ids: methods.iter().map(|name| method(name, id)).collect(),
        ..entity("cart", id)
    };
    conversation.return_entities([
        of_version("1", "c-1", &["add", "drop"]),
        of_version("1", "c-2", &["add"]),
    ]);
    let names: Vec<_> = conversation.tools.iter().map(|tool| tool.name.clone()).collect();
    let again = conversation.return_entities([of_version("1", "c-1", &["add", "drop"])]);
    assert_eq!(bindings(&again), [EntityBinding::Kept]);

    let replaced = conversation.return_entities([of_version("2", "c-1", &["add", "clear"])]);
    assert_eq!(bindings(&replaced), [EntityBinding::Rebound]);
    assert_eq!(replaced.add.len(), 2, "each method acts on the new object");
    assert_eq!(
        replaced.remove,
        [method("drop", "c-1")],
        "the new version does not have it"
    );
    let kept = conversation.return_entities([of_version("2", "c-1", &["add", "clear"])]);
    assert_eq!(bindings(&kept), [EntityBinding::Kept]);
    let other = conversation.return_entities([of_version("2", "c-2", &["add"])]);
    assert_eq!(
        bindings(&other),
        [EntityBinding::Rebound],
        "also after another entity of the type"
    );
    let new_names: Vec<_> = conversation.tools.iter().map(|tool| tool.name.clone()).collect();
    assert!(new_names.starts_with(&names[..1]), "{new_names:?}");
}

// accept: 37, accept: 38
#[test]
fn a_group_replaces_the_members_of_another_version() {
    let mut conversation = TestConversation::default();
    let many = |version: &'static str| {
        let count = ENTITIES_WITH_OWN_TOOLS_MAX + 1;
        (0..count).map(move |number| TestEntity {
            version,
            ..entity("row", &number.to_string())
        })
    };
    conversation.return_entities(many("1"));
    assert_eq!(
        bindings(&conversation.return_entities(many("1"))),
        [EntityBinding::Kept]
    );
    let replaced = conversation.return_entities(many("2"));
    assert_eq!(bindings(&replaced), [EntityBinding::Rebound]);
    let group = conversation.entities.group("native", "row").unwrap();
    assert!(group.contains("0"));
    let single = conversation.return_entities([TestEntity {
        version: "3",
        ..entity("row", "0")
    }]);
    assert_eq!(bindings(&single), [EntityBinding::Rebound], "returned alone");
}
