#![allow(clippy::unwrap_used, clippy::panic)]

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::json;

use super::*;
use toolwit_core::ErrorKind;
use toolwit_core::limits::{Amount, Limit, all_limits};
use toolwit_sandbox::{Inspection, PackageContext};

/// A manifest with most keys. `chain` names the resources whose methods are declared to the model from the start, before a call
/// has returned an instance.
const EXAMPLE: &str = r#"
version = "1.2.0"
description = "Weather of the world"
category = "weather"
tags = ["forecast"]
frameworks = ["rust"]
use_case = "When the user asks about the weather"
state = "conversation"
limitations = "Five days at most"
examples = ["Will it rain in Oslo tomorrow?"]
chain = ["station"]

[[environment]]
name = "WEATHER_KEY"
description = "A key of the weather service"
required = true

[hints]
read_only = true

[ranking]
quality = 80
popularity = 12000

[limits]
fuel = 1000
wall = "2s"
memory_bytes = "32MiB"

[[tools]]
export = "add"
description = "Adds"
use_case = "When sums are asked for"
limitations = "Whole numbers only"
examples = ["What is 1 + 2?"]

[entities.station]
id = "code"
rebind = "latest"
"#;

fn component(text: &str) -> Vec<u8> {
    wat::parse_str(text).unwrap()
}

fn adder_component() -> Vec<u8> {
    component(
        r#"(component
            (core module $m (func (export "add") (param i32 i32) (result i32)
                (i32.add (local.get 0) (local.get 1))))
            (core instance $i (instantiate $m))
            (func (export "add") (param "a" s32) (param "b" s32) (result s32)
                (canon lift (core func $i "add")))
        )"#,
    )
}

fn inspect(bytes: &[u8], manifest: &Manifest) -> Result<Inspection, toolwit_core::Error> {
    let context = PackageContext {
        name: "sum",
        adjacent_wit: None,
    };
    Inspection::from_bytes_with(bytes, context, &manifest.annotations())
}

// accept: 104
#[test]
fn fields_of_a_manifest_are_parsed() {
    let manifest = Manifest::parse(EXAMPLE, "weather.toml").unwrap();
    assert_eq!(manifest.environment[0].name, "WEATHER_KEY");
    assert!(manifest.environment[0].required);
    assert_eq!(
        (manifest.ranking.quality, manifest.ranking.popularity),
        (Some(80), Some(12_000))
    );
    assert!(Manifest::parse("ranking.quality = 101", "weather.toml").is_err());
    let overrides = manifest.annotations().limits;
    assert_eq!(overrides.fuel_max, Some(1000));
    assert_eq!(overrides.wall_max, Some(Duration::from_secs(2)));
    assert_eq!(overrides.memory_bytes_max, Some(32 << 20));
    assert_eq!(manifest.tool("sum#add", "add").unwrap().examples.len(), 1);
    assert_eq!(manifest.entities["station"].rebind, RebindSetting::Latest);
}

#[test]
fn unknown_key_and_invalid_amount_are_refused_with_line_and_column() {
    for (text, position, expected) in [
        ("tags = []\ncategry = \"x\"\n", "w.toml:2:1", "categry"),
        ("[limits]\nwall = \"soon\"\n", "w.toml:2:8", "span of time"),
        ("[[tools]]\nexport = \"a\"\ntier = \"rich\"\n", "w.toml:3:1", "tier"),
        ("[[environment]]\nnam = \"a\"\n", "w.toml:2:1", "nam"),
        ("x = ", "w.toml:1:5", ""),
    ] {
        let error = Manifest::parse(text, "w.toml").unwrap_err();
        assert_eq!(error.kind, ErrorKind::Configuration);
        assert!(
            error.message.starts_with(position) && error.message.contains(expected),
            "{}",
            error.message
        );
    }
}

// accept: 105
#[test]
fn tier_is_computed() {
    let tier = |text: &str| Manifest::parse(text, "m").unwrap().tier();
    assert_eq!(tier("category = \"x\"\ntags = [\"y\"]"), Tier::Minimal);
    assert_eq!(tier("use_case = \"x\""), Tier::Rich);
    assert_eq!(tier("[[environment]]\nname = \"K\""), Tier::Rich);
    assert!(Manifest::parse("tier = \"rich\"", "m").is_err());
}

// accept: 131
#[test]
fn use_case_limitations_and_examples_are_in_the_description() {
    let mut manifest = Manifest::parse(&EXAMPLE[..EXAMPLE.find("[entities").unwrap()], "m").unwrap();
    // The manifest declares the methods of the resource `station` from the start, but this component has no resources.
    manifest.chain.clear();
    let inspection = inspect(&adder_component(), &manifest).unwrap();
    let description = &inspection.tools[0].description;
    for text in [
        "Adds",
        "When sums are asked for",
        "Whole numbers only",
        "What is 1 + 2?",
        "Five days at most",
        "it changes nothing",
    ] {
        assert!(description.contains(text), "{description}");
    }
}

