//! The form that an answer must have.

use serde_json::Value;

/// The form of `response_format`, in OpenAI's words: an object, or an object by a schema.
#[derive(Clone, Debug)]
pub(crate) struct Form {
    /// As providers take it.
    pub format: Value,
    /// Whether an answer without it is no answer. A schema that is not strict is only a wish.
    pub strict: bool,
    validator: Option<std::sync::Arc<jsonschema::Validator>>,
}

/// It cannot be asked for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unusable {
    #[error("`type` must be `json_schema`, `json_object` or `text`")]
    Type,
    #[error("`json_schema.schema` is missing or not a JSON Schema: {0}")]
    Schema(String),
}

impl Form {
    /// Reads a `response_format`; `None` if it asks for text.
    pub(crate) fn read(format: Value) -> Result<Option<Self>, Unusable> {
        let validator = match format["type"].as_str() {
            Some("text") => return Ok(None),
            Some("json_object") => None,
            Some("json_schema") => Some(validator(&format["json_schema"]["schema"])?),
            Some(_) | None => return Err(Unusable::Type),
        };
        let strict = validator.is_none() || format["json_schema"]["strict"] == true;
        Ok(Some(Self { format, strict, validator: validator.map(std::sync::Arc::new) }))
    }

    /// Whether a text has the form.
    pub(crate) fn fits(&self, text: &str) -> bool {
        match serde_json::from_str::<Value>(text) {
            Ok(value) => {
                value.is_object() && self.validator.as_ref().is_none_or(|schema| schema.is_valid(&value))
            }
            Err(_) => false,
        }
    }
}

fn validator(schema: &Value) -> Result<jsonschema::Validator, Unusable> {
    if !schema.is_object() {
        return Err(Unusable::Schema("it is not an object".to_owned()));
    }
    jsonschema::validator_for(schema).map_err(|error| Unusable::Schema(error.to_string()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn texts_fit_or_not() {
        let schema =
            json!({ "type": "object", "required": ["ok"], "properties": { "ok": { "type": "boolean" } } });
        let by_schema = json!({ "type": "json_schema", "json_schema": { "name": "x", "schema": schema } });
        assert!(!Form::read(by_schema.clone()).unwrap().unwrap().strict);
        let by_schema = Form::read(by_schema).unwrap().unwrap();
        assert!(by_schema.fits(r#" {"ok": true} "#));
        for unfit in [r#"{"ok": 1}"#, "{}", "[]", "true", "prose", "```json\n{\"ok\": true}\n```"] {
            assert!(!by_schema.fits(unfit), "{unfit}");
        }
        let object = Form::read(json!({ "type": "json_object" })).unwrap().unwrap();
        assert!(object.fits("{}") && !object.fits("[]"));
        assert!(Form::read(json!({ "type": "text" })).unwrap().is_none());
    }

    #[test]
    fn what_is_no_form_is_refused() {
        for bad in [
            json!({}),
            json!({ "type": "xml" }),
            json!({ "type": "json_schema" }),
            json!({ "type": "json_schema", "json_schema": { "schema": { "type": "nonsense" } } }),
        ] {
            assert!(Form::read(bad.clone()).is_err(), "{bad}");
        }
    }
}
