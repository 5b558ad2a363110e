#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::sync::Mutex;

use super::*;
use crate::{Arguments, NativeTool, NoArguments, Rebinding, Tool, ToolContext, ToolResult};

#[derive(Clone, crate::Entity)]
struct Customer {
    id: String,
    #[serde(rename = "fullName")]
    name: String,
    #[serde(skip)]
    cart: Arc<Mutex<Vec<String>>>,
    latest_order: Option<Order>,
}

#[crate::tool]
impl Customer {
    /// Puts an item into the cart.
    #[tool]
    fn add_item(&self, item: String) -> usize {
        let mut cart = self.cart.lock().unwrap();
        cart.push(item);
        cart.len()
    }

    /// Lists the orders.
    #[tool]
    fn orders(&self) -> Vec<Order> {
        vec![Order { number: 7 }, Order { number: 8 }]
    }
}

#[derive(Clone, crate::Entity)]
struct Order {
    number: u32,
}

#[crate::tool(id = number, prefix = "purchase", latest)]
impl Order {
    /// Cancels the order.
    #[tool]
    fn cancel(&self) {}
}

/// A type whose id comes from a method, and which has no fields.
#[derive(Clone, crate::Entity)]
struct Session;

#[crate::tool]
impl Session {
    fn id(&self) -> &'static str {
        "s-1"
    }

    /// Ends the session.
    #[tool]
    fn end(&self) {}
}

#[derive(Clone, crate::Entity)]
struct Cursor {
    page: u32,
}

#[crate::tool]
impl Cursor {
    /// Returns the next page.
    #[tool]
    fn next(&self) -> Cursor {
        Cursor { page: self.page + 1 }
    }
}

fn customer(id: &str) -> Customer {
    Customer {
        id: id.to_owned(),
        name: "Ada".to_owned(),
        cart: Arc::default(),
        latest_order: None,
    }
}

async fn result_of<T: Serialize + Clone + Send + Sync + 'static>(output: T) -> ToolResult {
    let tool = NativeTool::typed("find", "", move |_: NoArguments, _| {
        let output = output.clone();
        async move { Ok::<_, String>(output) }
    });
    let result = tool.unwrap().call(Arguments::new(), &ToolContext::new()).await;
    result.unwrap()
}

fn entity_ids(result: &ToolResult) -> Vec<String> {
    let ids = result.providers.iter().map(|entity| entity.instance_id());
    ids.map(|id| id.unwrap_or_else(|| "no id".to_owned())).collect()
}

// accept: 28, accept: 29, accept: 39
#[tokio::test]
async fn a_returned_struct_is_an_entity_with_its_type_id_fields_and_tools() {
    let result = result_of(customer("c-1")).await;
    let expected = json!({
        "type": "customer",
        "id": "c-1",
        "fullName": "Ada",
        "latest_order": null,
        "available_tools": ["customer_c1_add_item", "customer_c1_orders"],
    });
    assert_eq!(result.value, Some(expected.clone()));
    assert_eq!(result.for_llm, expected.to_string(), "in this order");
    assert_eq!(entity_ids(&result), ["c-1"]);
    assert_eq!(result.downcast::<Customer>().unwrap().name, "Ada");
}

// accept: 29
#[tokio::test]
async fn entities_are_found_in_lists_options_maps_and_records() {
    #[derive(Clone, Serialize)]
    struct Page {
        total: u32,
        hits: Vec<Customer>,
        best: BTreeMap<String, Option<Customer>>,
    }
    assert_eq!(
        entity_ids(&result_of(vec![customer("a"), customer("b")]).await),
        ["a", "b"]
    );
    assert_eq!(entity_ids(&result_of(Some(customer("a"))).await), ["a"]);
    assert!(result_of(None::<Customer>).await.providers.is_empty());
    let page = Page {
        total: 3,
        hits: vec![customer("a")],
        best: BTreeMap::from([("x".to_owned(), Some(customer("b"))), ("y".to_owned(), None)]),
    };
    let result = result_of(page).await;
    assert_eq!(entity_ids(&result), ["a", "b"]);
    assert_eq!(result.value.unwrap()["hits"][0]["type"], "customer");
}

#[tokio::test]
async fn entities_of_a_type_share_the_schemas_of_their_tools() {
    let result = result_of(vec![customer("a"), customer("b")]).await;
    let [first, second] = [0, 1].map(|index| result.providers[index].tools()[0].definition().input_schema.clone());
    assert!(Arc::ptr_eq(&first, &second), "the schema is derived once for the type");
}

// accept: 34
#[tokio::test]
async fn nested_entities_are_found_and_methods_return_entities() {
    let ada = Customer {
        latest_order: Some(Order { number: 7 }),
        ..customer("c-1")
    };
    let result = result_of(ada).await;
    assert_eq!(entity_ids(&result), ["c-1", "7"], "in the order of the JSON");
    let orders = result.providers[0].tools()[1]
        .call(Arguments::new(), &ToolContext::new())
        .await;
    let orders = orders.unwrap();
    assert_eq!(entity_ids(&orders), ["7", "8"]);
    assert_eq!(orders.providers[0].tools()[0].definition().name(), "purchase_7_cancel");
    assert_eq!(
        orders.value.unwrap()[0]["id"],
        "7",
        "the property `id` comes from the field `number`"
    );
    assert_eq!(orders.providers[0].rebinding(), Rebinding::Latest);
    assert_eq!(result.providers[0].rebinding(), Rebinding::Keep);
}

// accept: 32
#[tokio::test]
async fn the_tools_of_a_returned_struct_share_its_state() {
    let ada = customer("c-1");
    let result = result_of(ada.clone()).await;
    let arguments = json!({"item": "pen"}).as_object().unwrap().clone();
    let tools = result.providers[0].tools();
    tools[0].call(arguments, &ToolContext::new()).await.unwrap();
    assert_eq!(*ada.cart.lock().unwrap(), ["pen"]);
    assert!(tools[0].serial_group().is_some() && tools[0].serial_group() == tools[1].serial_group());
}

// accept: 31, accept: 148
#[tokio::test]
async fn the_id_of_an_entity_comes_from_a_method_and_is_optional() {
    let session = result_of(Session).await;
    assert_eq!(entity_ids(&session), ["s-1"]);
    assert_eq!(
        session.value.unwrap(),
        json!({"type": "session", "id": "s-1", "available_tools": ["session_s1_end"]})
    );
    let cursor = result_of(Cursor { page: 1 }).await;
    assert_eq!(entity_ids(&cursor), ["no id"]);
    assert_eq!(cursor.providers[0].tools()[0].definition().name(), "cursor_1_next");
}

#[tokio::test]
async fn json_outside_of_a_tool_has_only_fields_and_a_conflicting_field_is_an_error() {
    assert_eq!(serde_json::to_value(Cursor { page: 1 }).unwrap(), json!({"page": 1}));

    #[derive(Clone, crate::Entity)]
    struct Event {
        #[serde(rename = "type")]
        kind: u8,
    }

    #[crate::tool]
    impl Event {
        /// Returns the kind.
        #[tool]
        fn kind(&self) -> u8 {
            self.kind
        }
    }

    let tool = NativeTool::typed("find", "", |_: NoArguments, _| async {
        Ok::<_, String>(Event { kind: 1 })
    });
    let result = tool.unwrap().call(Arguments::new(), &ToolContext::new()).await;
    let message = result.unwrap_err().report().message.clone();
    assert!(message.contains("#[serde(rename = \"event_type\")]"), "{message}");
    assert_eq!(
        entity_ids(&result_of(customer("a")).await),
        ["a"],
        "the next output is not affected"
    );
}
