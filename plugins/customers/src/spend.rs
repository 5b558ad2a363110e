//! Average spend, loyalty tiers and discounts.

use std::num::NonZeroU64;

use crate::{
    money::Cents,
    order::{Order, Status},
    seed::TODAY,
};

/// The first day of the last 12 months of the data.
const FIRST_DAY: &str = "2025-07-01";

/// The length of that period.
const MONTHS: NonZeroU64 = match NonZeroU64::new(12) {
    Some(months) => months,
    None => NonZeroU64::MIN,
};

/// Computes the average monthly spend over the last 12 months from the orders of a customer.
///
/// Cancelled orders do not count.
pub fn average_per_month<'a>(orders: impl IntoIterator<Item = &'a Order>) -> Cents {
    let counts = |order: &&Order| order.status != Status::Cancelled && (FIRST_DAY..=TODAY).contains(&order.date);
    orders
        .into_iter()
        .filter(counts)
        .map(Order::total)
        .sum::<Cents>()
        .divided_by(MONTHS)
}

/// A loyalty tier, by average monthly spend.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tier {
    /// No discount.
    None,
    /// 5 %.
    Bronze,
    /// 10 %.
    Silver,
    /// 15 %.
    Gold,
}

impl Tier {
    /// The tiers with a discount, best first.
    const WITH_DISCOUNT: [Self; 3] = [Self::Gold, Self::Silver, Self::Bronze];

    /// Returns the tier for an average monthly spend.
    #[must_use]
    pub fn of(average: Cents) -> Self {
        Self::WITH_DISCOUNT
            .into_iter()
            .find(|tier| average >= tier.spend_min())
            .unwrap_or(Self::None)
    }

    /// Returns the discount in percent.
    #[must_use]
    pub fn percent(self) -> u8 {
        match self {
            Self::None => 0,
            Self::Bronze => 5,
            Self::Silver => 10,
            Self::Gold => 15,
        }
    }

    /// Returns the minimum average monthly spend for the tier.
    #[must_use]
    pub fn spend_min(self) -> Cents {
        match self {
            Self::None => Cents(0),
            Self::Bronze => Cents(5000),
            Self::Silver => Cents(15_000),
            Self::Gold => Cents(40_000),
        }
    }

    /// Describes why an average monthly spend has this tier.
    #[must_use]
    pub fn reason(self, average: Cents) -> String {
        match self {
            Self::None => format!("{average} a month on average is less than {}", Self::Bronze.spend_min()),
            tier => format!("{average} a month on average is at least {}", tier.spend_min()),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;
    use crate::{order::LineItem, seed};

    fn order(date: &'static str, status: Status, cents: u64) -> Order {
        let line_items = vec![LineItem {
            product_id: "p-01",
            quantity: 1,
            unit_price: Cents(cents),
        }];
        Order {
            id: "o-1".to_owned(),
            customer_id: "c-1",
            date,
            status,
            line_items,
        }
    }

    #[test]
    fn john_smith_spends_450_a_month_as_computed_from_his_line_items() {
        let orders = seed::orders();
        let his = || orders.iter().filter(|order| order.customer_id == "c-123");
        assert_eq!(average_per_month(his()).to_string(), "450.00");

        let by_hand: u64 = his()
            .filter(|order| order.status != Status::Cancelled && order.date >= "2025-07-01")
            .flat_map(|order| &order.line_items)
            .map(|item| u64::from(item.quantity) * item.unit_price.0)
            .sum();
        assert_eq!(by_hand, 12 * 45_000);
    }

    #[test]
    fn old_and_cancelled_orders_are_not_counted() {
        let orders = [
            order("2025-06-30", Status::Delivered, 12_000_000),
            order("2025-07-01", Status::Delivered, 1200),
            order("2026-06-30", Status::Open, 2400),
            order("2026-01-01", Status::Cancelled, 12_000_000),
            order("2026-07-01", Status::Open, 12_000_000),
        ];
        assert_eq!(average_per_month(&orders), Cents(300));
        assert_eq!(average_per_month([]), Cents(0));
    }

    #[test]
    fn tiers_begin_at_their_minimum_spend() {
        let tiers = [
            (0, Tier::None),
            (4999, Tier::None),
            (5000, Tier::Bronze),
            (15_000, Tier::Silver),
        ];
        for (cents, tier) in tiers.into_iter().chain([(39_999, Tier::Silver), (40_000, Tier::Gold)]) {
            assert_eq!(Tier::of(Cents(cents)), tier, "{cents}");
        }
        assert_eq!(
            Tier::Gold.reason(Cents(45_000)),
            "450.00 a month on average is at least 400.00"
        );
    }

    #[test]
    fn the_seed_has_customers_of_every_tier() {
        let orders = seed::orders();
        let tier_of = |id| Tier::of(average_per_month(orders.iter().filter(|order| order.customer_id == id)));
        let tiers: Vec<_> = seed::customers().iter().map(|customer| tier_of(customer.id)).collect();
        for tier in [Tier::None, Tier::Bronze, Tier::Silver, Tier::Gold] {
            assert!(tiers.contains(&tier), "{tier:?}");
        }
    }
}
