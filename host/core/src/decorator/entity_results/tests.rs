#![allow(clippy::unwrap_used)]

use serde::Deserialize;
use serde_json::json;

use crate::{Arguments, NativeTool, ToolContext, ToolExt, ToolResult};

/// A city that a remote tool returns as JSON.
#[derive(Clone, Debug, PartialEq, Deserialize, crate::Entity)]
struct City {
    id: String,
    #[serde(default)]
    population: u64,
    #[serde(skip_serializing)]
    secret: Option<String>,
}

#[crate::tool]
impl City {
    /// Returns the population.
    #[tool]
    fn population(&self) -> u64 {
        self.population
    }
}

/// Passes a result through the decorator `returns::<City>`.
async fn read_cities(result: ToolResult) -> ToolResult {
    let tool = NativeTool::new("find", "Finds cities.", json!({"type": "object"}), move |_, _| {
        let result = result.clone();
        async move { Ok(result) }
    });
    let tool = tool.unwrap().returns::<City>();
    crate::Tool::call(&tool, Arguments::new(), &ToolContext::new())
        .await
        .unwrap()
}

fn ids(result: &ToolResult) -> Vec<String> {
    result
        .providers
        .iter()
        .map(|entity| entity.instance_id().unwrap())
        .collect()
}

// accept: 35
#[tokio::test]
async fn an_object_or_a_list_of_objects_becomes_entities() {
    let result = read_cities(ToolResult::value(
        json!({"id": "ulm", "population": 128_928, "mayor": "A"}),
    ))
    .await;
    let entity =
        json!({"type": "city", "id": "ulm", "population": 128_928, "available_tools": ["city_ulm_population"]});
    assert_eq!(result.value, Some(entity.clone()));
    assert_eq!(result.for_llm, entity.to_string());
    assert_eq!(ids(&result), ["ulm"]);
    assert_eq!(result.downcast::<City>().unwrap().population, 128_928);
    let population = result.providers[0].tools()[0].clone();
    let answer = population.call(Arguments::new(), &ToolContext::new()).await.unwrap();
    assert_eq!(
        answer.for_llm, "128928",
        "the method reads the object that the tool returned"
    );

    let result = read_cities(ToolResult::text(" [{\"id\": \"ulm\"},\n {\"id\": \"bonn\"}]")).await;
    assert_eq!(
        ids(&result),
        ["ulm", "bonn"],
        "a text that is only JSON is read as well"
    );
    assert_eq!(result.downcast::<Vec<City>>().unwrap().len(), 2);
    assert!(result.for_llm.contains("city_bonn_population"));
}

// accept: 35
#[tokio::test]
async fn only_the_cities_of_a_mixed_list_become_entities() {
    let result = read_cities(ToolResult::value(
        json!([{"id": "ulm"}, 7, null, {"name": "no id"}, ["ulm"]]),
    ))
    .await;
    assert_eq!(ids(&result), ["ulm"]);
    let value = result.value.as_ref().unwrap();
    assert_eq!(value[0]["type"], "city");
    assert_eq!(
        value.as_array().unwrap()[1..],
        [json!(7), json!(null), json!({"name": "no id"}), json!(["ulm"])]
    );
    assert!(result.downcast::<Vec<City>>().is_none(), "the list is not only cities");
}

// accept: 35
#[tokio::test]
async fn only_completed_results_that_contain_cities_change() {
    let results = [
        ToolResult::value(json!(null)),
        ToolResult::value(json!([])),
        ToolResult::value(json!(["ulm"])),
        ToolResult::value(json!({"id": 7})),
        ToolResult::text("a city called {\"id\": \"ulm\"}"),
        ToolResult::error("{\"id\": \"ulm\"}"),
        ToolResult::background("{\"id\": \"ulm\"}"),
    ];
    for original in results {
        let result = read_cities(original.clone()).await;
        assert_eq!((&result.for_llm, &result.value), (&original.for_llm, &original.value));
        assert!(result.providers.is_empty(), "{}", original.for_llm);
        assert!(result.output.is_none());
    }
}

#[tokio::test]
async fn fields_that_the_type_does_not_serialise_are_omitted() {
    let result = read_cities(ToolResult::value(json!({"id": "ulm", "secret": "hunter2"}))).await;
    assert!(!result.for_llm.contains("hunter2"), "{}", result.for_llm);
    assert_eq!(result.downcast::<City>().unwrap().secret.as_deref(), Some("hunter2"));
    let with_other_text = ToolResult {
        for_llm: "One city.".to_owned(),
        ..ToolResult::value(json!({"id": "ulm"}))
    };
    let result = read_cities(with_other_text).await;
    assert_eq!(
        (result.for_llm.as_str(), ids(&result)),
        ("One city.", vec!["ulm".to_owned()])
    );
}

#[tokio::test]
async fn a_result_keeps_the_rust_value_and_the_entities_of_its_tool() {
    let number = read_cities(ToolResult::of(std::sync::Arc::new(7)).unwrap()).await;
    assert_eq!(
        number.downcast::<i32>().as_deref(),
        Some(&7),
        "a result that is not a city keeps its Rust value"
    );
    let read_once = read_cities(ToolResult::value(json!({"id": "ulm"}))).await;
    let text = read_once.for_llm.clone();
    let read_twice = read_cities(read_once).await;
    assert_eq!((read_twice.providers.len(), read_twice.for_llm), (1, text));
}
