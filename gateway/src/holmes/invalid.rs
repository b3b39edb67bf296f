//! The 422 of the original, which is FastAPI's: a list of what is wrong, each with its place.

use std::borrow::Cow;

use http::StatusCode;
use serde::Serialize;
use serde_json::value::RawValue;

use crate::problem::Problem;

/// A body of nothing but mistakes must not make an answer that is many times its size.
const MOST_ERRORS: usize = 100;

/// Bytes of a value that an answer repeats in full, and characters of a longer one.
const LONGEST_INPUT: usize = 16 << 10;
const SHOWN: usize = 200;

/// Where an error is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub(super) enum Loc {
    Key(&'static str),
    /// A key of the client's choice.
    Member(String),
    Index(usize),
}

/// What is wrong with a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Missing,
    String,
    Unicode,
    Bool,
    BoolParsing,
    Float,
    FloatParsing,
    List,
    Dict,
    Object,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::String => "string_type",
            Self::Unicode => "string_unicode",
            Self::Bool => "bool_type",
            Self::BoolParsing => "bool_parsing",
            Self::Float => "float_type",
            Self::FloatParsing => "float_parsing",
            Self::List => "list_type",
            Self::Dict => "dict_type",
            Self::Object => "model_attributes_type",
        }
    }

    fn message(self) -> &'static str {
        match self {
            Self::Missing => "Field required",
            Self::String => "Input should be a valid string",
            Self::Unicode => "Input should be a valid string, unable to parse raw data as a unicode string",
            Self::Bool => "Input should be a valid boolean",
            Self::BoolParsing => "Input should be a valid boolean, unable to interpret input",
            Self::Float => "Input should be a valid number",
            Self::FloatParsing => "Input should be a valid number, unable to parse string as a number",
            Self::List => "Input should be a valid list",
            Self::Dict => "Input should be a valid dictionary",
            Self::Object => "Input should be a valid dictionary or object to extract fields from",
        }
    }
}

/// All that is wrong with a request.
#[derive(Debug, Default)]
pub(super) struct Errors {
    found: Vec<FieldError>,
    /// The member that is looked through, if it is not the whole body.
    within: Option<&'static str>,
}

#[derive(Debug, Serialize)]
struct FieldError {
    r#type: &'static str,
    loc: Vec<Loc>,
    msg: Cow<'static, str>,
    input: Box<RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ctx: Option<Context>,
}

#[derive(Debug, Serialize)]
struct Context {
    error: Cause,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Cause {
    Text(String),
    /// An exception, which has no JSON form.
    Exception {},
}

impl Errors {
    /// Notes a value that is not what it should be.
    pub(super) fn add(&mut self, kind: Kind, path: &[Loc], input: &RawValue) {
        self.push(FieldError {
            r#type: kind.name(),
            loc: self.place(path),
            msg: kind.message().into(),
            input: shown(input),
            ctx: None,
        });
    }

    /// Notes a value that has the right type and makes no sense.
    pub(super) fn add_value(&mut self, why: &str, path: &[Loc], input: &RawValue) {
        self.push(FieldError {
            r#type: "value_error",
            loc: self.place(path),
            msg: format!("Value error, {why}").into(),
            input: shown(input),
            ctx: Some(Context { error: Cause::Exception {} }),
        });
    }

    /// How many are noted.
    pub(super) fn count(&self) -> usize {
        self.found.len()
    }

    /// Paths begin at this member from now on.
    pub(super) fn enter(&mut self, member: &'static str) {
        self.within = Some(member);
    }

    /// Paths begin at the body again.
    pub(super) fn leave(&mut self) {
        self.within = None;
    }

    fn place(&self, path: &[Loc]) -> Vec<Loc> {
        in_body(self.within.map(Loc::Key).into_iter().chain(path.iter().cloned()))
    }

    fn push(&mut self, error: FieldError) {
        if self.found.len() < MOST_ERRORS {
            self.found.push(error);
        }
    }

    /// The answer, if anything is wrong.
    pub(super) fn into_result(self) -> Result<(), Problem> {
        if self.found.is_empty() {
            return Ok(());
        }
        Err(Problem::with_detail(StatusCode::UNPROCESSABLE_ENTITY, &self.found))
    }
}

fn in_body(path: impl IntoIterator<Item = Loc>) -> Vec<Loc> {
    std::iter::once(Loc::Key("body")).chain(path).collect()
}

/// A value as an answer repeats it. Of one that is long, or that not every JSON parser reads, such as half a surrogate
/// pair, the beginning of its text.
fn shown(input: &RawValue) -> Box<RawValue> {
    let text = input.get();
    if text.len() <= LONGEST_INPUT && serde_json::from_str::<serde_json::Value>(text).is_ok() {
        return input.to_owned();
    }
    let start: String = text.chars().take(SHOWN).collect();
    serde_json::value::to_raw_value(&start).unwrap_or_default()
}

/// The answer to one error.
pub(super) fn only(kind: Kind, path: &[Loc], input: &RawValue) -> Problem {
    let mut errors = Errors::default();
    errors.add(kind, path, input);
    Problem::with_detail(StatusCode::UNPROCESSABLE_ENTITY, &errors.found)
}

/// The answer to a text that is not JSON.
pub(super) fn not_json(text: &str, error: &serde_json::Error) -> Problem {
    let error = FieldError {
        r#type: "json_invalid",
        loc: in_body([Loc::Index(position(text, error))]),
        msg: "JSON decode error".into(),
        input: RawValue::from_string("{}".to_owned()).unwrap_or_default(),
        ctx: Some(Context { error: Cause::Text(reason(error)) }),
    };
    Problem::with_detail(StatusCode::UNPROCESSABLE_ENTITY, &[error])
}

/// Characters before the one that is wrong. Serde's columns count bytes, and the wrong one in.
fn position(text: &str, error: &serde_json::Error) -> usize {
    let lines_before = error.line().saturating_sub(1);
    let start: usize = text.split_inclusive('\n').take(lines_before).map(str::len).sum();
    let bytes = start + error.column() - usize::from(!error.is_eof() && error.column() > 0);
    text.char_indices().take_while(|(at, _)| *at < bytes).count()
}

/// The reason in the words of Python's parser, where it has some.
fn reason(error: &serde_json::Error) -> String {
    const KNOWN: [(&str, &str); 9] = [
        ("EOF while parsing a value", "Expecting value"),
        ("expected value", "Expecting value"),
        ("expected ident", "Expecting value"),
        ("EOF while parsing a string", "Unterminated string starting at"),
        ("expected `:`", "Expecting ':' delimiter"),
        ("EOF while parsing", "Expecting ',' delimiter"),
        ("expected `,`", "Expecting ',' delimiter"),
        ("key must be a string", "Expecting property name enclosed in double quotes"),
        ("trailing characters", "Extra data"),
    ];
    let text = error.to_string();
    let known = KNOWN.iter().find(|(ours, _)| text.starts_with(ours));
    known.map_or_else(|| text.clone(), |(_, theirs)| (*theirs).to_owned())
}
