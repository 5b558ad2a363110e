//! Tests of the catalog: ranking and index updates.
#![allow(clippy::unwrap_used)]

mod cutoff;
mod meaning;
mod methods;

use std::sync::Arc;

use proptest::prelude::*;

use self::meaning::semantic_catalog;
use super::*;

fn sample_catalog() -> Catalog {
    let mut catalog = Catalog::new();
    add_sample_tools(&mut catalog);
    catalog
}

fn add_sample_tools(catalog: &mut Catalog) {
    let tools = [
        ("get_weather", "Returns the weather forecast of a city"),
        ("scrape_websites", "Scrapes a web page and returns its text"),
        ("send_email", "Sends a message to an address"),
        (
            "convert_currency",
            "Converts an amount of money from one currency to another",
        ),
        ("resize_image", "Changes the size of a picture"),
    ];
    for (name, description) in tools {
        catalog.put(name, [Document::new(format!("{name}#{name}"), name, description)]);
    }
}

fn hit_names(catalog: &Catalog, query: &Query) -> Vec<String> {
    catalog
        .search(query, |_| true)
        .into_iter()
        .map(|hit| hit.name)
        .collect()
}

fn first_hit_name(catalog: &Catalog, intent: &str) -> Option<String> {
    hit_names(catalog, &Query::new(intent)).into_iter().next()
}

// accept: 139
#[test]
fn related_forms_of_a_word_match() {
    let catalog = sample_catalog();
    assert_eq!(
        first_hit_name(&catalog, "help me with scraping a website").unwrap(),
        "scrape_websites"
    );
    assert_eq!(first_hit_name(&catalog, "currencies").unwrap(), "convert_currency");
    assert_eq!(first_hit_name(&catalog, "resizing images").unwrap(), "resize_image");
}

// accept: 135
#[test]
fn empty_query_or_empty_index_gives_no_hits() {
    let catalog = sample_catalog();
    assert!(hit_names(&catalog, &Query::new("")).is_empty());
    assert!(hit_names(&catalog, &Query::new(" \n\t")).is_empty());
    assert!(hit_names(&catalog, &Query::new("the of and")).is_empty());
    assert!(hit_names(&Catalog::new(), &Query::new("weather")).is_empty());
    assert!(hit_names(&catalog, &Query::new("weather").with_hits_max(0)).is_empty());
}

// accept: 107
#[test]
fn every_field_is_searched_and_long_texts_and_repeated_words_count_less() {
    let document_with = |id: &str, change: fn(&mut Document)| {
        let mut document = Document::new(id, id, "Does something");
        change(&mut document);
        document
    };
    let mut catalog = Catalog::new();
    // The name of one flower is in each document, each time in another field.
    catalog.put(
        "garden",
        [
            Document::new("described", "described", "Grows tulips"),
            document_with("categorised", |document| document.category = "orchids".to_owned()),
            document_with("used", |document| {
                document.use_case = "When the user wants roses".to_owned()
            }),
            document_with("shown", |document| document.examples = "Plant some lilies".to_owned()),
            document_with("tagged", |document| document.tags = "daisies".to_owned()),
            document_with("typed", |document| {
                document.parameters = "peonies the number of peonies".to_owned()
            }),
            Document::new("buy_irises", "buy_irises", "Does something"),
        ],
    );
    let words = ["tulips", "orchids", "roses", "lilies", "daisies", "peonies", "irises"];
    let ids = [
        "described",
        "categorised",
        "used",
        "shown",
        "tagged",
        "typed",
        "buy_irises",
    ];
    for (word, id) in words.into_iter().zip(ids) {
        assert_eq!(hit_names(&catalog, &Query::new(word)), [id], "{word}");
    }
    let score = |description: &str| {
        let mut catalog = sample_catalog();
        catalog.put("x", [Document::new("x", "x", description)]);
        let hits = catalog.search(&Query::new("zebra").with_cutoff(Cutoff::None), |_| true);
        hits[0].score
    };
    let once = score("Feeds a zebra");
    let long = score(&format!(
        "Feeds a zebra {}",
        "and does much else in the big zoo of the old town ".repeat(3)
    ));
    assert!(
        long < once,
        "a word weighs less in a longer text: {long} against {once}"
    );
    let (twice, often) = (
        score("zebra zebra feeds a"),
        score("zebra zebra zebra zebra zebra zebra zebra zebra feeds a"),
    );
    assert!(
        often < 2.2 * once && often <= twice * 1.5,
        "repetitions raise the score only up to a limit: {once} {twice} {often}"
    );
}

// accept: 107
#[test]
fn word_that_occurs_in_every_tool_has_a_positive_weight() {
    let mut catalog = Catalog::new();
    for name in ["alpha", "beta", "gamma"] {
        catalog.put(name, [Document::new(name, name, "tool")]);
    }
    let hits = catalog.search(&Query::new("tool"), |_| true);
    assert_eq!(hits.len(), 3);
    assert!(hits.iter().all(|hit| hit.score > 0.0));
}

