//! What people have allowed in a session once for all: each of it once, nothing that has ended, and no more than counts.

use domain::Timestamp;
use prost::Message as _;
use wire::executor::{Grant, SignedGrant, grant::Scope};

/// An executor looks at no more of them.
const MOST: usize = 256;

/// Adds grants. The newest stay, and of those that allow the same the newest one.
pub(super) fn add(grants: &mut Vec<Vec<u8>>, new: Vec<Vec<u8>>, now: Timestamp) {
    let mut scopes: Vec<Scope> = Vec::new();
    let all = std::mem::take(grants).into_iter().chain(new).collect::<Vec<_>>();
    let newest = all.into_iter().rev().filter(|signed| match scope(signed, now) {
        Some(scope) if !scopes.contains(&scope) => {
            scopes.push(scope);
            true
        }
        Some(_) | None => false,
    });
    *grants = newest.take(MOST).collect();
    grants.reverse();
}

/// What a grant allows that has not ended. Whether it counts is for the executor to say.
fn scope(signed: &[u8], now: Timestamp) -> Option<Scope> {
    let signed = SignedGrant::decode(signed).ok()?;
    let Grant { expires_at, scope, .. } = Grant::decode(signed.grant.as_ref()).ok()?;
    let is_over = expires_at.is_none_or(|end| end.seconds <= now.0 / 1_000_000_000);
    scope.filter(|_| !is_over)
}

#[cfg(test)]
mod tests {
    use wire::executor::StandingScope;

    use super::*;

    const NOW: Timestamp = Timestamp(1_000_000_000_000);

    fn grant(prefix: &str, end: i64) -> Vec<u8> {
        let scope = StandingScope { prefixes: vec![prefix.to_owned()], ..StandingScope::default() };
        let expires_at = Some(wire::time(Timestamp(end * 1_000_000_000)));
        let grant = Grant { scope: Some(Scope::Standing(scope)), expires_at, ..Grant::default() };
        SignedGrant { grant: grant.encode_to_vec().into(), ..SignedGrant::default() }.encode_to_vec()
    }

    #[test]
    fn what_is_allowed_again_takes_the_place_of_the_older_and_what_has_ended_goes() {
        let mut grants = Vec::new();
        add(&mut grants, vec![grant("a", 1001), grant("b", 1001)], NOW);
        add(&mut grants, vec![grant("a", 2000), grant("c", 1000), b"nonsense".to_vec()], NOW);
        assert_eq!(grants, [grant("b", 1001), grant("a", 2000)]);
        add(&mut grants, Vec::new(), Timestamp(1_500_000_000_000));
        assert_eq!(grants, [grant("a", 2000)]);
    }

    #[test]
    fn the_newest_count() {
        let mut grants = Vec::new();
        let all: Vec<_> = (0..MOST + 44).map(|number| grant(&number.to_string(), 2000)).collect();
        all.iter().for_each(|one| add(&mut grants, vec![one.clone()], NOW));
        assert_eq!(grants, all[44..]);
    }
}
