//! Every event of the contract has the fields that the protocol's document names (`fields.txt`), and no others.

use std::collections::{BTreeMap, BTreeSet};

use prost::{Message as _, encoding};
use prost_types::{
    DescriptorProto, FieldDescriptorProto, FileDescriptorSet,
    field_descriptor_proto::{Label, Type},
};
use serde_json::Value;
use wire::session::Event;

const EVENT: &str = ".sleuth.session.v1.Event";

/// How much of a message is said.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Much {
    Everything,
    /// What cannot be left out.
    Least,
}

/// The messages of the contracts.
struct Contract(BTreeMap<String, DescriptorProto>);

impl Contract {
    fn read() -> Self {
        let mut messages = BTreeMap::new();
        for file in FileDescriptorSet::decode(wire::DESCRIPTORS).unwrap().file {
            let package = format!(".{}", file.package());
            file.message_type.into_iter().for_each(|message| add(&package, message, &mut messages));
        }
        Self(messages)
    }

    /// The fields of an event of which one has a value.
    fn kinds(&self) -> impl Iterator<Item = &str> {
        self.0[EVENT].field.iter().filter(|field| is_alternative(field)).map(FieldDescriptorProto::name)
    }

    /// A message; of alternatives it has the one that is named, or the first.
    fn filled(&self, message: &str, alternative: Option<&str>, much: Much) -> Vec<u8> {
        let (mut bytes, mut chosen) = (Vec::new(), BTreeSet::new());
        for field in &self.0[message].field {
            let may_miss = field.proto3_optional() || field.label() == Label::Repeated;
            let is_said = match alternative {
                Some(name) if is_alternative(field) => field.name() == name,
                None if is_alternative(field) => chosen.insert(field.oneof_index),
                Some(_) | None => much == Much::Everything || !may_miss,
            };
            if is_said {
                self.fill(field, much, &mut bytes);
            }
        }
        bytes
    }

    fn fill(&self, field: &FieldDescriptorProto, much: Much, bytes: &mut Vec<u8>) {
        let tag = field.number().try_into().unwrap();
        match field.r#type() {
            Type::String if field.name().ends_with("_json") => {
                encoding::string::encode(tag, &"{\"x\":1}".to_owned(), bytes);
            }
            Type::String => encoding::string::encode(tag, &"x".to_owned(), bytes),
            Type::Message => {
                encoding::bytes::encode(tag, &self.filled(field.type_name(), None, much), bytes);
            }
            Type::Double => encoding::double::encode(tag, &1.5, bytes),
            Type::Bool | Type::Enum | Type::Int32 | Type::Int64 | Type::Uint32 | Type::Uint64 => {
                encoding::uint64::encode(tag, &1, bytes);
            }
            other => panic!("{}: {other:?}", field.name()),
        }
    }
}

fn add(scope: &str, mut message: DescriptorProto, messages: &mut BTreeMap<String, DescriptorProto>) {
    let name = format!("{scope}.{}", message.name());
    std::mem::take(&mut message.nested_type).into_iter().for_each(|nested| add(&name, nested, messages));
    messages.insert(name, message);
}

fn is_alternative(field: &FieldDescriptorProto) -> bool {
    field.oneof_index.is_some() && !field.proto3_optional()
}

/// A field as the document has it.
struct Field {
    /// Whether it is in what says least, and in what says everything.
    is_in: (bool, bool),
    is_ever: bool,
    /// The object that it is, or has.
    object: Option<String>,
}

struct Document(BTreeMap<String, BTreeMap<String, Field>>);

impl Document {
    fn read() -> Self {
        let lines =
            include_str!("fields.txt").lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
        let objects = lines.map(|line| {
            let (name, fields) = line.split_once(" = ").unwrap();
            (name.to_owned(), fields.split(' ').map(field).collect())
        });
        Self(objects.collect())
    }

    fn check(&self, place: &str, name: &str, json: &Value, much: Much) {
        let fields = self.0.get(name).unwrap_or_else(|| panic!("{place}: the document has no {name}"));
        let json = json.as_object().unwrap_or_else(|| panic!("{place}: {json} is no object"));
        for (name, field) in fields {
            let is_needed = if much == Much::Least { field.is_in.0 } else { field.is_in.1 };
            assert!(json.contains_key(name) || !is_needed, "{place}.{name} is missing: {json:?}");
        }
        for (name, value) in json {
            let field = fields.get(name).filter(|field| field.is_ever);
            let field = field.unwrap_or_else(|| panic!("{place}.{name} is not in the document"));
            let Some(object) = &field.object else { continue };
            let place = format!("{place}.{name}");
            match value {
                Value::Array(items) => {
                    assert!(much == Much::Least || !items.is_empty(), "{place} is empty");
                    items.iter().for_each(|item| self.check(&place, object, item, much));
                }
                value => self.check(&place, object, value, much),
            }
        }
    }
}

fn field(text: &str) -> (String, Field) {
    let (text, object) = text.split_once(':').map_or((text, None), |(name, object)| (name, Some(object)));
    let object = object.map(|object| object.trim_end_matches("[]").to_owned());
    let name = text.trim_start_matches(['+', '~', '-']).trim_end_matches('?');
    let (is_ever, on_demand) = (!text.starts_with('-'), text.starts_with('~'));
    let always = is_ever && !on_demand;
    (name.to_owned(), Field { is_in: (always && !text.ends_with('?'), always), is_ever, object })
}

#[test]
fn every_type_has_the_fields_of_the_document() {
    let (contract, document) = (Contract::read(), Document::read());
    let mut seen = BTreeSet::new();
    for kind in contract.kinds() {
        for much in [Much::Everything, Much::Least] {
            let bytes = contract.filled(EVENT, Some(kind), much);
            let json = super::event(Event::decode(bytes.as_slice()).unwrap());
            let name = json["type"].as_str().unwrap().to_owned();
            document.check(&name, "Envelope", &json, much);
            document.check(&name, &name, &json["data"], much);
            seen.insert(name);
        }
    }
    let all: BTreeSet<_> = wire::SESSION_EVENTS.into_iter().map(str::to_owned).collect();
    assert_eq!(seen, all);
}
