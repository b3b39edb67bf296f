//! The contracts only grow: what a client was built against stays as it was.
//!
//! `contracts/baseline.txt` lists every element of the contracts. A line that disappears or changes is a
//! breaking change and fails; a line that is new is an addition, which the list must be given too: write it
//! with `SLEUTH_UPDATE_BASELINE=1`.

#![cfg(test)]

use std::{collections::BTreeSet, fs, path::PathBuf};

use prost::Message as _;
use prost_types::{
    DescriptorProto, EnumDescriptorProto, FieldDescriptorProto, FileDescriptorProto, FileDescriptorSet,
    ServiceDescriptorProto,
};

fn files() -> Vec<FileDescriptorProto> {
    let set = FileDescriptorSet::decode(wire::DESCRIPTORS).unwrap();
    set.file.into_iter().filter(|file| file.package().starts_with("sleuth.")).collect()
}

/// Every element of the contracts, one a line.
fn elements() -> BTreeSet<String> {
    let mut lines = BTreeSet::new();
    for file in files() {
        let package = file.package();
        file.message_type.iter().for_each(|message| describe_message(package, message, &mut lines));
        file.enum_type.iter().for_each(|list| describe_enum(package, list, &mut lines));
        file.service.iter().for_each(|service| describe_service(package, service, &mut lines));
    }
    lines
}

fn describe_message(scope: &str, message: &DescriptorProto, lines: &mut BTreeSet<String>) {
    let name = format!("{scope}.{}", message.name());
    lines.insert(format!("message {name}"));
    for field in &message.field {
        let oneof = field.oneof_index.filter(|_| !field.proto3_optional()).map(|at| {
            let oneof = &message.oneof_decl[usize::try_from(at).unwrap()];
            format!(" oneof {}", oneof.name())
        });
        lines.insert(format!("field {name}.{} {}{}", field.name(), kind(field), oneof.unwrap_or_default()));
    }
    message.nested_type.iter().for_each(|nested| describe_message(&name, nested, lines));
    message.enum_type.iter().for_each(|nested| describe_enum(&name, nested, lines));
}

fn kind(field: &FieldDescriptorProto) -> String {
    let optional = if field.proto3_optional() { " optional" } else { "" };
    let kind = match field.type_name() {
        "" => format!("{:?}", field.r#type()),
        name => name.trim_start_matches('.').to_owned(),
    };
    format!("= {} {:?}{optional} {kind}", field.number(), field.label())
}

fn describe_enum(scope: &str, list: &EnumDescriptorProto, lines: &mut BTreeSet<String>) {
    for value in &list.value {
        lines.insert(format!("value {scope}.{}.{} = {}", list.name(), value.name(), value.number()));
    }
}

fn describe_service(scope: &str, service: &ServiceDescriptorProto, lines: &mut BTreeSet<String>) {
    for method in &service.method {
        let stream = |yes: bool| if yes { "stream " } else { "" };
        lines.insert(format!(
            "rpc {scope}.{}.{} ({}{}) returns ({}{})",
            service.name(),
            method.name(),
            stream(method.client_streaming()),
            method.input_type(),
            stream(method.server_streaming()),
            method.output_type(),
        ));
    }
}

#[test]
fn the_contracts_only_grow() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/contracts/baseline.txt");
    let now = elements();
    if std::env::var_os("SLEUTH_UPDATE_BASELINE").is_some() {
        let lines: Vec<_> = now.iter().map(String::as_str).collect();
        fs::write(&path, lines.join("\n") + "\n").unwrap();
    }
    let baseline: BTreeSet<_> = fs::read_to_string(&path).unwrap().lines().map(str::to_owned).collect();
    let broken: Vec<_> = baseline.difference(&now).collect();
    assert!(broken.is_empty(), "breaking changes, which existing clients do not survive:\n{broken:#?}");
    let added: Vec<_> = now.difference(&baseline).collect();
    assert!(
        added.is_empty(),
        "additions; run this test with SLEUTH_UPDATE_BASELINE=1 to list them:\n{added:#?}"
    );
}

#[test]
fn every_element_is_commented() {
    for file in files() {
        let info = file.source_code_info.as_ref().unwrap();
        let commented: BTreeSet<&[i32]> = info
            .location
            .iter()
            .filter(|location| !location.leading_comments().trim().is_empty())
            .map(|location| location.path.as_slice())
            .collect();
        let mut wanted = Vec::new();
        for (at, message) in (0..).zip(&file.message_type) {
            wanted.push((vec![4, at], message.name().to_owned()));
            wanted.extend(
                (0..).zip(&message.field).map(|(field, f)| (vec![4, at, 2, field], f.name().to_owned())),
            );
        }
        for (at, list) in (0..).zip(&file.enum_type) {
            wanted.push((vec![5, at], list.name().to_owned()));
            wanted.extend(
                (0..).zip(&list.value).map(|(value, v)| (vec![5, at, 2, value], v.name().to_owned())),
            );
        }
        for (at, service) in (0..).zip(&file.service) {
            wanted.push((vec![6, at], service.name().to_owned()));
            let methods = (0..).zip(&service.method);
            wanted.extend(methods.map(|(method, m)| (vec![6, at, 2, method], m.name().to_owned())));
        }
        let missing: Vec<_> = wanted
            .iter()
            .filter(|(path, _)| !commented.contains(path.as_slice()))
            .map(|(_, name)| name)
            .collect();
        assert!(missing.is_empty(), "{}: no comment on {missing:?}", file.name());
    }
}
