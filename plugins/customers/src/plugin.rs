//! The WIT bindings of the shop. Each resource is an id or a cart; the data is in the shop.

use std::cell::RefCell;

use self::bindings::exports::toolwit_demo::customers::customers as wit;
use self::bindings::toolwit::plugin::{context, output, types::Artifact};
use crate::{
    cart::{Cart, CartError, CartLine},
    catalogue::{self, Product},
    customer::{self, Customer, SearchError},
    money::{CURRENCY, Cents},
    order::{LineItem, Order, Status},
    receipt,
    shop::Shop,
    spend::Tier,
};

#[allow(missing_docs, unreachable_pub, unsafe_code, unused_qualifications)]
mod bindings {
    toolwit_guest::bindings!();
}

bindings::export!(Plugin with_types_in bindings);

/// Default maximum number of recent orders.
const RECENT_ORDERS_DEFAULT: u32 = 5;

thread_local! {
    static SHOP: RefCell<Shop> = RefCell::new(Shop::open());
}

fn with_shop<T>(read: impl FnOnce(&Shop) -> T) -> T {
    SHOP.with_borrow(read)
}

struct Plugin;

impl wit::Guest for Plugin {
    type Cart = CartResource;
    type Customer = CustomerResource;
    type LineItem = LineItemResource;
    type Order = OrderResource;

    fn search_customer(name: String) -> Result<wit::Customer, wit::SearchError> {
        with_shop(|shop| match customer::search(&shop.customers, &name) {
            Ok(customer) => Ok(customer_resource(customer)),
            Err(error) => Err(error.into()),
        })
    }

    fn find_customers(query: String) -> Vec<wit::Customer> {
        with_shop(|shop| {
            customer::find(&shop.customers, &query)
                .into_iter()
                .map(customer_resource)
                .collect()
        })
    }

    fn list_customers(limit: Option<u32>) -> Vec<wit::Customer> {
        with_shop(|shop| {
            let mut customers: Vec<_> = shop.customers.iter().collect();
            customers.sort_by_key(|customer| customer.name);
            customers
                .into_iter()
                .take(limit_or_all(limit))
                .map(customer_resource)
                .collect()
        })
    }

    fn compare(first: wit::CustomerBorrow<'_>, second: wit::CustomerBorrow<'_>) -> wit::Comparison {
        let ids = [
            first.get::<CustomerResource>().0.id,
            second.get::<CustomerResource>().0.id,
        ];
        let [first, second] = ids.map(|id| with_shop(|shop| shop.average_spend(id)));
        let spends_more = match first.cmp(&second) {
            std::cmp::Ordering::Greater => Some(ids[0]),
            std::cmp::Ordering::Less => Some(ids[1]),
            std::cmp::Ordering::Equal => None,
        };
        wit::Comparison {
            first: first.into(),
            second: second.into(),
            spends_more: spends_more.map(str::to_owned),
            difference: first.difference(second).into(),
        }
    }

    fn list_products(query: Option<String>) -> Vec<wit::Product> {
        let query = query.unwrap_or_default();
        with_shop(|shop| {
            catalogue::find(&shop.products, &query)
                .into_iter()
                .map(wit::Product::from)
                .collect()
        })
    }

    fn checkout(cart: wit::Cart) -> Result<wit::Order, wit::CartError> {
        let CartResource(cart) = cart.into_inner();
        let order = SHOP.with_borrow_mut(|shop| shop.check_out(&cart.into_inner()).cloned())?;
        announce(&order);
        Ok(wit::Order::new(OrderResource(order)))
    }
}

/// Sends the user a message about an order and attaches it as an artifact. Errors are ignored, because the order is placed.
fn announce(order: &Order) {
    let tenant = context::get("tenant");
    let (text, value) = with_shop(|shop| {
        (
            receipt::text(shop, order),
            receipt::json(shop, order, tenant.as_deref()),
        )
    });
    output::communicate(&text);
    let kind = "order".to_owned();
    let _ = output::attach(&Artifact { kind, value });
}

