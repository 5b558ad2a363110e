//! Classes and ranges of network addresses.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::error::RuleError;
use super::request_target::escaped_excerpt;

/// The network that an address belongs to. A host name may resolve to a public address without a grant for the address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AddressClass {
    /// The public internet.
    Public,
    /// This machine.
    Loopback,
    /// The local link. Includes cloud metadata services at `169.254.169.254`.
    LinkLocal,
    /// A private network. Includes unique local and site-local IPv6 addresses.
    Private,
    /// A provider's shared network (carrier-grade NAT). Includes metadata services of some clouds.
    Shared,
    /// A multicast group.
    Multicast,
    /// The unspecified address, an address with a special purpose, or an IPv6 address that is not allocated.
    Reserved,
}

impl AddressClass {
    /// Returns the class of an address. An IPv6 address that embeds an IPv4 address has the class of the embedded address.
    #[must_use]
    pub fn of(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(address) => Self::of_v4(address),
            IpAddr::V6(address) => match embedded_v4(address) {
                Some(inner) => Self::of_v4(inner),
                None => Self::of_v6(address),
            },
        }
    }

    fn of_v4(address: Ipv4Addr) -> Self {
        match address.octets() {
            [127, ..] => Self::Loopback,
            [169, 254, ..] => Self::LinkLocal,
            [10, ..] | [172, 16..=31, ..] | [192, 168, ..] => Self::Private,
            [100, 64..=127, ..] => Self::Shared,
            [224..=239, ..] => Self::Multicast,
            // "This network", protocol assignments, documentation, 6to4 relays, benchmarks, and reserved for future use.
            [0, ..]
            | [192, 0, 0, _]
            | [192, 0, 2, _]
            | [192, 88, 99, _]
            | [198, 18..=19, ..]
            | [198, 51, 100, _]
            | [203, 0, 113, _]
            | [240..=255, ..] => Self::Reserved,
            _ => Self::Public,
        }
    }

    fn of_v6(address: Ipv6Addr) -> Self {
        if address.is_loopback() {
            return Self::Loopback;
        }
        match address.segments() {
            [0xfe80..=0xfebf, ..] => Self::LinkLocal,
            // Unique local addresses, and site-local ones, which are deprecated but still routed inside sites.
            [0xfc00..=0xfdff, ..] | [0xfec0..=0xfeff, ..] => Self::Private,
            [0xff00..=0xffff, ..] => Self::Multicast,
            // Documentation (two ranges), and the range 2001::/23 for special purposes.
            [0x2001, 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] | [0x2001, 0..=0x1ff, ..] => Self::Reserved,
            // The range in which all public addresses are allocated so far.
            [0x2000..=0x3fff, ..] => Self::Public,
            _ => Self::Reserved,
        }
    }
}

impl fmt::Display for AddressClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Public => "public",
            Self::Loopback => "loopback",
            Self::LinkLocal => "link-local",
            Self::Private => "private",
            Self::Shared => "shared",
            Self::Multicast => "multicast",
            Self::Reserved => "reserved",
        })
    }
}

/// Converts an IPv4 address in IPv6 form (`::ffff:a.b.c.d`) to an IPv4 address. Returns other addresses unchanged.
#[must_use]
pub fn canonical(address: IpAddr) -> IpAddr {
    address.to_canonical()
}

/// Returns the IPv4 address to which packets for an IPv6 address may be delivered. Returns `None` if the IPv6 address embeds no IPv4
/// address. Returns the unspecified address if the position of the embedded address is not known.
fn embedded_v4(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let join = |high: u16, low: u16| Ipv4Addr::from((u32::from(high) << 16) | u32::from(low));
    match address.segments() {
        // The unspecified and the loopback address have the form of IPv4-compatible addresses, but embed no IPv4 address.
        [0, 0, 0, 0, 0, 0, 0, 0 | 1] => None,
        // IPv4-compatible, IPv4-mapped and IPv4-translated addresses.
        [0, 0, 0, 0, 0, 0 | 0xffff, high, low] | [0, 0, 0, 0, 0xffff, 0, high, low] => Some(join(high, low)),
        // NAT64 with the well-known prefix.
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => Some(join(high, low)),
        // NAT64 with the prefix for local networks. The IPv4 address can have several positions.
        [0x64, 0xff9b, 1, ..] => Some(Ipv4Addr::UNSPECIFIED),
        // 6to4.
        [0x2002, high, low, ..] => Some(join(high, low)),
        // Teredo, which inverts the bits of the IPv4 address.
        [0x2001, 0, .., high, low] => Some(join(!high, !low)),
        // ISATAP.
        [.., 0 | 0x200, 0x5efe, high, low] => Some(join(high, low)),
        _ => None,
    }
}

/// A range of addresses: `10.0.0.0/8`, `fd00::/8`, or one address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct AddressRange {
    /// An address in the range. Its bits after the prefix are ignored.
    address: IpAddr,
    /// The length of the prefix, in bits.
    prefix_bits: u8,
}

