//! Parameters, declared once: the schema that a model sees and the check of what it sent come from here.

use serde_json::{Map, Value, json};

/// A parameter of a tool.
#[derive(Debug)]
pub(super) struct Parameter {
    name: &'static str,
    kind: Kind,
    required: bool,
    description: &'static str,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Text,
    Integer,
    Number,
    Boolean,
    Texts,
    /// Objects whose fields are texts; the last may be limited to some values.
    Records {
        fields: &'static [&'static str],
        last_is_one_of: &'static [&'static str],
    },
}

impl Parameter {
    pub(super) const fn text(name: &'static str, description: &'static str) -> Self {
        Self { name, kind: Kind::Text, required: true, description }
    }

    pub(super) const fn integer(name: &'static str, description: &'static str) -> Self {
        Self { name, kind: Kind::Integer, required: true, description }
    }

    pub(super) const fn number(name: &'static str, description: &'static str) -> Self {
        Self { name, kind: Kind::Number, required: true, description }
    }

    pub(super) const fn boolean(name: &'static str, description: &'static str) -> Self {
        Self { name, kind: Kind::Boolean, required: true, description }
    }

    pub(super) const fn texts(name: &'static str, description: &'static str) -> Self {
        Self { name, kind: Kind::Texts, required: true, description }
    }

    pub(super) const fn records(
        name: &'static str,
        fields: &'static [&'static str],
        last_is_one_of: &'static [&'static str],
        description: &'static str,
    ) -> Self {
        Self { name, kind: Kind::Records { fields, last_is_one_of }, required: true, description }
    }

    pub(super) const fn optional(mut self) -> Self {
        self.required = false;
        self
    }

    fn schema(&self) -> Value {
        let mut schema = match self.kind {
            Kind::Text => json!({"type": "string"}),
            Kind::Integer => json!({"type": "integer"}),
            Kind::Number => json!({"type": "number"}),
            Kind::Boolean => json!({"type": "boolean"}),
            Kind::Texts => json!({"type": "array", "items": {"type": "string"}}),
            Kind::Records { fields, last_is_one_of } => {
                let mut properties: Map<_, _> =
                    fields.iter().map(|field| ((*field).to_owned(), json!({"type": "string"}))).collect();
                if let Some(last) = fields.last() {
                    properties[*last]["enum"] = json!(last_is_one_of);
                }
                json!({"type": "array", "items": {
                    "type": "object", "properties": properties, "required": fields, "additionalProperties": false,
                }})
            }
        };
        schema["description"] = json!(self.description);
        schema
    }

    /// The value as the tools read it, or what it should have been.
    fn accept(&self, value: Value) -> Result<Value, &'static str> {
        match (self.kind, value) {
            (Kind::Text, value @ Value::String(_)) => Ok(value),
            (Kind::Text, Value::Number(number)) => Ok(Value::String(number.to_string())),
            (Kind::Text, _) => Err("a string"),
            (Kind::Integer, value) => integer(&value).map(Value::from).ok_or("an integer"),
            (Kind::Number, Value::Number(number)) => Ok(Value::Number(number)),
            (Kind::Number, Value::String(text)) => {
                text.trim().parse::<f64>().map(Value::from).map_err(|_| "a number")
            }
            (Kind::Number, _) => Err("a number"),
            (Kind::Boolean, value @ Value::Bool(_)) => Ok(value),
            (Kind::Boolean, Value::String(text)) if text == "true" || text == "false" => {
                Ok(json!(text == "true"))
            }
            (Kind::Boolean, _) => Err("a boolean"),
            (Kind::Texts, Value::Array(items)) if items.iter().all(Value::is_string) => {
                Ok(Value::Array(items))
            }
            (Kind::Texts, _) => Err("an array of strings"),
            (Kind::Records { .. }, Value::Array(items)) if items.iter().all(Value::is_object) => {
                Ok(Value::Array(items))
            }
            (Kind::Records { .. }, _) => Err("an array of objects"),
        }
    }
}

