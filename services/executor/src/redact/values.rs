//! What the value of a secret looks like, and what only looks so.

/// Words that stand where a password would, in messages and settings.
const WORDS: &[&str] = &[
    "authentication",
    "changed",
    "compat",
    "empty",
    "expired",
    "failed",
    "false",
    "files",
    "for",
    "from",
    "has",
    "hidden",
    "incorrect",
    "invalid",
    "is",
    "missing",
    "must",
    "nil",
    "none",
    "not",
    "null",
    "optional",
    "redacted",
    "rejected",
    "required",
    "reset",
    "set",
    "string",
    "true",
    "undefined",
    "unset",
    "updated",
    "was",
    "wrong",
    "yes",
];

/// Whether it could be a password: nearly anything that is not a reference, a word of a message or a mark.
pub(super) fn is_password(value: &[u8]) -> bool {
    let word = std::str::from_utf8(value).unwrap_or_default().trim_end_matches(['.', ':', ',', '!']);
    value.len() >= 3 && !is_placeholder(value) && !WORDS.iter().any(|own| own.eq_ignore_ascii_case(word))
}

/// Whether it could be a token: random enough not to be a name, a date, an address or a path.
pub(super) fn is_token(value: &[u8]) -> bool {
    let count = |is: fn(&u8) -> bool| value.iter().filter(|byte| is(byte)).count();
    let (digits, upper, lower) =
        (count(u8::is_ascii_digit), count(u8::is_ascii_uppercase), count(u8::is_ascii_lowercase));
    let random =
        (digits > 0 && upper > 0 && lower > 0) || digits * 5 >= value.len() || upper * 4 >= value.len();
    value.len() >= 8
        && !value.iter().any(u8::is_ascii_whitespace)
        && upper + lower > 0
        && random
        && !is_placeholder(value)
        && !is_time(value)
        && !matches!(value, [b'/' | b'.', ..])
        && !value.windows(3).any(|it| it == b"://")
}

/// Whether a scheme's credentials are given in clear.
pub(super) fn is_credential(value: &[u8]) -> bool {
    value.iter().any(u8::is_ascii_digit) && !is_placeholder(value)
}

/// Whether a cookie holds anything.
pub(super) fn is_cookie(value: &[u8]) -> bool {
    value.contains(&b'=') && !is_placeholder(value)
}

/// Whether it is not a mark, nor something that is filled in elsewhere.
pub(super) fn is_present(value: &[u8]) -> bool {
    !value.is_empty() && !is_placeholder(value)
}

/// Whether it is text in base64 rather than a word.
pub(super) fn is_encoded(value: &[u8]) -> bool {
    let body = value.strip_suffix(b"==").or_else(|| value.strip_suffix(b"=")).unwrap_or(value);
    let of = |is: fn(&u8) -> bool| body.iter().any(is);
    let classes = [of(u8::is_ascii_lowercase), of(u8::is_ascii_uppercase), of(u8::is_ascii_digit)];
    let mixed = classes.into_iter().filter(|it| *it).count() >= 2;
    value.len() >= 8
        && value.len().is_multiple_of(4)
        && body.iter().all(|byte| is_base64(*byte))
        && (mixed || body.len() < value.len())
}

/// Whether the byte belongs to the alphabet of base64.
pub(super) fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/')
}

/// Whether it is filled in elsewhere, or is no value at all.
fn is_placeholder(value: &[u8]) -> bool {
    let same = |of: u8| value.iter().all(|byte| byte.eq_ignore_ascii_case(&of));
    let is_variable = |name: &[u8]| {
        matches!(name, [b'{' | b'(', ..])
            || name.iter().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || *byte == b'_')
    };
    is_mark(value)
        || matches!(value, [b'$', name @ ..] if is_variable(name))
        || matches!(value, [b'{', b'{', ..] | [b'%', b'(' | b'{' | b's', ..] | [b'(', b'n', ..])
        || matches!(value, b"{" | b"[" | b"{}" | b"[]" | b"|" | b"|-" | b">" | b">-")
        || b"*x.-#_".iter().any(|byte| same(*byte))
}

/// Whether it was masked before. Text around a mark is no part of it.
pub(super) fn is_mark(value: &[u8]) -> bool {
    let Some(inner) = value.strip_prefix(b"[masked:") else { return false };
    let end = inner.iter().position(|byte| *byte == b']').unwrap_or(inner.len());
    inner[..end].iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'-')
        && inner[end..].iter().all(|byte| b"])},;.".contains(byte))
}

fn is_time(value: &[u8]) -> bool {
    let digit = |at: usize| value.get(at).is_some_and(u8::is_ascii_digit);
    (0..4).all(digit) && value.get(4) == Some(&b'-') && digit(5) && digit(6) && value.get(7) == Some(&b'-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_dates_and_references_are_no_tokens() {
        for value in
            ["orders-db-credentials", "2026-11-22T10:00:00Z", "/var/run/token-1", "$TOKEN_12", "us-east-1"]
        {
            assert!(!is_token(value.as_bytes()), "{value}");
        }
        for value in ["3fa85f64-5717-4562-b3fc-2c963f66afa6", "Zm9vYmFyMQ==", "abc123def456"] {
            assert!(is_token(value.as_bytes()), "{value}");
        }
    }

    #[test]
    fn a_mark_with_something_behind_it_is_a_value() {
        assert!(!is_password(b"[masked:jwt]"));
        assert!(!is_present(b"[masked:jwt],"));
        assert!(!is_mark(b"[masked:jwt]hunter2"));
    }
}
