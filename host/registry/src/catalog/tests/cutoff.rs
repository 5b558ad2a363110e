//! Tests of the cutoff: hits that are too weak are omitted.

use super::*;

// accept: 111
#[test]
fn weak_hits_are_omitted_unless_the_cutoff_is_none() {
    let mut catalog = sample_catalog();
    catalog.put(
        "n",
        [Document::new(
            "n",
            "note",
            "Writes a note, for example on the city where somebody lives or on anything else that comes to mind",
        )],
    );
    let query = Query::new("weather forecast for the city of Oslo");
    assert_eq!(hit_names(&catalog, &query), ["get_weather"]);
    assert!(hit_names(&catalog, &query.with_cutoff(Cutoff::None)).contains(&"note".to_owned()));
}

// accept: 111
#[test]
fn if_a_hit_matches_four_words_the_others_must_match_half_as_many() {
    let mut catalog = Catalog::new();
    catalog.put(
        "a",
        [Document::new(
            "a",
            "book_train",
            "Books a train ticket from a station with a seat",
        )],
    );
    catalog.put("b", [Document::new("b", "seat_seat", "seat")]);
    let intent = "book a train ticket from the station, window seat";
    assert_eq!(hit_names(&catalog, &Query::new(intent)), ["book_train"]);
    assert_eq!(hit_names(&catalog, &Query::new("seat"))[0], "seat_seat");
}

// accept: 111
#[test]
fn confident_search_returns_no_hits_if_no_tool_fits() {
    let mut catalog = sample_catalog();
    for name in ["get_pollen", "get_time", "get_news", "get_station_name"] {
        let description = format!(
            "Gets the {} of a place, how much there is of it",
            name.trim_start_matches("get_")
        );
        catalog.put(name, [Document::new(name, name, description)]);
    }
    let confident_names = |intent: &str| hit_names(&catalog, &Query::new(intent).with_cutoff(Cutoff::Confident));
    for intent in [
        "How much is 100 dollars in euros?",
        "How do I get to the airport?",
        "Thanks, that is great!",
        "Can you help me with something?",
    ] {
        assert_eq!(confident_names(intent), [""; 0], "{intent}");
    }
    assert_eq!(confident_names("How much pollen is there today?"), ["get_pollen"]);
    assert_eq!(
        confident_names("Convert 100 dollars to another currency"),
        ["convert_currency"]
    );
    assert_eq!(
        confident_names("get_news"),
        ["get_news"],
        "a tool that the query names is not omitted"
    );
}
