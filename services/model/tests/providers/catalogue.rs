//! What the model list and the environment offer.

use model::{Catalogue, ListError, Settings};

use crate::builtin::builtin;

fn load(yaml: Option<&str>, env: &[(&str, &str)]) -> Result<Catalogue, ListError> {
    let env = |name: &str| env.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned());
    Catalogue::load(yaml, &env, Settings::from_env(&env)?, builtin())
}

const LIST: &str = r#"
zeta:
  model: openai/gpt-4.1
  api_key: "{{ env.KEY }}"
  temperature: 0
alpha:
  model: anthropic/claude-sonnet-4-5
  api_base: http://localhost:1/v1
  custom_args: {max_context_size: 5000}
local:
  model: hosted_vllm/Qwen/Qwen3
  base_url: http://localhost:2/v1
  max_tokens: 77
"#;

/// A list, an environment, the name of the default, all names.
type Case<'a> = (Option<&'a str>, &'a [(&'a str, &'a str)], &'a str, &'a [&'a str]);

#[test]
fn names_and_the_default() {
    let key = [("KEY", "k")];
    let listed = ["zeta", "alpha", "local", "builtin/triage"];
    let chosen = [("KEY", "k"), ("MODEL", "alpha"), ("OPENAI_API_KEY", "k")];
    let added = [("KEY", "k"), ("MODEL", "groq/llama"), ("API_KEY", "k")];
    let cases: &[Case] = &[
        (Some(LIST), &key, "zeta", &listed),
        (Some(LIST), &chosen, "alpha", &listed),
        (Some(LIST), &added, "groq/llama", &["zeta", "alpha", "local", "groq/llama", "builtin/triage"]),
        (None, &[], "builtin/triage", &["builtin/triage"]),
        (None, &[("OPENAI_API_KEY", "")], "builtin/triage", &["builtin/triage"]),
        (None, &[("OPENAI_API_KEY", "k")], "gpt-5.4", &["gpt-5.4", "builtin/triage"]),
        (None, &[("ANTHROPIC_API_KEY", "k")], "claude-sonnet-5", &["claude-sonnet-5", "builtin/triage"]),
        (
            None,
            &[("MODEL", "gpt-4o"), ("API_KEY", "k"), ("API_BASE", "http://localhost:3")],
            "gpt-4o",
            &["gpt-4o", "builtin/triage"],
        ),
        (
            None,
            &[("MODEL", "builtin/triage"), ("OPENAI_API_KEY", "k")],
            "builtin/triage",
            &["builtin/triage"],
        ),
    ];
    for (yaml, env, default, names) in cases {
        let catalogue = load(*yaml, env).unwrap_or_else(|error| panic!("{env:?}: {error}"));
        assert_eq!(catalogue.default_name(), *default, "{env:?}");
        assert_eq!(catalogue.names().collect::<Vec<_>>(), *names, "{env:?}");
        assert_eq!(catalogue.get(None).unwrap().info().name, *default);
    }
}

#[test]
fn what_is_known_of_each() {
    let catalogue = load(Some(LIST), &[("KEY", "k")]).unwrap();
    let info = |name: &str| catalogue.get(Some(name)).unwrap().info().clone();
    let sizes = |name: &str| (info(name).context_window, info(name).max_output_tokens);
    assert_eq!(sizes("zeta"), (1_047_576, 32_768));
    assert_eq!(sizes("alpha"), (5000, 2500));
    assert_eq!(sizes("local"), (200_000, 77));
    assert_eq!((info("local").provider.as_str(), info("local").id.as_str()), ("openai", "Qwen/Qwen3"));
    let unknown = catalogue.get(Some("nope")).err().unwrap();
    assert_eq!(unknown.to_string(), "unknown model `nope`; known models: zeta, alpha, local, builtin/triage");
    let window = [("KEY", "k"), ("OVERRIDE_MAX_CONTENT_SIZE", "9000"), ("OVERRIDE_MAX_OUTPUT_TOKEN", "9")];
    let catalogue = load(Some(LIST), &window).unwrap();
    let zeta = catalogue.get(Some("zeta")).unwrap();
    assert_eq!((zeta.info().context_window, zeta.info().max_output_tokens), (9000, 9));
}

#[test]
fn mistakes_are_named_and_keys_are_not() {
    let key = "OPENAI_API_KEY";
    for (yaml, env, expected) in [
        (
            LIST,
            [("", "")],
            "`zeta` (line 2 of the model list) cannot be used: the environment variable KEY is",
        ),
        (
            "a: {model: bedrock/x}",
            [("", "")],
            "the provider of `bedrock/x` is not known; known: openai/, anth",
        ),
        ("a: {model: hosted_vllm/x}", [("", "")], "hosted_vllm/ needs a `base_url`"),
        ("a: {model: openai/x}", [("", "")], "needs an `api_key`, or OPENAI_API_KEY in the environment"),
        ("a: {api_key: sk-secret}", [("", "")], "`model` must be a text"),
        ("a: {model: gpt-4o, api_key: [sk-secret]}", [("", "")], "`api_key` must be a text"),
        (
            "a: {model: gpt-4o, api_key: \"sk-secret\\nx\"}",
            [("", "")],
            "`api_key` must be a text of one line",
        ),
        ("a: {model: gpt-4o, base_url: sk-secret}", [(key, "k")], "`base_url` must be an http(s) address"),
        (
            "a: {model: gpt-4o, custom_args: {max_context_size: -1}}",
            [(key, "k")],
            "must be a number of tokens",
        ),
        ("a: {model: gpt-4o, input_cost_per_token: sk-secret}", [(key, "k")], "must be a price"),
        ("a: {model: gpt-4o, extra_headers: {x: 1}}", [(key, "k")], "`extra_headers` must be a map"),
        ("builtin/triage: {model: gpt-4o}", [(key, "k")], "has the name `builtin/triage` twice"),
        ("a: {model: gpt-4o}\na: {model: gpt-4o}", [(key, "k")], "line 2"),
        ("[]", [(key, "k")], "line 1"),
        ("", [(key, "k")], "the model list is empty"),
        (
            "a: {model: gpt-4o}",
            [("LLM_REQUEST_TIMEOUT", "soon")],
            "LLM_REQUEST_TIMEOUT must be a whole number",
        ),
    ] {
        let error = load(Some(yaml), &env).unwrap_err().to_string();
        assert!(error.contains(expected), "{yaml}: {error}");
        assert!(!error.contains("sk-secret"), "{yaml}: {error}");
    }
}

#[test]
fn an_entry_at_another_address_gets_no_key_from_the_environment() {
    let list = "a: {model: openai/x, base_url: \"http://localhost:1/v1\"}";
    let catalogue = load(Some(list), &[("OPENAI_API_KEY", "sk-secret")]).unwrap();
    assert_eq!(catalogue.default_name(), "a");
    assert!(!format!("{catalogue:?}").contains("sk-secret"));
}
