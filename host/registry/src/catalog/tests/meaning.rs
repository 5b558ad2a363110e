//! Tests of the search by meaning.

use super::methods::add_shop_tools;
use super::*;

/// An embedding model with one dimension for each of four groups of related words.
struct RelatedWordsModel;

impl EmbeddingModel for RelatedWordsModel {
    fn embed(&self, text: &str) -> Option<Vec<f32>> {
        let groups = [
            ["weather", "forecast", "umbrella"],
            ["email", "message", "letter"],
            ["image", "picture", "photo"],
            ["account", "delete", "forget"],
        ];
        let mut sum = vec![0.0; groups.len()];
        for word in words(text) {
            let index = groups.iter().position(|group| group.contains(&word.as_str()));
            index.into_iter().for_each(|index| sum[index] += 1.0);
        }
        sum.iter().any(|count| *count > 0.0).then_some(sum)
    }
}

/// Creates a catalog that also searches by meaning. `add_tools` adds its tools.
pub(super) fn semantic_catalog(add_tools: impl Fn(&mut Catalog)) -> Catalog {
    let mut catalog = Catalog::new().with_embedding_model(Arc::new(RelatedWordsModel));
    add_tools(&mut catalog);
    catalog
}

#[test]
fn tool_without_a_word_in_common_is_found_by_its_meaning() {
    let names_by_meaning = |intent: &str, cutoff| {
        let query = Query::new(intent).with_cutoff(cutoff);
        assert!(
            hit_names(&sample_catalog(), &query).is_empty(),
            "{intent}: no tool is found by its words"
        );
        hit_names(&semantic_catalog(add_sample_tools), &query)
    };
    for cutoff in [Cutoff::None, Cutoff::Relative, Cutoff::Confident] {
        assert_eq!(names_by_meaning("Do I need an umbrella?", cutoff), ["get_weather"]);
        assert_eq!(names_by_meaning("my photos: a photo", cutoff), ["resize_image"]);
        assert_eq!(names_by_meaning("something else", cutoff), [""; 0]);
    }
}

// accept: 111
#[test]
fn exact_name_ranks_before_the_nearest_meaning() {
    let catalog = semantic_catalog(add_sample_tools);
    let query = Query::new("call `convert_currency` about umbrella, weather, forecast and umbrella");
    let hits = catalog.search(&query, |_| true);
    assert_eq!(hits[0].name, "convert_currency");
    assert!(
        hits[0].is_exact && hits.iter().any(|hit| hit.name == "get_weather"),
        "{hits:?}"
    );
}

#[test]
fn search_by_meaning_respects_permissions_and_health() {
    let mut catalog = semantic_catalog(add_sample_tools);
    let query = Query::new("umbrella");
    assert!(catalog.search(&query, |_| false).is_empty());
    catalog.put(
        "b",
        [Document::new("b", "weather_of_tomorrow", "A forecast of the weather")],
    );
    let order = |catalog: &Catalog| hit_names(catalog, &query);
    let before = order(&catalog);
    assert_eq!(before.len(), 2);
    let first_id = if before[0] == "get_weather" {
        "get_weather#get_weather"
    } else {
        "b"
    };
    catalog.set_health(first_id, HealthSignal::Broken);
    assert_eq!(
        order(&catalog),
        [before[1].clone(), before[0].clone()],
        "the broken tool is last"
    );
    catalog.remove("b");
    assert_eq!(
        order(&catalog),
        ["get_weather"],
        "a removed tool is not found by its meaning"
    );
}

#[test]
fn method_is_found_by_its_meaning_through_its_entry_tool() {
    let hits = semantic_catalog(add_shop_tools).search(&Query::new("forget me"), |_| true);
    assert_eq!(hits[0].name, "search_customer");
    assert_eq!(hits[0].leads_to.as_ref().unwrap().name, "customer_delete");
}

// accept: 111
#[test]
fn meaning_does_not_outweigh_a_tool_that_has_the_words_of_the_query() {
    let add_tools = |catalog: &mut Catalog| {
        catalog.put(
            "archive",
            [Document::new(
                "archive",
                "archive_parcels",
                "Archives parcels of the depot",
            )],
        );
        catalog.put("post", [Document::new("post", "send_email", "Sends an email message")]);
    };
    let first = |catalog: &Catalog, intent: &str| hit_names(catalog, &Query::new(intent))[0].clone();
    let catalog = semantic_catalog(add_tools);
    assert_eq!(
        first(&catalog, "archive the parcels of the depot, a message"),
        "archive_parcels"
    );
    assert_eq!(first(&catalog, "write a letter"), "send_email");
}