struct CustomerResource(Customer);

fn customer_resource(customer: &Customer) -> wit::Customer {
    wit::Customer::new(CustomerResource(customer.clone()))
}

impl wit::GuestCustomer for CustomerResource {
    fn find(id: String) -> Option<wit::Customer> {
        with_shop(|shop| shop.customer(&id).map(customer_resource))
    }

    fn id(&self) -> String {
        self.0.id.to_owned()
    }

    fn describe(&self) -> wit::CustomerSummary {
        (&self.0).into()
    }

    fn get_average_spend(&self) -> wit::Money {
        with_shop(|shop| shop.average_spend(self.0.id)).into()
    }

    fn get_recent_orders(&self, limit: Option<u32>) -> Vec<wit::Order> {
        let limit = limit_or_all(Some(limit.unwrap_or(RECENT_ORDERS_DEFAULT)));
        let resource = |order: &Order| wit::Order::new(OrderResource(order.clone()));
        with_shop(|shop| shop.orders_of(self.0.id).take(limit).map(resource).collect())
    }

    fn check_discount_eligibility(&self) -> wit::Discount {
        let average = with_shop(|shop| shop.average_spend(self.0.id));
        let tier = Tier::of(average);
        wit::Discount {
            eligible: tier != Tier::None,
            percent: tier.percent(),
            tier: tier.into(),
            reason: tier.reason(average),
        }
    }

    fn open_cart(&self) -> wit::Cart {
        wit::Cart::new(CartResource::open(&self.0))
    }
}

struct OrderResource(Order);

impl wit::GuestOrder for OrderResource {
    fn id(&self) -> String {
        self.0.id.clone()
    }

    fn describe(&self) -> wit::OrderSummary {
        (&self.0).into()
    }

    fn get_line_items(&self) -> Vec<wit::LineItem> {
        let resource = |shop: &Shop, (index, item): (usize, &LineItem)| {
            let product = shop.product(item.product_id)?.clone();
            let id = self.0.line_item_id(index);
            Some(wit::LineItem::new(LineItemResource {
                id,
                item: item.clone(),
                product,
            }))
        };
        with_shop(|shop| {
            self.0
                .line_items
                .iter()
                .enumerate()
                .filter_map(|item| resource(shop, item))
                .collect()
        })
    }

    fn calculate_total(&self) -> wit::Money {
        self.0.total().into()
    }
}

struct LineItemResource {
    id: String,
    item: LineItem,
    product: Product,
}

impl wit::GuestLineItem for LineItemResource {
    fn id(&self) -> String {
        self.id.clone()
    }

    fn describe(&self) -> wit::LineItemSummary {
        wit::LineItemSummary {
            id: self.id.clone(),
            product_id: self.item.product_id.to_owned(),
            product: self.product.name.to_owned(),
            quantity: self.item.quantity,
            unit_price: self.item.unit_price.into(),
            total: self.item.total().into(),
        }
    }

    fn get_product(&self) -> wit::Product {
        with_shop(|shop| shop.product(self.product.id).unwrap_or(&self.product).into())
    }
}

struct CartResource(RefCell<Cart>);

impl CartResource {
    fn open(owner: &Customer) -> Self {
        Self(RefCell::new(SHOP.with_borrow_mut(|shop| shop.open_cart(owner.id))))
    }
}

impl wit::GuestCart for CartResource {
    fn new(owner: wit::CustomerBorrow<'_>) -> Self {
        Self::open(&owner.get::<CustomerResource>().0)
    }

    fn id(&self) -> String {
        self.0.borrow().id.clone()
    }

    fn describe(&self) -> wit::CartSummary {
        let cart = self.0.borrow();
        wit::CartSummary {
            id: cart.id.clone(),
            customer_id: cart.customer_id.to_owned(),
            pieces: cart.pieces(),
            total: cart.total().into(),
        }
    }

