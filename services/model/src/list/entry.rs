//! One entry of the model list, made into a model.

use std::sync::Arc;

use http::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Url};
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Map, Value};

use super::{
    provider::{self, Provider},
    template,
};
use crate::{
    Info, Settings,
    api::Target,
    endpoint::Endpoint,
    failure::Secrets,
    prices::{self, Prices, Table},
    remote::Remote,
};

/// Why an entry of the model list cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EntryError {
    /// A `{{ env.X }}` names a variable that is not set.
    #[error("the environment variable {0} is not set")]
    MissingVariable(String),
    /// A member is missing or has the wrong type.
    #[error("`{member}` must be {expected}")]
    Shape {
        /// The member.
        member: &'static str,
        /// What it must be.
        expected: &'static str,
    },
    /// The model does not begin with a known provider.
    #[error(
        "the provider of `{model}` is not known; known: {known}; other servers with OpenAI's API work as \
         openai/NAME with a `base_url`"
    )]
    UnknownProvider {
        /// The model as written.
        model: String,
        /// The known prefixes.
        known: String,
    },
    /// The provider has no address of its own.
    #[error("{0}/ needs a `base_url`")]
    NoAddress(&'static str),
    /// The provider needs a key.
    #[error("{provider}/ needs an `api_key`, or {variable} in the environment")]
    NoKey {
        /// The provider.
        provider: &'static str,
        /// The variable that can hold the key.
        variable: &'static str,
    },
}

/// What all models share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) client: Client,
    pub(super) settings: Arc<Settings>,
    pub(super) table: Table,
}

/// Members of an entry, taken out one by one; what is left goes to the provider.
struct Members(Map<String, Value>);

impl Members {
    fn take(&mut self, member: &str) -> Option<Value> {
        self.0.remove(member).filter(|value| !value.is_null())
    }

    fn text(&mut self, member: &'static str) -> Result<Option<String>, EntryError> {
        match self.take(member) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text).filter(|text| !text.is_empty())),
            Some(_) => Err(EntryError::Shape { member, expected: "a text" }),
        }
    }

    fn price(&mut self, member: &'static str) -> Result<Option<f64>, EntryError> {
        let wrong = EntryError::Shape { member, expected: "a price, zero or more" };
        let Some(value) = self.take(member) else { return Ok(None) };
        let price = value.as_f64().or_else(|| value.as_str()?.trim().parse().ok());
        price.filter(|price| price.is_finite() && *price >= 0.0).map(Some).ok_or(wrong)
    }

    fn flag(&mut self, member: &'static str) -> Result<Option<bool>, EntryError> {
        let wrong = EntryError::Shape { member, expected: "true or false" };
        self.take(member).map(|value| value.as_bool().ok_or(wrong)).transpose()
    }

    fn map(&mut self, member: &'static str) -> Result<Map<String, Value>, EntryError> {
        match self.take(member) {
            None => Ok(Map::new()),
            Some(Value::Object(map)) => Ok(map),
            Some(_) => Err(EntryError::Shape { member, expected: "a map" }),
        }
    }
}

/// Makes a model of an entry.
pub(super) fn model(
    name: String,
    members: Map<String, Value>,
    env: &dyn Fn(&str) -> Option<String>,
    shared: &Shared,
) -> Result<Remote, EntryError> {
    let mut members = Value::Object(members);
    template::fill(&mut members, env).map_err(|missing| EntryError::MissingVariable(missing.0))?;
    let Value::Object(members) = members else { return Err(no_model()) };
    let mut members = Members(members);
    let model = members.text("model")?.ok_or_else(no_model)?;
    let (provider, id) = provider::find(&model)
        .ok_or_else(|| EntryError::UnknownProvider { model: model.clone(), known: provider::known() })?;
    // Of use to other programs that read the same file.
    for foreign in ["name", "api_version", "is_robusta_model"] {
        members.take(foreign);
    }
    let settings = &shared.settings;
    let known = shared.table.find(id);
    let window = custom_window(&mut members)?.or(settings.context_window);
    let context_window = prices::window(window, known);
    let max_output = positive(members.0.get("max_tokens"), "max_tokens")?.or(settings.max_output_tokens);
    let info = Info {
        name,
        provider: provider.family.name().to_owned(),
        id: id.to_owned(),
        context_window,
        max_output_tokens: prices::max_output(max_output, known, context_window),
        sees_images: members.flag("supports_vision")?.or(known.and_then(|known| known.sees_images)),
    };
    let prices = prices_of(&mut members, known.map(prices::Known::prices).unwrap_or_default())?;
    let endpoint = endpoint(provider, &info, prices, members, env, shared)?;
    Ok(Remote::new(info, endpoint))
}

