//! The shop: its data, carts and new orders.

use crate::{
    cart::{Cart, CartError, CartLine},
    catalogue::Product,
    customer::Customer,
    money::Cents,
    order::{LineItem, Order, Status},
    seed, spend,
};

/// The state of the shop.
///
/// Each instance of the plugin starts with the seed data. Carts and new orders live as long as the instance.
#[derive(Clone, Debug)]
pub struct Shop {
    /// The customers.
    pub customers: Vec<Customer>,
    /// The products, with the numbers in stock.
    pub products: Vec<Product>,
    orders: Vec<Order>,
    carts_opened: u32,
}

impl Shop {
    /// Creates the shop with the seed data.
    #[must_use]
    pub fn open() -> Self {
        Self {
            customers: seed::customers(),
            products: seed::products(),
            orders: seed::orders(),
            carts_opened: 0,
        }
    }

    /// Returns the customer with an id.
    #[must_use]
    pub fn customer(&self, id: &str) -> Option<&Customer> {
        self.customers.iter().find(|customer| customer.id == id)
    }

    /// Returns the product with an id.
    #[must_use]
    pub fn product(&self, id: &str) -> Option<&Product> {
        self.products.iter().find(|product| product.id == id)
    }

    /// Returns the order with an id.
    #[must_use]
    pub fn order(&self, id: &str) -> Option<&Order> {
        self.orders.iter().find(|order| order.id == id)
    }

    /// Returns the orders of a customer, newest first.
    pub fn orders_of(&self, customer_id: &str) -> impl Iterator<Item = &Order> {
        // The orders are sorted by time, because new orders are appended.
        self.orders
            .iter()
            .rev()
            .filter(move |order| order.customer_id == customer_id)
    }

    /// Returns the average monthly spend of a customer over the last 12 months.
    #[must_use]
    pub fn average_spend(&self, customer_id: &str) -> Cents {
        spend::average_per_month(self.orders_of(customer_id))
    }

    /// Opens an empty cart.
    pub fn open_cart(&mut self, customer_id: &'static str) -> Cart {
        self.carts_opened = self.carts_opened.saturating_add(1);
        Cart::new(format!("cart-{}", self.carts_opened), customer_id)
    }

    /// Adds pieces of a product to a cart and returns the new quantity.
    ///
    /// # Errors
    ///
    /// Those of [`Cart::add`], and [`CartError::UnknownProduct`].
    pub fn add_to_cart(&self, cart: &mut Cart, product_id: &str, quantity: u32) -> Result<u32, CartError> {
        let product = self
            .product(product_id)
            .ok_or_else(|| CartError::UnknownProduct(product_id.to_owned()))?;
        cart.add(product, quantity)
    }

    /// Orders the contents of a cart and returns the order.
    ///
    /// # Errors
    ///
    /// [`CartError::EmptyCart`], and [`CartError::NotEnoughInStock`] if the stock was sold in the meantime. Nothing changes on
    /// an error.
    pub fn check_out(&mut self, cart: &Cart) -> Result<&Order, CartError> {
        if cart.lines().is_empty() {
            return Err(CartError::EmptyCart);
        }
        for line in cart.lines() {
            let in_stock = self.product(line.product.id).map_or(0, |product| product.in_stock);
            if line.quantity > in_stock {
                return Err(CartError::NotEnoughInStock(in_stock));
            }
        }
        for product in &mut self.products {
            let sold = cart
                .lines()
                .iter()
                .find(|line| line.product.id == product.id)
                .map_or(0, |line| line.quantity);
            product.in_stock = product.in_stock.saturating_sub(sold);
        }
        let line_item = |line: &CartLine| LineItem {
            product_id: line.product.id,
            quantity: line.quantity,
            unit_price: line.product.price,
        };
        let order = Order {
            id: format!("o-{}", 1001 + self.orders.len()),
            customer_id: cart.customer_id,
            date: seed::TODAY,
            status: Status::Open,
            line_items: cart.lines().iter().map(line_item).collect(),
        };
        Ok(self.orders.push_mut(order))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;

    #[test]
    fn recent_orders_are_sorted_newest_first() {
        let shop = Shop::open();
        let dates: Vec<_> = shop.orders_of("c-123").map(|order| order.date).collect();
        assert_eq!(dates.first(), Some(&"2026-06-21"));
        assert!(dates.is_sorted_by(|newer, older| newer >= older));
    }

    #[test]
    fn a_new_order_is_listed_first_and_changes_the_average() {
        let mut shop = Shop::open();
        let mut cart = shop.open_cart("c-123");
        shop.add_to_cart(&mut cart, "p-12", 2).unwrap();
        let id = shop.check_out(&cart).unwrap().id.clone();
        let newest = shop.orders_of("c-123").next().unwrap();
        assert_eq!((&newest.id, newest.total()), (&id, Cents(9600)));
        assert_eq!(shop.average_spend("c-123").to_string(), "458.00");
        assert_eq!(shop.orders_of("c-123").filter(|order| order.id == id).count(), 1);
        assert_eq!(shop.product("p-12").unwrap().in_stock, 33);
    }

    #[test]
    fn the_first_checkout_gets_the_last_pieces() {
        let mut shop = Shop::open();
        let (mut first, mut second) = (shop.open_cart("c-123"), shop.open_cart("c-124"));
        assert_ne!(first.id, second.id);
        shop.add_to_cart(&mut first, "p-15", 2).unwrap();
        shop.add_to_cart(&mut second, "p-15", 2).unwrap();
        shop.check_out(&first).unwrap();
        assert_eq!(shop.check_out(&second).unwrap_err(), CartError::NotEnoughInStock(1));
    }

    #[test]
    fn an_empty_cart_and_an_unknown_product_are_refused() {
        let mut shop = Shop::open();
        let mut cart = shop.open_cart("c-123");
        assert_eq!(shop.check_out(&cart).unwrap_err(), CartError::EmptyCart);
        let unknown = shop.add_to_cart(&mut cart, "p-99", 1);
        assert_eq!(unknown, Err(CartError::UnknownProduct("p-99".to_owned())));
    }
}