    fn add_item(&self, product_id: String, quantity: u32) -> Result<wit::CartUpdate, wit::CartError> {
        let mut cart = self.0.borrow_mut();
        let quantity = with_shop(|shop| shop.add_to_cart(&mut cart, &product_id, quantity))?;
        Ok(wit::CartUpdate {
            quantity,
            total: cart.total().into(),
        })
    }

    fn remove_item(&self, product_id: String) -> Result<wit::CartUpdate, wit::CartError> {
        let mut cart = self.0.borrow_mut();
        cart.remove(&product_id)?;
        Ok(wit::CartUpdate {
            quantity: 0,
            total: cart.total().into(),
        })
    }

    fn get_contents(&self) -> Vec<wit::CartLine> {
        self.0.borrow().lines().iter().map(wit::CartLine::from).collect()
    }

    fn total(&self) -> wit::Money {
        self.0.borrow().total().into()
    }
}

/// Converts an optional limit of the caller. Without a limit, all items are returned.
fn limit_or_all(limit: Option<u32>) -> usize {
    limit.map_or(usize::MAX, |limit| limit as usize)
}

impl From<Cents> for wit::Money {
    fn from(amount: Cents) -> Self {
        Self {
            amount: amount.to_string(),
            currency: CURRENCY.to_owned(),
        }
    }
}

impl From<&Customer> for wit::CustomerSummary {
    fn from(customer: &Customer) -> Self {
        let [id, name, email, city, since] = [
            customer.id,
            customer.name,
            customer.email,
            customer.city,
            customer.since,
        ]
        .map(str::to_owned);
        Self {
            id,
            name,
            email,
            city,
            since,
        }
    }
}

impl From<SearchError<'_>> for wit::SearchError {
    fn from(error: SearchError<'_>) -> Self {
        match error {
            SearchError::EmptyName => Self::EmptyName,
            SearchError::NotFound(near) => Self::NotFound(near.into_iter().map(str::to_owned).collect()),
            SearchError::Ambiguous(customers) => Self::Ambiguous(customers.into_iter().map(Into::into).collect()),
        }
    }
}

impl From<Tier> for wit::Tier {
    fn from(tier: Tier) -> Self {
        match tier {
            Tier::None => Self::None,
            Tier::Bronze => Self::Bronze,
            Tier::Silver => Self::Silver,
            Tier::Gold => Self::Gold,
        }
    }
}

impl From<&Order> for wit::OrderSummary {
    fn from(order: &Order) -> Self {
        Self {
            id: order.id.clone(),
            customer_id: order.customer_id.to_owned(),
            date: order.date.to_owned(),
            status: match order.status {
                Status::Open => wit::OrderStatus::Open,
                Status::Shipped => wit::OrderStatus::Shipped,
                Status::Delivered => wit::OrderStatus::Delivered,
                Status::Cancelled => wit::OrderStatus::Cancelled,
            },
            line_items: u32::try_from(order.line_items.len()).unwrap_or(u32::MAX),
            total: order.total().into(),
        }
    }
}

impl From<&Product> for wit::Product {
    fn from(product: &Product) -> Self {
        Self {
            id: product.id.to_owned(),
            name: product.name.to_owned(),
            price: product.price.into(),
            in_stock: product.in_stock,
        }
    }
}

impl From<&CartLine> for wit::CartLine {
    fn from(line: &CartLine) -> Self {
        Self {
            product_id: line.product.id.to_owned(),
            product: line.product.name.to_owned(),
            quantity: line.quantity,
            total: line.total().into(),
        }
    }
}

impl From<CartError> for wit::CartError {
    fn from(error: CartError) -> Self {
        match error {
            CartError::UnknownProduct(id) => Self::UnknownProduct(id),
            CartError::ZeroQuantity => Self::ZeroQuantity,
            CartError::NotEnoughInStock(left) => Self::NotEnoughInStock(left),
            CartError::NotInCart(id) => Self::NotInCart(id),
            CartError::EmptyCart => Self::EmptyCart,
        }
    }
}
