//! Orders and their line items.

use crate::money::Cents;

/// How far an order has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Paid, not yet sent.
    Open,
    /// On its way.
    Shipped,
    /// Arrived.
    Delivered,
    /// Called off.
    Cancelled,
}

/// One product in an order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineItem {
    /// The product's id.
    pub product_id: &'static str,
    /// How many pieces were bought.
    pub quantity: u32,
    /// The price of one piece when it was bought.
    pub unit_price: Cents,
}

impl LineItem {
    /// Quantity times unit price.
    #[must_use]
    pub fn total(&self) -> Cents {
        self.unit_price.times(self.quantity)
    }
}

/// What a customer bought at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    /// The id, such as `o-1001`.
    pub id: String,
    /// The id of the customer who placed it.
    pub customer_id: &'static str,
    /// The day when it was placed, as `YYYY-MM-DD`, which sorts by time.
    pub date: &'static str,
    /// How far it has come.
    pub status: Status,
    /// What was bought.
    pub line_items: Vec<LineItem>,
}

impl Order {
    /// The sum of the line items.
    #[must_use]
    pub fn total(&self) -> Cents {
        self.line_items.iter().map(LineItem::total).sum()
    }

    /// The id of the line item at that index.
    #[must_use]
    pub fn line_item_id(&self, index: usize) -> String {
        format!("{}-{}", self.id, index + 1)
    }
}
