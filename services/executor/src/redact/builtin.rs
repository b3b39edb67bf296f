//! Patterns of secrets within one line.

use super::values::{is_cookie, is_credential, is_password, is_present, is_token};

/// A built-in rule. Its first group, or all of it, is masked if it passes the check.
pub(super) struct Builtin {
    pub(super) name: &'static str,
    /// One of these is in every line that it matches, in any case.
    pub(super) anchors: &'static [&'static str],
    pub(super) pattern: &'static str,
    pub(super) is_secret: fn(&[u8]) -> bool,
}

const fn rule(name: &'static str, anchors: &'static [&'static str], pattern: &'static str) -> Builtin {
    Builtin { name, anchors, pattern, is_secret: is_present }
}

/// What may stand between a key and its value, quotes included, also where they are escaped.
macro_rules! assigned {
    ($key:literal) => {
        concat!(
            r#"(?i)\b[\w.-]*(?:"#,
            $key,
            r#")\\*["']?\s*(?:=>|:=|=|:)\s*(?:"((?:[^"\\]|\\.)+)"|'([^']+)'|(?:\\*["'])?([^\s"'&;<>]+))"#
        )
    };
}

pub(super) const BUILTIN: &[Builtin] = &[
    rule("jwt", &["eyj"], r"\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?"),
    rule(
        "authorization",
        &["authorization"],
        r#"(?i)authorization\\*["']?\s*[:=]\s*(?:\\*["'])?(?:(?:bearer|basic|token|negotiate|digest|apikey)\s+)?([^\s"'\\]{6,})"#,
    ),
    Builtin {
        is_secret: is_credential,
        ..rule("bearer", &["bearer", "basic "], r"(?i)\b(?:bearer|basic)\s+([A-Za-z0-9._~+/-]{12,}=*)")
    },
    rule("aws", &["akia", "asia"], r"\b(?:AKIA|ASIA)[A-Z2-7]{16}\b"),
    rule(
        "aws",
        &["x-amz-signature", "aws4-hmac"],
        r"(?i)(?:X-Amz-Signature=|AWS4-HMAC-SHA256.*Signature=)([0-9a-f]{64})",
    ),
    rule("gcp", &["aiza", "ya29.", "gocspx-"], r"\b(?:AIza[\w-]{35}|ya29\.[\w-]{20,}|GOCSPX-[\w-]{20,})"),
    rule(
        "azure",
        &["accountkey=", "sharedaccesskey=", "sig=", "q~"],
        r"(?i)(?:AccountKey=|SharedAccessKey=|[?&]sig=)([A-Za-z0-9+/%=_-]{20,})|\b([\w.~-]{3}[0-9]Q~[\w.~-]{30,40})",
    ),
    rule(
        "github",
        &["ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"],
        r"\b(?:gh[pousr]_[A-Za-z0-9]{30,}|github_pat_\w{22,})",
    ),
    rule("gitlab", &["glpat-", "gldt-", "glrt-"], r"\bgl(?:pat|dt|rt)-[\w-]{20,}"),
    rule(
        "slack",
        &["xoxb-", "xoxp-", "xoxa-", "xoxe", "xoxr-", "xoxs-", "xapp-", "hooks.slack.com"],
        r"\b(?:xox[abeprs][.-][\w.-]{10,}|xapp-[\w-]{10,})|hooks\.slack\.com/(?:services|workflows|triggers)/([\w/-]{16,})",
    ),
    rule("stripe", &["k_live_", "k_test_", "whsec_"], r"\b(?:[sr]k_(?:live|test)_\w{10,}|whsec_\w{16,})"),
    rule(
        "provider-key",
        &[
            "sk-",
            "npm_",
            "pypi-",
            "hf_",
            "hvs.",
            "hvb.",
            "sg.",
            "dop_v1_",
            "dckr_pat_",
            "age-secret-key-",
            "glsa_",
            "nvapi-",
            "xai-",
            "gsk_",
        ],
        r"\b(?:sk-[\w-]*[\w-]{20,}|npm_\w{36}|pypi-[\w-]{50,}|hf_[A-Za-z0-9]{30,}|hv[sb]\.[\w-]{20,}|SG\.[\w-]{16,}\.[\w-]{16,}|dop_v1_[0-9a-f]{64}|dckr_pat_[\w-]{20,}|AGE-SECRET-KEY-1[0-9A-Z]{50,}|glsa_\w{32,}|nvapi-[\w-]{40,}|xai-\w{40,}|gsk_\w{40,})",
    ),
    rule("url-password", &["://"], r#"\b[A-Za-z][A-Za-z0-9+.-]*://[^\s:/@"'<>]*:([^\s/"']+)@"#),
    rule(
        "private-key",
        &["ls0tls1crudjti"],
        r"LS0tLS1CRUdJTi(?:BSU0EgUFJJVkFURS|BQUklWQVRFIEtFWS|BFQyBQUklWQVRF|BPUEVOU1NIIFBSSVZBVEUg|BFTkNSWVBURUQg|BEU0EgUFJJVkFURS)[A-Za-z0-9+/]*=*",
    ),
    rule(
        "docker-config",
        &["auth", "eyjhdxroc"],
        r#"\\*"auth\\*"\s*:\s*\\*"([A-Za-z0-9+/]{8,}={0,2})|\b(eyJhdXRocyI6[A-Za-z0-9+/]*=*)"#,
    ),
    rule(
        "password-hash",
        &["$1$", "$2a$", "$2b$", "$2y$", "$5$", "$6$", "$y$", "$apr1$", "$argon2"],
        r#"\$(?:1|2[aby]|5|6|y|apr1|argon2i?d?)\$[^\s:"']{12,}"#,
    ),
    Builtin {
        is_secret: is_cookie,
        ..rule("cookie", &["cookie"], r#"(?i)\b(?:set-)?cookie\\*["']?\s*:\s*\\*["']?([^"'\r\n\\]+)"#)
    },
    rule(
        "credentials-flag",
        &["-u", "--user", "--proxy-user"],
        r#"(?:\s-u|--(?:proxy-)?user)[ =]?\s*["']?[^\s:"']+:([^\s"']+)"#,
    ),
    Builtin {
        is_secret: is_password,
        ..rule(
            "password",
            &["password", "passwd", "passphrase", "pwd", "pass"],
            assigned!("password|passwd|passphrase|pwd|[_-]pass|\\bpass|dbpass"),
        )
    },
    Builtin {
        is_secret: is_password,
        ..rule(
            "password",
            &["password", "passphrase"],
            r#"--[\w-]*(?:password|passphrase)\s+["']?([^\s"'-][^\s"']*)"#,
        )
    },
    Builtin { is_secret: is_password, ..rule("password", &["login"], r"\blogin\s+\S+\s+password\s+(\S+)") },
    Builtin {
        is_secret: is_token,
        ..rule(
            "token",
            &["secret", "token", "key", "credential", "auth", "session"],
            assigned!(
                "secret|token|(?:api|access|secret|private|account|signing|encryption|master|client|storage)[_-]?key(?:[_-]?data)?|credentials?|auth|session[_-]?id|dockerconfigjson"
            ),
        )
    },
    Builtin {
        is_secret: is_token,
        ..rule(
            "token",
            &["--token", "--secret", "key "],
            r#"--[\w-]*(?:token|secret|api-key|access-key|secret-key)\s+["']?([^\s"'-][^\s"']*)"#,
        )
    },
    Builtin {
        is_secret: is_password,
        ..rule(
            "variable",
            &["value"],
            r#"(?i)\\*"name\\*"\s*:\s*\\*"[^"\\]*(?:passw(?:or)?d|passphrase|pwd|_pass|secret|token|api_?key|access_?key|private_?key|credential)s?\\*"\s*,\s*\\*"value\\*"\s*:\s*\\*"([^"\\]+)"#,
        )
    },
];
