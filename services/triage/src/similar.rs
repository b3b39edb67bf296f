//! Which of some names is meant by one that does not exist.

/// The name most like `wanted`, if any is much like it.
pub(crate) fn closest<'a>(wanted: &str, known: &[&'a str]) -> Option<&'a str> {
    let scored = known.iter().map(|name| (distance(&plain(wanted), &plain(name)), *name));
    scored.min().filter(|(distance, name)| distance * 3 <= wanted.len().max(name.len())).map(|(_, name)| name)
}

fn plain(name: &str) -> Vec<char> {
    name.to_lowercase().chars().filter(|c| c.is_alphanumeric()).take(100).collect()
}

/// Edits that make one of the other.
fn distance(left: &[char], right: &[char]) -> usize {
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (i, a) in left.iter().enumerate() {
        let mut diagonal = i;
        let mut last = i + 1;
        for (cell, b) in row.iter_mut().skip(1).zip(right) {
            let cost = (diagonal + usize::from(a != b)).min(last + 1).min(*cell + 1);
            diagonal = std::mem::replace(cell, cost);
            last = cost;
        }
        if let Some(first) = row.first_mut() {
            *first = i + 1;
        }
    }
    row.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_closest_name_is_found() {
        assert_eq!(
            closest("smtp-credentials", &["tls", "smtp-creds", "smtp_credential"]),
            Some("smtp_credential")
        );
        assert_eq!(closest("store-front", &["storefront"]), Some("storefront"));
        assert_eq!(closest("smtp", &["tls-cert", "db-password"]), None);
        assert_eq!(closest("x", &[]), None);
    }
}
