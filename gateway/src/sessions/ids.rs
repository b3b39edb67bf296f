//! Ids that the gateway gives or checks: a prefix and 32 lower-case hex digits.

use uuid::Builder;

/// The id of a model with a name.
pub(super) fn model(name: &str) -> String {
    made_of("model_", name)
}

/// The id of the provider with a name.
pub(super) fn provider(name: &str) -> String {
    made_of("provider_", name)
}

fn made_of(prefix: &str, name: &str) -> String {
    let digest = grants::sha256(name);
    let mut bytes = [0; 16];
    bytes.iter_mut().zip(digest).for_each(|(byte, hash)| *byte = hash);
    format!("{prefix}{}", Builder::from_random_bytes(bytes).into_uuid().simple())
}

/// Whether a text is an id with a prefix.
pub(super) fn is(prefix: &str, id: &str) -> bool {
    let digits = id.strip_prefix(prefix).unwrap_or_default();
    digits.len() == 32 && digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_have_a_prefix_and_lower_case_digits() {
        assert!(is("model_", &model("gpt")));
        assert_eq!(model("gpt"), model("gpt"));
        let digits = "0".repeat(32);
        assert!(is("session_", &format!("session_{digits}")));
        for bad in [&digits, "session_", "", &format!("agent_{digits}"), &format!("session_{digits}0")] {
            assert!(!is("session_", bad), "{bad}");
        }
        assert!(!is("session_", &format!("session_{}", "A".repeat(32))));
    }
}