// accept: 138
#[test]
fn a_manifest_with_an_unknown_export_or_entity_is_refused() {
    let manifest = Manifest::parse("[[tools]]\nexport = \"subtract\"", "m").unwrap();
    let error = inspect(&adder_component(), &manifest).unwrap_err();
    assert!(error.message.contains("`subtract`"), "{}", error.message);
    assert!(
        error.suggestion.as_ref().unwrap().contains("`add`"),
        "{:?}",
        error.suggestion
    );
    let manifest = Manifest::parse("[entities.station]\nid = \"code\"", "m").unwrap();
    assert!(
        inspect(&adder_component(), &manifest)
            .unwrap_err()
            .message
            .contains("`station`")
    );
}

#[test]
fn embedded_manifest_is_read() {
    let component_with = |text: &str| component(&format!("(component (@custom \"{MANIFEST_SECTION}\" {text:?}))"));
    let manifest = Manifest::embedded(&component_with("category = 'x'")).unwrap().unwrap();
    assert_eq!(manifest.category.as_deref(), Some("x"));
    assert!(
        Manifest::embedded(&component_with("nonsense = 1"))
            .unwrap_err()
            .message
            .starts_with("toolwit:manifest:1:1")
    );
    assert!(Manifest::embedded(&component("(component)")).unwrap().is_none());
}

/// Set `UPDATE_SCHEMA=1` to update the file.
#[test]
fn published_schema_matches_the_code() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("manifest.schema.json");
    let schema = Manifest::json_schema();
    #[allow(clippy::disallowed_methods, reason = "a switch of this test")]
    if std::env::var_os("UPDATE_SCHEMA").is_some() {
        std::fs::write(&path, format!("{schema:#}\n")).unwrap();
    }
    let published: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    assert_eq!(published, schema);

    let validator = jsonschema::validator_for(&schema).unwrap();
    let example: toml::Value = toml::from_str(EXAMPLE).unwrap();
    assert!(validator.is_valid(&serde_json::to_value(example).unwrap()));
    for wrong in [
        json!({"categry": "x"}),
        json!({"tags": "x"}),
        json!({"tools": [{"description": "x"}]}),
    ] {
        assert!(!validator.is_valid(&wrong), "{wrong}");
        let text = toml::to_string(&wrong).unwrap();
        assert!(Manifest::parse(&text, "m").is_err(), "{text}");
    }
}

// attack: J4
#[test]
fn texts_that_are_shown_in_one_line_must_be_short_and_printable() {
    let with_version = |text: &str| Manifest::parse(&format!("version = {text:?}"), "w.toml");
    let with_variable = |name: &str, description: &str| {
        let text = format!("[[environment]]\nname = {name:?}\ndescription = {description:?}\n");
        Manifest::parse(&text, "w.toml")
    };
    assert!(with_version("1.2.0-β").is_ok() && with_version(&"1".repeat(128)).is_ok());
    assert!(with_variable("key", &"a\n".repeat(500)).is_ok());
    for (refused, position) in [
        (with_version(&"1".repeat(200_000)), "w.toml:1:11: "),
        (with_version("1\nhint: x"), "w.toml:1:11: "),
        (with_variable("", "x"), "w.toml:2:8: "),
        (with_variable("a\nb", "x"), "w.toml:2:8: "),
        (with_variable(&"k".repeat(129), "x"), "w.toml:2:8: "),
        (with_variable("key", &"x".repeat(1_001)), "w.toml:3:15: "),
    ] {
        let error = refused.unwrap_err();
        assert!(error.message.starts_with(position), "{error}");
        assert!(error.message.len() < 100, "{error}");
    }
}

#[test]
fn earlier_names_of_limits_are_accepted() {
    let with_earlier_names = Manifest::parse("[limits]\nmemory = \"1MiB\"\nresult = \"1KiB\"\n", "w.toml").unwrap();
    let with_current_names =
        Manifest::parse("[limits]\nmemory_bytes = \"1MiB\"\nresult_bytes = \"1KiB\"\n", "w.toml").unwrap();
    assert_eq!(with_earlier_names, with_current_names);
}

#[test]
fn each_limit_that_can_be_requested_has_a_key_of_its_name() {
    let settings = serde_json::to_value(LimitSettings::default()).unwrap();
    let keys: BTreeSet<_> = settings.as_object().unwrap().keys().map(String::as_str).collect();
    let limits = all_limits();
    assert_eq!(keys, limits.iter().filter_map(Limit::key).collect());
    for limit in limits.iter().filter(|limit| limit.key().is_some()) {
        let value = match limit.default {
            Amount::Bytes(_) => "\"1KiB\"",
            Amount::Time(_) => "\"1s\"",
            _ => "3",
        };
        let text = format!("[limits]\n{} = {value}\n", limit.key().unwrap());
        let overrides = Manifest::parse(&text, "w.toml").unwrap().annotations().limits;
        assert_ne!(overrides, LimitOverrides::default(), "{text}");
    }
}
