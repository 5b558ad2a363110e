//! What the shop sells.

use crate::money::Cents;

/// A product of the shop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Product {
    /// The id, such as `p-07`.
    pub id: &'static str,
    /// The name.
    pub name: &'static str,
    /// The price of one piece today.
    pub price: Cents,
    /// How many pieces are left.
    pub in_stock: u32,
}

/// Finds the products in whose name the text occurs, in any case.
pub fn find<'a>(products: &'a [Product], query: &str) -> Vec<&'a Product> {
    let wanted = query.trim().to_lowercase();
    products
        .iter()
        .filter(|product| product.name.to_lowercase().contains(&wanted))
        .collect()
}
