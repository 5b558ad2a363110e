//! The data that the shop starts with.
//!
//! The program contains the tab-separated tables in `seed/`. A line that cannot be parsed is skipped. A test ensures that all
//! lines can be parsed.

use crate::{
    catalogue::Product,
    customer::Customer,
    money::Cents,
    order::{LineItem, Order, Status},
};

/// The last day of the data, which is "today" for the shop.
pub const TODAY: &str = "2026-06-30";

const CUSTOMERS: &str = include_str!("../seed/customers.tsv");
const PRODUCTS: &str = include_str!("../seed/products.tsv");
const ORDERS: &str = include_str!("../seed/orders.tsv");

/// Reads the customers.
#[must_use]
pub fn customers() -> Vec<Customer> {
    let read = |[id, name, email, city, since]: [&'static str; 5]| {
        Some(Customer {
            id,
            name,
            email,
            city,
            since,
        })
    };
    rows(CUSTOMERS).filter_map(read).collect()
}

/// Reads the products.
#[must_use]
pub fn products() -> Vec<Product> {
    let read = |[id, name, price, in_stock]: [&'static str; 4]| {
        Some(Product {
            id,
            name,
            price: Cents(price.parse().ok()?),
            in_stock: in_stock.parse().ok()?,
        })
    };
    rows(PRODUCTS).filter_map(read).collect()
}

/// Reads the orders, the oldest first.
#[must_use]
pub fn orders() -> Vec<Order> {
    let read = |[id, customer_id, date, status, items]: [&'static str; 5]| {
        let status = match status {
            "open" => Status::Open,
            "shipped" => Status::Shipped,
            "delivered" => Status::Delivered,
            "cancelled" => Status::Cancelled,
            _ => return None,
        };
        let line_items = items.split(' ').map(line_item).collect::<Option<_>>()?;
        Some(Order {
            id: id.to_owned(),
            customer_id,
            date,
            status,
            line_items,
        })
    };
    rows(ORDERS).filter_map(read).collect()
}

/// Reads `p-01*4@2250`: product, quantity, unit price in cents.
fn line_item(text: &'static str) -> Option<LineItem> {
    let (product_id, rest) = text.split_once('*')?;
    let (quantity, unit_price) = rest.split_once('@')?;
    Some(LineItem {
        product_id,
        quantity: quantity.parse().ok()?,
        unit_price: Cents(unit_price.parse().ok()?),
    })
}

fn lines(table: &'static str) -> impl Iterator<Item = &'static str> {
    table.lines().filter(|line| !line.starts_with('#'))
}

fn rows<const COLUMNS: usize>(table: &'static str) -> impl Iterator<Item = [&'static str; COLUMNS]> {
    lines(table).filter_map(|line| line.split('\t').collect::<Vec<_>>().try_into().ok())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_line_can_be_parsed() {
        assert_eq!(customers().len(), lines(CUSTOMERS).count());
        assert_eq!(products().len(), lines(PRODUCTS).count());
        assert_eq!(orders().len(), lines(ORDERS).count());
    }

    #[test]
    fn ids_are_unique() {
        let customers = customers();
        assert_eq!(
            customers
                .iter()
                .map(|customer| customer.id)
                .collect::<HashSet<_>>()
                .len(),
            customers.len()
        );
        let orders = orders();
        assert_eq!(
            orders.iter().map(|order| &order.id).collect::<HashSet<_>>().len(),
            orders.len()
        );
    }

    #[test]
    fn orders_refer_to_existing_customers_and_products_and_past_dates() {
        let (customers, products) = (customers(), products());
        for order in orders() {
            let customer = customers
                .iter()
                .find(|customer| customer.id == order.customer_id)
                .expect("a customer");
            assert!(customer.since <= order.date && order.date <= TODAY, "{}", order.id);
            assert!(!order.line_items.is_empty());
            for item in &order.line_items {
                assert!(item.quantity > 0 && products.iter().any(|product| product.id == item.product_id));
            }
        }
    }
}