// accept: 108
#[test]
fn ranking_signals_do_not_lift_a_tool_that_does_not_match() {
    let mut catalog = sample_catalog();
    assert!(catalog.set_signals(
        "send_email#send_email",
        RankingSignals::new(HealthSignal::Healthy, 1.0, u64::MAX)
    ));
    assert_eq!(hit_names(&catalog, &Query::new("weather")), ["get_weather"]);
    assert!(!catalog.set_signals("missing#tool", RankingSignals::default()));
}

// accept: 108
#[test]
fn ranking_signals_multiply_the_score_of_a_match() {
    let mut catalog = Catalog::new();
    catalog.put(
        "a",
        [Document::new("a", "forecast", "The weather of tomorrow, with rain")],
    );
    let score = |catalog: &Catalog, query: &str| {
        let query = Query::new(query).with_cutoff(Cutoff::None);
        catalog.search(&query, |_| true).first().unwrap().score
    };
    let (strong, weak) = (score(&catalog, "forecast"), score(&catalog, "rain"));
    assert!(strong > 1.2 * weak, "{strong} {weak}");
    catalog.set_signals("a", RankingSignals::new(HealthSignal::Healthy, 1.0, 100));
    let factors = [score(&catalog, "forecast") / strong, score(&catalog, "rain") / weak];
    assert!(
        factors[0] > 1.0 && (factors[0] - factors[1]).abs() < 1e-4,
        "{factors:?}"
    );
}

#[test]
fn broken_tools_rank_last() {
    let mut catalog = Catalog::new();
    catalog.put("a", [Document::new("song_player", "song_player", "Plays a song")]);
    catalog.put("b", [Document::new("noise", "noise", "Makes noise, or a song")]);
    assert_eq!(first_hit_name(&catalog, "song").unwrap(), "song_player");
    catalog.set_signals("song_player", RankingSignals::new(HealthSignal::Broken, 0.0, 0));
    let ranked = hit_names(&catalog, &Query::new("song").with_cutoff(Cutoff::None));
    assert_eq!(ranked, ["noise", "song_player"]);
}

// accept: 109, accept: 111
#[test]
fn earlier_messages_break_ties_and_match_nothing_by_themselves() {
    let mut catalog = sample_catalog();
    catalog.put(
        "x",
        [Document::new(
            "x",
            "extract_dates",
            "Extracts data: dates of a calendar",
        )],
    );
    catalog.put(
        "y",
        [Document::new(
            "y",
            "extract_prices",
            "Extracts data: prices of a web shop",
        )],
    );
    let query = Query::new("extract data").with_recent(["I am building a web shop"]);
    assert_eq!(hit_names(&catalog, &query)[0], "extract_prices");
    assert_eq!(hit_names(&catalog, &Query::new("extract data"))[0], "extract_dates");
    let unrelated = Query::new("yes do it").with_recent(["what is the weather forecast"]);
    assert!(hit_names(&catalog, &unrelated).is_empty());
}

// accept: 111
#[test]
fn exact_name_is_always_found_and_ranks_first() {
    let mut catalog = sample_catalog();
    for number in 0..50 {
        let name = format!("weather_{number}");
        catalog.put(
            &name,
            [Document::new(
                &*name,
                &*name,
                "weather weather weather forecast of a city",
            )],
        );
    }
    for intent in [
        "get_weather",
        "getWeather",
        "please call `get_weather` for the city",
        "get_weather#get_weather",
    ] {
        let hits = catalog.search(&Query::new(intent), |_| true);
        assert_eq!(
            (hits[0].name.as_str(), hits[0].is_exact),
            ("get_weather", true),
            "{intent}"
        );
    }
    catalog.put("odd", [Document::new("odd#the_of", "the_of", "")]);
    assert_eq!(
        first_hit_name(&catalog, "the_of").unwrap(),
        "the_of",
        "a name of stop words only is found too"
    );
}

#[test]
fn forbidden_tool_is_not_found_even_by_its_name() {
    let catalog = sample_catalog();
    let hits = catalog.search(&Query::new("get_weather"), |id| !id.starts_with("get_weather"));
    assert!(hits.iter().all(|hit| hit.name != "get_weather"));
    let query = Query::new("weather message page").with_hits_max(1);
    let hits = catalog.search(&query, |id| id.starts_with("send_email"));
    assert_eq!(
        hits[0].name, "send_email",
        "a better match that may not be used is not one of the hits"
    );
}

#[test]
fn ties_are_sorted_by_name() {
    let mut catalog = Catalog::new();
    for name in ["c", "a", "b"] {
        catalog.put(name, [Document::new(name, name, "plays chess")]);
    }
    assert_eq!(hit_names(&catalog, &Query::new("chess")), ["a", "b", "c"]);
    assert_eq!(hit_names(&catalog, &Query::new("chess").with_hits_max(2)), ["a", "b"]);
}

