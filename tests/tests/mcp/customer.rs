//! The scenario of a shop, with the same calls and the same answers over every transport.

use serde_json::{Value, json};

use crate::client::{Client, Transport};
use crate::{customers, server};

/// The texts that a client receives in the scenario.
#[derive(Debug, PartialEq)]
struct Learned {
    spend: Value,
    totals: Vec<Value>,
    cart_total: Value,
    spends_more: Value,
}

async fn scenario(client: &mut Client) -> Learned {
    let john = client.value("search_customer", json!({"name": "John Smith"})).await;
    assert_eq!((&john["type"], &john["id"]), (&json!("customer"), &json!("c-123")));
    let spend = client.method(&john, "get_average_spend", json!({})).await;
    let orders = client.method(&john, "get_recent_orders", json!({"limit": 2})).await;
    let mut totals = Vec::new();
    for order in orders.as_array().unwrap() {
        let items = client.method(order, "get_line_items", json!({})).await;
        assert_eq!(items[0]["type"], "line_item");
        totals.push(client.method(order, "calculate_total", json!({})).await);
    }
    let products = client.value("list_products", json!({})).await;
    let cart = client.method(&john, "open_cart", json!({})).await;
    let item = json!({"product_id": products[0]["id"], "quantity": 2});
    client.method(&cart, "add_item", item).await;
    let cart_total = client.method(&cart, "total", json!({})).await;
    let others = client.value("list_customers", json!({"limit": 2})).await;
    let reference = |entity: &Value| entity.get("handle").unwrap_or(&entity["id"]).clone();
    let pair = json!({"first": reference(&others[0]), "second": reference(&others[1])});
    let compared = client.value("compare", pair).await;
    let unknown = json!({"name": "search_customer", "arguments": {"name": "Nobody Here"}});
    let unknown = client.request("tools/call", unknown).await;
    assert_eq!(unknown["result"]["isError"], true, "{unknown}");
    Learned {
        spend,
        totals,
        cart_total,
        spends_more: compared["spends_more"].clone(),
    }
}

#[tokio::test]
async fn shop_is_the_same_over_every_transport() {
    let (server, _directory) = server(&[("customers", customers().await)]).await;
    let mut results = Vec::new();
    for transport in [Transport::Lines, Transport::HttpSession, Transport::Stateless] {
        let mut client = Client::connect(&server, transport).await;
        results.push(scenario(&mut client).await);
    }
    assert_eq!(results[0].spend["amount"], "450.00");
    assert_eq!(results[0].totals.len(), 2);
    assert_eq!(results[0], results[1], "over HTTP with a session");
    assert_eq!(results[0], results[2], "over HTTP without a session");
}
