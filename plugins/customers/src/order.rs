//! Orders and their line items.

use crate::money::Cents;

/// The status of an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Paid, not yet shipped.
    Open,
    /// Shipped, not yet delivered.
    Shipped,
    /// Delivered to the customer.
    Delivered,
    /// Cancelled.
    Cancelled,
}

/// One product in an order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineItem {
    /// The product's id.
    pub product_id: &'static str,
    /// The number of pieces bought.
    pub quantity: u32,
    /// The price of one piece at the time of the order.
    pub unit_price: Cents,
}

impl LineItem {
    /// Returns the quantity times the unit price.
    #[must_use]
    pub fn total(&self) -> Cents {
        self.unit_price.times(self.quantity)
    }
}

/// An order of a customer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    /// The id, such as `o-1001`.
    pub id: String,
    /// The id of the customer who placed it.
    pub customer_id: &'static str,
    /// The date on which it was placed, as `YYYY-MM-DD`, which sorts chronologically.
    pub date: &'static str,
    /// The status.
    pub status: Status,
    /// The line items.
    pub line_items: Vec<LineItem>,
}

impl Order {
    /// Returns the sum of the line items.
    #[must_use]
    pub fn total(&self) -> Cents {
        self.line_items.iter().map(LineItem::total).sum()
    }

    /// Returns the id of the line item at an index: the id of the order, and the number of the item, counted from 1.
    #[must_use]
    pub fn line_item_id(&self, index: usize) -> String {
        format!("{}-{}", self.id, index + 1)
    }
}