/// Models also write `30.0` and `"30"`.
fn integer(value: &Value) -> Option<i64> {
    match value {
        Value::Number(number) => number.as_i64().or_else(|| {
            let float = number.as_f64().filter(|float| float.fract() == 0.0)?;
            format!("{float:.0}").parse().ok()
        }),
        Value::String(text) => text.trim().parse().ok(),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

/// The JSON Schema of an object with these parameters.
pub(super) fn schema(parameters: &[Parameter]) -> Value {
    let properties: Map<_, _> = parameters.iter().map(|own| (own.name.to_owned(), own.schema())).collect();
    let required: Vec<_> = parameters.iter().filter(|own| own.required).map(|own| own.name).collect();
    json!({"type": "object", "properties": properties, "required": required})
}

/// Arguments that fit their parameters.
#[derive(Debug)]
pub(crate) struct Arguments(Map<String, Value>);

/// The most bytes that the arguments of a call may have.
const BYTES: usize = 256 << 10;

impl Arguments {
    /// Reads arguments; says which one is missing or wrong. What no parameter is named after is left out.
    pub(super) fn parse(json: &str, parameters: &[Parameter]) -> Result<Self, String> {
        if json.len() > BYTES {
            return Err(format!("the arguments are longer than {BYTES} bytes"));
        }
        let json = if json.trim().is_empty() { "{}" } else { json };
        let Ok(Value::Object(mut given)) = serde_json::from_str(json) else {
            return Err("the arguments are not a JSON object".to_owned());
        };
        let mut accepted = Map::new();
        for parameter in parameters {
            let name = parameter.name;
            match given.remove(name).filter(|value| !value.is_null()) {
                Some(value) => {
                    let value = parameter
                        .accept(value)
                        .map_err(|kind| format!("the parameter `{name}` must be {kind}"))?;
                    accepted.insert(name.to_owned(), value);
                }
                None if parameter.required => return Err(format!("the parameter `{name}` is missing")),
                None => {}
            }
        }
        Ok(Self(accepted))
    }

    /// A text; empty if it is missing.
    pub(super) fn text(&self, name: &str) -> &str {
        self.0.get(name).and_then(Value::as_str).unwrap_or_default()
    }

    pub(super) fn integer(&self, name: &str) -> Option<i64> {
        self.0.get(name).and_then(Value::as_i64)
    }

    pub(super) fn number(&self, name: &str) -> Option<f64> {
        self.0.get(name).and_then(Value::as_f64)
    }

    pub(super) fn boolean(&self, name: &str) -> bool {
        self.0.get(name).and_then(Value::as_bool).unwrap_or_default()
    }

    pub(super) fn texts(&self, name: &str) -> impl Iterator<Item = &str> {
        self.0.get(name).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
    }

    pub(super) fn records(&self, name: &str) -> &[Value] {
        self.0.get(name).and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARAMETERS: &[Parameter] = &[
        Parameter::text("kind", "A kind."),
        Parameter::integer("limit", "How many.").optional(),
        Parameter::texts("prefixes", "Prefixes.").optional(),
    ];

    #[test]
    fn what_is_wrong_names_the_parameter() {
        for (json, error) in [
            ("[]", "the arguments are not a JSON object"),
            ("{", "the arguments are not a JSON object"),
            ("", "the parameter `kind` is missing"),
            (r#"{"kind": null}"#, "the parameter `kind` is missing"),
            (r#"{"kind": ["pod"]}"#, "the parameter `kind` must be a string"),
            (r#"{"kind": "pod", "limit": 1.5}"#, "the parameter `limit` must be an integer"),
            (r#"{"kind": "pod", "prefixes": [1]}"#, "the parameter `prefixes` must be an array of strings"),
        ] {
            assert_eq!(Arguments::parse(json, PARAMETERS).unwrap_err(), error, "{json}");
        }
    }

    #[test]
    fn numbers_are_read_in_the_ways_that_models_write_them() {
        for json in [
            r#"{"kind": 7, "limit": 30}"#,
            r#"{"kind": "7", "limit": "30"}"#,
            r#"{"kind": "7", "limit": 3e1}"#,
        ] {
            let arguments = Arguments::parse(json, PARAMETERS).unwrap();
            assert_eq!((arguments.text("kind"), arguments.integer("limit")), ("7", Some(30)), "{json}");
        }
    }

    #[test]
    fn the_schema_names_what_is_required() {
        let schema = schema(PARAMETERS);
        assert_eq!(schema["required"], json!(["kind"]));
        assert_eq!(schema["properties"]["limit"], json!({"type": "integer", "description": "How many."}));
    }
}
