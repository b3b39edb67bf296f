//! Headers that the operator has sent along: fixed ones, and ones taken from the request of whoever asks.

use std::collections::BTreeSet;

use http::{HeaderMap, HeaderName, HeaderValue};
use secrecy::SecretString;

use super::template::{Slot, Template};
use crate::{
    redact::carries_secret,
    tools::{RequestHeaders, credential},
};

/// Headers, with their values as templates.
pub(super) struct Headers(Vec<(HeaderName, Value)>);

enum Value {
    Fixed(HeaderValue),
    PerRequest {
        template: Template,
        /// Values of the slots that come from the environment. `None` for those of the request.
        fixed: Vec<Option<String>>,
    },
}

impl std::fmt::Debug for Headers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.0.iter().map(|(name, _)| name)).finish()
    }
}

impl Headers {
    /// Understands templates. Notes variables that are missing in `missing`.
    pub(super) fn new<'a>(
        written: impl IntoIterator<Item = (&'a String, &'a String)>,
        environment: &dyn Fn(&str) -> Option<String>,
        missing: &mut BTreeSet<String>,
    ) -> Result<Self, String> {
        let mut read = |name: &String, text: &str| {
            let template = Template::parse(text)?;
            if let Some((parameter, _)) = template.parameters().first() {
                return Err(format!("nobody gives a value for `{parameter}`"));
            }
            let mut fixed = Vec::new();
            for slot in &template.slots {
                fixed.push(match slot {
                    Slot::Environment(variable) => Some(environment(variable).unwrap_or_else(|| {
                        missing.insert(variable.clone());
                        String::new()
                    })),
                    Slot::Header(_) | Slot::Parameter { .. } => None,
                });
            }
            if fixed.iter().all(Option::is_some) {
                let text = template.render(|_| false, |slot| fixed[slot].clone().unwrap_or_default());
                return sensitive(name, &text).map(Value::Fixed);
            }
            Ok(Value::PerRequest { template, fixed })
        };
        let headers = written.into_iter().map(|(name, text)| {
            let value = read(name, text).map_err(|problem| format!("header `{name}`: {problem}"))?;
            Ok((name.parse().map_err(|_| format!("the header `{name}` cannot be sent"))?, value))
        });
        headers.collect::<Result<_, String>>().map(Self)
    }

    /// Whether they are the same for all requests.
    pub(super) fn are_fixed(&self) -> bool {
        self.0.iter().all(|(_, value)| matches!(value, Value::Fixed(_)))
    }

    /// The headers for a request; without one that they need, there are none.
    pub(super) fn render(&self, request: &RequestHeaders) -> Result<HeaderMap, String> {
        let rendered = self.0.iter().map(|(name, value)| match value {
            Value::Fixed(value) => Ok((name.clone(), value.clone())),
            Value::PerRequest { template, fixed } => {
                let mut absent = None;
                let text = template.render(
                    |_| false,
                    |slot| match (&template.slots[slot], &fixed[slot]) {
                        (Slot::Header(wanted), _) => match request.get(wanted) {
                            Some(value) => value.to_owned(),
                            None => {
                                absent.get_or_insert_with(|| wanted.clone());
                                String::new()
                            }
                        },
                        (Slot::Environment(_) | Slot::Parameter { .. }, fixed) => {
                            fixed.clone().unwrap_or_default()
                        }
                    },
                );
                match absent {
                    Some(wanted) => Err(RequestHeaders::absent(&wanted)),
                    None => Ok((name.clone(), sensitive(name.as_str(), &text)?)),
                }
            }
        });
        rendered.collect()
    }

    /// Those that are the same for all requests.
    pub(super) fn fixed(&self) -> HeaderMap {
        let fixed = self.0.iter().filter_map(|(name, value)| match value {
            Value::Fixed(value) => Some((name.clone(), value.clone())),
            Value::PerRequest { .. } => None,
        });
        fixed.collect()
    }

    /// Values whose names say that they are secret.
    pub(super) fn secrets(&self) -> impl Iterator<Item = SecretString> {
        let fixed = self.0.iter().filter_map(|(name, value)| match value {
            Value::Fixed(value) => Some((name, value)),
            Value::PerRequest { .. } => None,
        });
        fixed
            .filter(|(name, _)| carries_secret(name.as_str()))
            .filter_map(|(_, value)| credential(value.to_str().ok()?))
    }
}

fn sensitive(name: &str, text: &str) -> Result<HeaderValue, String> {
    let mut value = HeaderValue::from_str(text).map_err(|_| format!("the header `{name}` cannot be sent"))?;
    value.set_sensitive(true);
    Ok(value)
}
