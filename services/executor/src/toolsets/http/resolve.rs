//! Names are looked up here, so that none leads to an address that belongs to no service: where machines in clouds
//! get their credentials.

use std::{
    collections::BTreeSet,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
};

use reqwest::dns::{Addrs, Name, Resolve, Resolving};

/// Metadata services that are not at a link-local address.
const METADATA: [IpAddr; 3] = [
    IpAddr::V4(Ipv4Addr::new(100, 100, 100, 200)),
    IpAddr::V4(Ipv4Addr::new(192, 0, 0, 192)),
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254)),
];

/// Looks names up.
#[derive(Debug)]
pub(super) struct Guarded {
    /// Addresses that the operator lists.
    listed: BTreeSet<IpAddr>,
}

#[derive(Debug, thiserror::Error)]
#[error("the name stands for a link-local or metadata address, which is not listed")]
struct Forbidden;

impl Guarded {
    pub(super) fn new(listed: BTreeSet<IpAddr>) -> Self {
        Self { listed }
    }
}

impl Resolve for Guarded {
    fn resolve(&self, name: Name) -> Resolving {
        let listed = self.listed.clone();
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let fit = |at: &SocketAddr| listed.contains(&at.ip()) || !belongs_to_no_service(at.ip());
            let fit: Vec<_> = found.filter(fit).collect();
            if fit.is_empty() {
                return Err(Forbidden.into());
            }
            Ok(Box::new(fit.into_iter()) as Addrs)
        })
    }
}

fn belongs_to_no_service(address: IpAddr) -> bool {
    if METADATA.contains(&address) {
        return true;
    }
    match address {
        IpAddr::V4(v4) => v4.is_link_local() || v4.is_unspecified() || v4.is_broadcast() || v4.is_multicast(),
        IpAddr::V6(v6) => {
            let inner = v6.to_ipv4_mapped().or_else(|| translated(v6));
            v6.is_unicast_link_local()
                || v6.is_unspecified()
                || v6.is_multicast()
                || inner.is_some_and(|v4| belongs_to_no_service(v4.into()))
        }
    }
}

/// The address behind NAT64.
fn translated(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let [0x64, 0xff9b, 0, 0, 0, 0, high, low] = address.segments() else { return None };
    Some(Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_of_services_are_used() {
        for (address, forbidden) in [
            ("169.254.169.254", true),
            ("100.100.100.200", true),
            ("0.0.0.0", true),
            ("255.255.255.255", true),
            ("::ffff:169.254.169.254", true),
            ("64:ff9b::a9fe:a9fe", true),
            ("fe80::1", true),
            ("fd00:ec2::254", true),
            ("::", true),
            ("127.0.0.1", false),
            ("10.0.0.1", false),
            ("64:ff9b::a00:1", false),
            ("fd00::1", false),
        ] {
            assert_eq!(belongs_to_no_service(address.parse().unwrap()), forbidden, "{address}");
        }
    }

    #[tokio::test]
    async fn a_name_that_stands_for_one_is_not_found_unless_it_is_listed() {
        let unspecified: IpAddr = [0, 0, 0, 0].into();
        for (listed, found) in [(None, false), (Some(unspecified), true)] {
            let name: Name = "0.0.0.0".parse().unwrap();
            let resolved = Guarded::new(listed.into_iter().collect()).resolve(name).await;
            assert_eq!(resolved.is_ok(), found, "{listed:?}");
        }
    }
}