fn endpoint(
    provider: &Provider,
    info: &Info,
    prices: Prices,
    mut members: Members,
    env: &dyn Fn(&str) -> Option<String>,
    shared: &Shared,
) -> Result<Endpoint, EntryError> {
    let (base_url, api_base) = (members.text("base_url")?, members.text("api_base")?);
    let configured = base_url.or(api_base);
    let at_home = configured.is_none() && provider.base.is_some();
    let base = configured.or(provider.base.map(str::to_owned)).ok_or(EntryError::NoAddress(provider.name))?;
    let inherited = provider.key.filter(|_| at_home).and_then(env);
    let key = members.text("api_key")?.or(inherited).map(|key| SecretString::from(key.trim()));
    if let (None, Some(variable), true) = (&key, provider.key, at_home) {
        return Err(EntryError::NoKey { provider: provider.name, variable });
    }
    let api = provider.api(at_home);
    let (url, host) = address(&api.address(base.trim_end_matches('/')))?;
    let mut headers = api
        .headers(key.as_ref())
        .map_err(|_| EntryError::Shape { member: "api_key", expected: "a text of one line" })?;
    let mut secrets: Vec<SecretString> = key.into_iter().collect();
    for (name, value) in members.map("extra_headers")? {
        secrets.extend(add_header(&mut headers, &name, &value)?);
    }
    if let Some(password) = url.password() {
        secrets.push(password.into());
    }
    let body = members.map("extra_body")?;
    let extra = members.0.into_iter().chain(body).collect();
    Ok(Endpoint {
        client: shared.client.clone(),
        settings: shared.settings.clone(),
        api,
        target: Target { id: info.id.clone(), max_output_tokens: info.max_output_tokens, extra },
        url,
        host,
        headers,
        secrets: Secrets::new(secrets),
        prices,
    })
}

fn address(address: &str) -> Result<(Url, String), EntryError> {
    let wrong = EntryError::Shape { member: "base_url", expected: "an http(s) address" };
    let url = Url::parse(address).map_err(|_| wrong.clone())?;
    let host = url.host_str().filter(|_| matches!(url.scheme(), "http" | "https")).ok_or(wrong)?;
    let host = url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"));
    Ok((url, host))
}

/// Adds a header; its value is a secret if its name says so.
fn add_header(
    headers: &mut HeaderMap,
    name: &str,
    value: &Value,
) -> Result<Option<SecretString>, EntryError> {
    let wrong = || EntryError::Shape { member: "extra_headers", expected: "a map from names to texts" };
    let text = SecretString::from(value.as_str().ok_or_else(wrong)?);
    let secret =
        ["auth", "key", "token", "secret", "cookie"].iter().any(|word| name.to_lowercase().contains(word));
    let name = HeaderName::try_from(name).map_err(|_| wrong())?;
    let mut value = HeaderValue::try_from(text.expose_secret()).map_err(|_| wrong())?;
    value.set_sensitive(secret);
    headers.insert(name, value);
    Ok(secret.then_some(text))
}

fn custom_window(members: &mut Members) -> Result<Option<u64>, EntryError> {
    let custom = members.map("custom_args")?;
    positive(custom.get("max_context_size"), "custom_args.max_context_size")
}

fn positive(value: Option<&Value>, member: &'static str) -> Result<Option<u64>, EntryError> {
    let Some(value) = value.filter(|value| !value.is_null()) else { return Ok(None) };
    let number = value.as_u64().or_else(|| value.as_str()?.trim().parse().ok());
    let wrong = EntryError::Shape { member, expected: "a number of tokens" };
    number.filter(|number| *number > 0).map(Some).ok_or(wrong)
}

fn prices_of(members: &mut Members, known: Prices) -> Result<Prices, EntryError> {
    let input = members.price("input_cost_per_token")?;
    Ok(Prices {
        input: input.unwrap_or(known.input),
        output: members.price("output_cost_per_token")?.unwrap_or(known.output),
        cache_read: members.price("cache_read_input_token_cost")?.or(input).unwrap_or(known.cache_read),
        cache_write: members.price("cache_creation_input_token_cost")?.or(input).unwrap_or(known.cache_write),
    })
}

fn no_model() -> EntryError {
    EntryError::Shape { member: "model", expected: "a text such as openai/gpt-4.1" }
}
