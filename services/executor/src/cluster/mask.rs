//! Hides the values of Secrets in an API server's answers, and leaves their keys and, from 6 bytes on, sizes.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use bytes::{Bytes, BytesMut};
use futures_util::{Stream, StreamExt as _, stream};
use http::{HeaderMap, HeaderValue, header};
use serde_json::{Map, Value};

/// The most of an answer that is looked into as a whole: a list, or one event of a watch.
pub(super) const LIMIT: usize = 16 << 20;
/// The annotation in which `kubectl apply` keeps what it was given.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// What hidden values are made of, and how that looks in base64.
const STAR: &str = "*";
const STARS: &[u8] = b"KioqKioq";
const LEAST: usize = 6;

/// Why an answer cannot be shown.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    #[error("the answer is larger than {} MiB", LIMIT >> 20)]
    TooLarge,
    #[error("the answer is not JSON")]
    NotJson,
    #[error("the answer broke off: {0}")]
    Broken(#[from] reqwest::Error),
}

/// Asks for JSON that is not compressed. Tables stay tables.
pub(super) fn ask_for_json(headers: &mut HeaderMap) {
    headers.remove(header::ACCEPT_ENCODING);
    let accepted: Vec<_> = headers
        .get_all(header::ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(str::trim)
        .filter(|range| range.split(';').next() == Some("application/json"))
        .collect();
    let accepted = HeaderValue::from_str(&accepted.join(","));
    let plain = HeaderValue::from_static("application/json");
    headers.insert(header::ACCEPT, accepted.ok().filter(|value| !value.is_empty()).unwrap_or(plain));
}

/// Masks an answer that is one document.
pub(super) fn document(body: &[u8]) -> Result<Bytes, Error> {
    let mut value: Value = serde_json::from_slice(body).map_err(|_| Error::NotJson)?;
    hide(&mut value);
    Ok(serde_json::to_vec(&value).map_err(|_| Error::NotJson)?.into())
}

/// Masks the events of a watch, one a line, as they come.
pub(super) fn events(
    body: impl Stream<Item = reqwest::Result<Bytes>> + Send + 'static,
) -> impl Stream<Item = Result<Bytes, Error>> + Send {
    stream::unfold(Some((Box::pin(body), BytesMut::new())), async |state| {
        let (mut body, mut buffer) = state?;
        let shown = match line(&mut body, &mut buffer).await {
            Ok(Some(line)) => masked_line(&line),
            Ok(None) => return None,
            Err(error) => Err(error),
        };
        let rest = shown.is_ok().then_some((body, buffer));
        Some((shown, rest))
    })
}

fn masked_line(line: &[u8]) -> Result<Bytes, Error> {
    if line.trim_ascii().is_empty() {
        return Ok(Bytes::new());
    }
    Ok([&document(line)?[..], b"\n"].concat().into())
}

/// The next line. Where it is searched for again, it is only in what came since.
async fn line(
    body: &mut (impl Stream<Item = reqwest::Result<Bytes>> + Unpin),
    buffer: &mut BytesMut,
) -> Result<Option<BytesMut>, Error> {
    let mut searched = 0;
    loop {
        if let Some(at) = buffer[searched..].iter().position(|byte| *byte == b'\n') {
            return Ok(Some(buffer.split_to(searched + at + 1)));
        }
        searched = buffer.len();
        match body.next().await {
            Some(piece) => buffer.extend_from_slice(&piece?),
            None if buffer.is_empty() => return Ok(None),
            None => return Ok(Some(buffer.split())),
        }
        if buffer.len() > LIMIT {
            return Err(Error::TooLarge);
        }
    }
}

/// Whether a request would write masks over values.
pub(super) fn has_masks(body: &[u8]) -> bool {
    body.windows(STARS.len()).any(|window| window == STARS)
}

/// Hides wherever a Secret may stand: alone, in a list, in a row of a table, in an event.
fn hide(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(hide),
        Value::Object(fields) => {
            fields.remove("managedFields");
            if let Some(Value::Object(annotations)) = fields.get_mut("annotations") {
                annotations.remove(LAST_APPLIED);
            }
            for (key, value) in fields {
                match (key.as_str(), value) {
                    ("data", Value::Object(entries)) => hide_entries(entries, encoded),
                    ("stringData", Value::Object(entries)) => hide_entries(entries, plain),
                    ("data" | "stringData", value) => *value = Value::Null,
                    (_, value) => hide(value),
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn hide_entries(entries: &mut Map<String, Value>, mask: fn(&str) -> String) {
    for value in entries.values_mut() {
        *value = value.as_str().map_or(Value::Null, |text| mask(text).into());
    }
}

/// As many stars as there were bytes, but so many that they are known again.
fn encoded(text: &str) -> String {
    let size = BASE64_STANDARD.decode(text).map_or(text.len(), |bytes| bytes.len());
    BASE64_STANDARD.encode(plain_of(size))
}

fn plain(text: &str) -> String {
    plain_of(text.len())
}

fn plain_of(size: usize) -> String {
    if size == 0 { String::new() } else { STAR.repeat(size.max(LEAST)) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn masked(value: &Value) -> Value {
        serde_json::from_slice(&document(value.to_string().as_bytes()).unwrap()).unwrap()
    }

    fn secret() -> Value {
        json!({
            "metadata": {
                "name": "db", "managedFields": [{"fieldsV1": {"f:data": {}}}],
                "annotations": {LAST_APPLIED: "{\"data\":{\"password\":\"aHVudGVyMg==\"}}", "team": "shop"},
            },
            "data": {"password": "aHVudGVyMg==", "empty": "", "broken": "not base64", "odd": {"deep": "aHVudGVyMg=="}},
            "stringData": {"user": "hunter2"},
            "type": "Opaque",
        })
    }

    #[test]
    fn values_are_hidden_wherever_a_secret_stands() {
        let hidden = json!({
            "metadata": {"name": "db", "annotations": {"team": "shop"}},
            "data": {"password": "KioqKioqKg==", "empty": "", "broken": "KioqKioqKioqKg==", "odd": null},
            "stringData": {"user": "*******"},
            "type": "Opaque",
        });
        for around in [
            |secret: Value| secret,
            |secret| json!({"kind": "SecretList", "items": [secret]}),
            |secret| json!({"kind": "Table", "rows": [{"cells": ["db", "Opaque", 3], "object": secret}]}),
            |secret| json!({"type": "ADDED", "object": {"rows": [{"object": secret}]}}),
        ] {
            assert_eq!(masked(&around(secret())), around(hidden.clone()));
        }
    }

    #[test]
    fn a_mask_keeps_the_size_and_is_known_again() {
        let masked = encoded("aHVudGVyMg==");
        assert_eq!(BASE64_STANDARD.decode(&masked).unwrap(), b"*******");
        assert!(has_masks(masked.as_bytes()) && !has_masks(b"aHVudGVyMg=="));
        for size in 1..20 {
            let masked = encoded(&BASE64_STANDARD.encode("x".repeat(size)));
            assert!(has_masks(masked.as_bytes()), "{size}: {masked}");
        }
    }

    #[tokio::test]
    async fn events_are_masked_whatever_the_pieces() {
        let text =
            format!("{}\n\n{}", json!({"object": secret()}), json!({"object": {"data": {"a": "aGk="}}}));
        for size in [1, 7, 10_000] {
            let pieces: Vec<_> =
                text.as_bytes().chunks(size).map(|piece| Ok(Bytes::copy_from_slice(piece))).collect();
            let shown: Vec<_> = events(stream::iter(pieces)).collect().await;
            let shown: Vec<u8> = shown.into_iter().flat_map(|line| line.unwrap()).collect();
            let shown = String::from_utf8(shown).unwrap();
            assert!(
                shown.contains("KioqKioqKg==")
                    && shown.contains("\"KioqKioq\"")
                    && !shown.contains("aHVudGVyMg"),
                "{shown}"
            );
        }
    }

    #[tokio::test]
    async fn what_is_no_json_ends_the_stream() {
        let pieces = [Ok(Bytes::from_static(b"{}\nhunter2\n")), Ok(Bytes::from_static(b"{}\n"))];
        let shown: Vec<_> = events(stream::iter(pieces)).collect().await;
        assert!(matches!(shown[..], [Ok(_), Err(Error::NotJson)]), "{shown:?}");
    }

    #[test]
    fn tables_are_still_asked_for_and_nothing_but_json() {
        let table = "application/json;as=Table;v=v1;g=meta.k8s.io";
        for (asked, sent) in [
            (
                format!("application/vnd.kubernetes.protobuf,{table}, application/json"),
                format!("{table},application/json"),
            ),
            ("application/yaml".to_owned(), "application/json".to_owned()),
        ] {
            let mut headers =
                HeaderMap::from_iter([(header::ACCEPT, HeaderValue::from_str(&asked).unwrap())]);
            ask_for_json(&mut headers);
            assert_eq!(headers[header::ACCEPT], sent);
        }
    }
}