#[test]
fn keyword_stuffing_does_not_improve_the_rank() {
    let mut catalog = sample_catalog();
    let keywords = "weather forecast city email message currency money image picture size ".repeat(400);
    let mut stuffed = Document::new("spam", "best_tool", &*keywords);
    stuffed.tags = keywords.clone();
    stuffed.use_case = keywords.clone();
    stuffed.examples = keywords;
    catalog.put("spam", [stuffed]);
    let cases = [
        ("weather forecast of a city", "get_weather"),
        ("send an email", "send_email"),
        ("convert currency", "convert_currency"),
        ("resize an image", "resize_image"),
    ];
    for (intent, expected) in cases {
        assert_eq!(first_hit_name(&catalog, intent).unwrap(), expected);
    }
}

#[test]
fn long_query_finds_the_tool_of_its_first_words() {
    let catalog = sample_catalog();
    let long = format!("weather forecast {}", "x1y2 unknown words and more ".repeat(50_000));
    assert_eq!(first_hit_name(&catalog, &long).unwrap(), "get_weather");
}

#[test]
fn task_improves_the_rank_but_weighs_less_than_the_intent() {
    let mut catalog = Catalog::new();
    for noun in ["videos", "photos"] {
        let id = format!("edit_{noun}");
        catalog.put(noun, [Document::new(&*id, &*id, format!("A tool that edits {noun}"))]);
    }
    let intent = Query::new("a tool that edits");
    assert_eq!(
        hit_names(&catalog, &intent.clone().with_task("cut my videos"))[0],
        "edit_videos"
    );
    let conflicting = Query::new("a tool that edits photos").with_task("videos");
    assert_eq!(hit_names(&catalog, &conflicting)[0], "edit_photos");
}

#[test]
fn use_improves_the_rank_immediately() {
    let mut catalog = Catalog::new();
    for name in ["a", "b"] {
        catalog.put(name, [Document::new(name, name, "plays chess")]);
    }
    assert_eq!(hit_names(&catalog, &Query::new("chess")), ["a", "b"]);
    assert!(catalog.add_use("b"));
    assert_eq!(hit_names(&catalog, &Query::new("chess")), ["b", "a"]);
    assert!(!catalog.add_use("missing"));
}

/// Generates texts of up to seven words.
fn word_texts() -> impl Strategy<Value = String> {
    proptest::collection::vec(
        prop_oneof!["weather", "city", "mail", "send", "page", "get", "image"],
        0..8,
    )
    .prop_map(|words| words.join(" "))
}

proptest! {
    /// After any sequence of additions and removals, a search returns the same hits as a new index of the same tools.
    #[test]
    fn index_does_not_depend_on_removed_tools(
        changes in proptest::collection::vec((0_u8..6, word_texts(), any::<bool>()), 0..40),
        intent in word_texts(),
    ) {
        let mut updated = Catalog::new();
        let mut remaining = std::collections::BTreeMap::new();
        for (file, text, is_removal) in changes {
            let source = format!("file{file}");
            if is_removal {
                updated.remove(&source);
                remaining.remove(&source);
            } else {
                let document = Document::new(format!("{source}#f"), text.replace(' ', "_"), &*text);
                updated.put(&source, [document.clone()]);
                remaining.insert(source, document);
            }
        }
        let mut rebuilt = Catalog::new();
        for (source, document) in remaining {
            rebuilt.put(&source, [document]);
        }
        prop_assert_eq!(updated.len(), rebuilt.len());
        let query = Query::new(intent).with_cutoff(Cutoff::None).with_hits_max(10);
        let (updated, rebuilt) = (updated.search(&query, |_| true), rebuilt.search(&query, |_| true));
        let ids = |hits: &[Hit]| hits.iter().map(|hit| hit.id.clone()).collect::<Vec<_>>();
        prop_assert_eq!(ids(&updated), ids(&rebuilt));
    }

    /// A search of several catalogs returns the hits and scores of one catalog with all tools.
    #[test]
    fn union_ranks_like_one_catalog(
        tools in proptest::collection::vec((word_texts(), word_texts(), any::<bool>()), 1..12),
        intent in word_texts(),
    ) {
        let empty = || semantic_catalog(|_| ());
        let (mut catalog_a, mut catalog_b, mut combined) = (empty(), empty(), empty());
        for (number, (name, text, is_in_a)) in tools.into_iter().enumerate() {
            let source = format!("file{number}");
            let document = Document::new(format!("{source}#f"), name.replace(' ', "_"), text);
            if is_in_a { &mut catalog_a } else { &mut catalog_b }.put(&source, [document.clone()]);
            combined.put(&source, [document]);
        }
        let query = Query::new(intent);
        let union = CatalogUnion::new([&catalog_a, &catalog_b]).search(&query, |_| true);
        prop_assert_eq!(union, combined.search(&query, |_| true));
    }

    #[test]
    fn search_does_not_panic_for_any_text(name in ".{0,80}", description in ".{0,200}", intent in ".{0,200}") {
        let mut catalog = sample_catalog();
        catalog.put("any", [Document::new(&*name, &*name, &*description)]);
        let hits = catalog.search(&Query::new(intent), |_| true);
        prop_assert!(hits.len() <= 5 && hits.iter().all(|hit| hit.score.is_finite()));
    }
}