impl AddressRange {
    /// Returns whether the range contains an address. An IPv4-mapped IPv6 address is compared as the IPv4 address.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.address, canonical(address)) {
            (IpAddr::V4(base), IpAddr::V4(address)) => {
                let mask = u32::MAX.checked_shl(32 - u32::from(self.prefix_bits)).unwrap_or(0);
                u32::from(base) & mask == u32::from(address) & mask
            }
            (IpAddr::V6(base), IpAddr::V6(address)) => {
                let mask = u128::MAX.checked_shl(128 - u32::from(self.prefix_bits)).unwrap_or(0);
                u128::from(base) & mask == u128::from(address) & mask
            }
            _ => false,
        }
    }
}

impl FromStr for AddressRange {
    type Err = RuleError;

    fn from_str(text: &str) -> Result<Self, RuleError> {
        let invalid = || {
            let text = escaped_excerpt(text);
            RuleError::new(format!("`{text}` is not an address or a range such as `10.0.0.0/8`"))
        };
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix)),
            None => (text, None),
        };
        let address = canonical(address.parse::<IpAddr>().map_err(|_| invalid())?);
        let bits_max = if address.is_ipv4() { 32 } else { 128 };
        let prefix_bits = match prefix {
            None => bits_max,
            // Parsing a number would also accept a leading `+`.
            Some(prefix) if prefix.bytes().all(|byte| byte.is_ascii_digit()) => {
                prefix.parse().map_err(|_| invalid())?
            }
            Some(_) => return Err(invalid()),
        };
        if prefix_bits > bits_max {
            return Err(invalid());
        }
        if prefix_bits == 0 {
            return Err(RuleError::new(format!(
                "`{text}` contains every address; name a smaller range"
            )));
        }
        Ok(Self { address, prefix_bits })
    }
}

impl TryFrom<String> for AddressRange {
    type Error = RuleError;

    fn try_from(text: String) -> Result<Self, RuleError> {
        text.parse()
    }
}

impl From<AddressRange> for String {
    fn from(range: AddressRange) -> Self {
        range.to_string()
    }
}

impl fmt::Display for AddressRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bits_max = if self.address.is_ipv4() { 32 } else { 128 };
        if self.prefix_bits == bits_max {
            write!(f, "{}", self.address)
        } else {
            write!(f, "{}/{}", self.address, self.prefix_bits)
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn class_of(text: &str) -> AddressClass {
        AddressClass::of(text.parse().unwrap())
    }

    // attack: C12
    #[test]
    fn addresses_are_classified_in_every_form() {
        use AddressClass::*;
        for (text, expected) in [
            ("8.8.8.8", Public),
            ("2606:4700:4700::1111", Public),
            ("127.0.0.1", Loopback),
            ("127.255.255.254", Loopback),
            ("::1", Loopback),
            ("::ffff:127.0.0.1", Loopback),
            ("::ffff:7f00:1", Loopback),
            ("::127.0.0.1", Loopback),
            ("::ffff:0:127.0.0.1", Loopback),
            ("64:ff9b::127.0.0.1", Loopback),
            ("64:ff9b:1::8.8.8.8", Reserved),
            ("2002:7f00:1::", Loopback),
            ("2001:0:4136:e378:8000:63bf:80ff:fffe", Loopback),
            ("2606:4700::5efe:10.0.0.1", Private),
            ("0.0.0.0", Reserved),
            ("::", Reserved),
            ("169.254.169.254", LinkLocal),
            ("::ffff:169.254.169.254", LinkLocal),
            ("fe80::1", LinkLocal),
            ("100.100.100.200", Shared),
            ("fd00:ec2::254", Private),
            ("fec0::1", Private),
            ("10.1.2.3", Private),
            ("172.31.0.1", Private),
            ("172.32.0.1", Public),
            ("192.168.1.1", Private),
            ("192.0.2.1", Reserved),
            ("198.19.0.1", Reserved),
            ("255.255.255.255", Reserved),
            ("224.0.0.1", Multicast),
            ("ff02::1", Multicast),
            ("2001:db8::1", Reserved),
            ("64:ff9b::8.8.8.8", Public),
        ] {
            assert_eq!(class_of(text), expected, "{text}");
        }
    }

    #[test]
    fn a_range_contains_its_addresses_in_both_forms() {
        let range: AddressRange = "10.1.0.0/16".parse().unwrap();
        for inside in ["10.1.0.0", "10.1.255.255", "::ffff:10.1.2.3"] {
            assert!(range.contains(inside.parse().unwrap()), "{inside}");
        }
        for outside in ["10.2.0.0", "11.1.0.0", "::1"] {
            assert!(!range.contains(outside.parse().unwrap()), "{outside}");
        }
        let single: AddressRange = "::1".parse().unwrap();
        assert!(single.contains("::1".parse().unwrap()) && !single.contains("::2".parse().unwrap()));
        for invalid in [
            "",
            "10.0.0.0/33",
            "10.0.0/8",
            "::/129",
            "0.0.0.0/0",
            "::/0",
            "10.0.0.0/+8",
            "127.1",
            "a",
        ] {
            assert!(invalid.parse::<AddressRange>().is_err(), "{invalid}");
        }
    }
}
