//! The message and the artifact for a placed order.

use crate::{
    money::CURRENCY,
    order::{LineItem, Order},
    shop::Shop,
};

/// Formats the message to the user about an order.
#[must_use]
pub fn text(shop: &Shop, order: &Order) -> String {
    let customer = shop
        .customer(order.customer_id)
        .map_or(order.customer_id, |customer| customer.name);
    let pieces: u32 = order.line_items.iter().map(|item| item.quantity).sum();
    let noun = if pieces == 1 { "piece" } else { "pieces" };
    let total = order.total();
    format!(
        "Order {} for {customer} is placed: {pieces} {noun}, {total} {CURRENCY}.",
        order.id
    )
}

/// Formats an order as JSON. `tenant` is already JSON.
#[must_use]
pub fn json(shop: &Shop, order: &Order, tenant: Option<&str>) -> String {
    let lines: Vec<_> = order.line_items.iter().map(|item| line_json(shop, item)).collect();
    format!(
        r#"{{"id":{},"tenant":{},"customer_id":{},"date":{},"lines":[{}],"total":"{}","currency":"{CURRENCY}"}}"#,
        quoted(&order.id),
        tenant.unwrap_or("null"),
        quoted(order.customer_id),
        quoted(order.date),
        lines.join(","),
        order.total(),
    )
}

fn line_json(shop: &Shop, item: &LineItem) -> String {
    let product = shop
        .product(item.product_id)
        .map_or(item.product_id, |product| product.name);
    format!(
        r#"{{"product_id":{},"product":{},"quantity":{},"total":"{}"}}"#,
        quoted(item.product_id),
        quoted(product),
        item.quantity,
        item.total(),
    )
}

/// Formats a text as a JSON string.
fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c.is_control() => quoted.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn an_order_has_a_message_and_an_artifact() {
        let mut shop = Shop::open();
        let mut cart = shop.open_cart("c-123");
        shop.add_to_cart(&mut cart, "p-01", 1).unwrap();
        let order = shop.check_out(&cart).unwrap().clone();
        let total = order.total();
        assert_eq!(
            text(&shop, &order),
            format!("Order {} for John Smith is placed: 1 piece, {total} USD.", order.id)
        );
        let written = json(&shop, &order, Some("\"acme\""));
        assert!(
            written.contains(r#""tenant":"acme","customer_id":"c-123""#),
            "{written}"
        );
        assert!(json(&shop, &order, None).contains(r#""tenant":null"#));
        assert_eq!(quoted("a \"b\" \\ \n"), r#""a \"b\" \\ \u000a""#);
    }
}
