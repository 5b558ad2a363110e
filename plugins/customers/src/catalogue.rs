//! The products of the shop.

use crate::money::Cents;

/// A product of the shop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Product {
    /// The id, such as `p-07`.
    pub id: &'static str,
    /// The name.
    pub name: &'static str,
    /// The current price of one piece.
    pub price: Cents,
    /// The number of pieces in stock.
    pub in_stock: u32,
}

/// Finds the products whose name contains the text, ignoring case.
pub fn find<'a>(products: &'a [Product], query: &str) -> Vec<&'a Product> {
    let query = query.trim().to_lowercase();
    products
        .iter()
        .filter(|product| product.name.to_lowercase().contains(&query))
        .collect()
}
