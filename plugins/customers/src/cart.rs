//! Shopping carts.

use crate::{catalogue::Product, money::Cents};

/// A shopping cart, with a line per product in the sequence in which the products were added.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cart {
    /// The id, such as `cart-1`.
    pub id: String,
    /// The id of the customer who owns the cart.
    pub customer_id: &'static str,
    lines: Vec<CartLine>,
}

/// One product in a cart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CartLine {
    /// The product as it was when it was first added.
    pub product: Product,
    /// The number of pieces.
    pub quantity: u32,
}

impl CartLine {
    /// Returns the price of these pieces.
    #[must_use]
    pub fn total(&self) -> Cents {
        self.product.price.times(self.quantity)
    }
}

/// The reason why a cart was not changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CartError {
    /// The product id does not exist.
    UnknownProduct(String),
    /// The quantity is zero.
    ZeroQuantity,
    /// There are not enough pieces in stock. Contains the number in stock.
    NotEnoughInStock(u32),
    /// The product is not in the cart.
    NotInCart(String),
    /// The cart is empty.
    EmptyCart,
}

impl Cart {
    /// Opens an empty cart.
    #[must_use]
    pub fn new(id: String, customer_id: &'static str) -> Self {
        Self {
            id,
            customer_id,
            lines: Vec::new(),
        }
    }

    /// Adds pieces of a product and returns the new quantity.
    ///
    /// # Errors
    ///
    /// [`CartError::ZeroQuantity`] and [`CartError::NotEnoughInStock`]. The cart does not change on an error.
    pub fn add(&mut self, product: &Product, quantity: u32) -> Result<u32, CartError> {
        if quantity == 0 {
            return Err(CartError::ZeroQuantity);
        }
        let index = self.lines.iter().position(|line| line.product.id == product.id);
        let current_quantity = index
            .and_then(|index| self.lines.get(index))
            .map_or(0, |line| line.quantity);
        let new_quantity = current_quantity.saturating_add(quantity);
        if new_quantity > product.in_stock {
            return Err(CartError::NotEnoughInStock(product.in_stock));
        }
        match index.and_then(|index| self.lines.get_mut(index)) {
            Some(line) => line.quantity = new_quantity,
            None => self.lines.push(CartLine {
                product: product.clone(),
                quantity,
            }),
        }
        Ok(new_quantity)
    }

    /// Removes all pieces of a product.
    ///
    /// # Errors
    ///
    /// [`CartError::NotInCart`].
    pub fn remove(&mut self, product_id: &str) -> Result<(), CartError> {
        let before = self.lines.len();
        self.lines.retain(|line| line.product.id != product_id);
        if self.lines.len() == before {
            Err(CartError::NotInCart(product_id.to_owned()))
        } else {
            Ok(())
        }
    }

    /// Returns the lines of the cart.
    #[must_use]
    pub fn lines(&self) -> &[CartLine] {
        &self.lines
    }

    /// Returns the number of pieces in the cart.
    #[must_use]
    pub fn pieces(&self) -> u32 {
        self.lines.iter().fold(0, |sum, line| sum.saturating_add(line.quantity))
    }

    /// Returns the total price.
    #[must_use]
    pub fn total(&self) -> Cents {
        self.lines.iter().map(CartLine::total).sum()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;

    const BEANS: Product = Product {
        id: "p-01",
        name: "Beans",
        price: Cents(2450),
        in_stock: 10,
    };
    const SCALE: Product = Product {
        id: "p-09",
        name: "Scale",
        price: Cents(5500),
        in_stock: 3,
    };

    fn cart() -> Cart {
        Cart::new("cart-1".to_owned(), "c-123")
    }

    #[test]
    fn quantities_of_one_product_are_added() {
        let mut cart = cart();
        assert_eq!(cart.add(&BEANS, 2), Ok(2));
        assert_eq!(cart.add(&SCALE, 1), Ok(1));
        assert_eq!(cart.add(&BEANS, 3), Ok(5));
        assert_eq!(cart.lines().len(), 2);
        assert_eq!((cart.pieces(), cart.total()), (6, Cents(5 * 2450 + 5500)));
    }

    #[test]
    fn the_stock_limits_the_quantity_in_a_cart() {
        let mut cart = cart();
        assert_eq!(cart.add(&SCALE, 4), Err(CartError::NotEnoughInStock(3)));
        assert_eq!(cart.add(&SCALE, 2), Ok(2));
        assert_eq!(cart.add(&SCALE, u32::MAX), Err(CartError::NotEnoughInStock(3)));
        assert_eq!(cart.add(&SCALE, 0), Err(CartError::ZeroQuantity));
        assert_eq!(cart.pieces(), 2);
    }

    #[test]
    fn a_product_that_is_not_in_the_cart_cannot_be_removed() {
        let mut cart = cart();
        cart.add(&BEANS, 2).unwrap();
        assert_eq!(cart.remove("p-09"), Err(CartError::NotInCart("p-09".to_owned())));
        assert_eq!(cart.remove("p-01"), Ok(()));
        assert_eq!(cart.total(), Cents(0));
    }
}
