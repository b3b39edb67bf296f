//! Facts of an answer against the answer itself.
//!
//! In facts, `"$string"`, `"$number"`, `"$boolean"` and `"$object"` stand for any value of that type, and
//! `"$string^TEXT"` for any string that begins with the text; everything else is exact. Results of one batch of
//! tools may come in any order.

use serde_json::{Value, json};

/// What is not there.
const ABSENT: &str = "$absent";

/// Something that is not as the facts say.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Difference {
    /// Where: the event or `body`, and keys from there; items of lists are not told apart.
    pub(crate) path: String,
    /// What is there instead.
    pub(crate) sent: Value,
    /// Whether the facts do not know the place.
    is_added: bool,
}

/// Everything in which an answer is not as its facts say.
pub(crate) fn differences(facts: &Value, answer: &Value) -> Vec<Difference> {
    let [facts, answer] = [facts, answer].map(|answer| in_order(answer.clone()));
    let mut found = Vec::new();
    compare("status", &facts["status"], &answer["status"], &mut found);
    if !found.is_empty() {
        // Another status has another body.
        return found;
    }
    for head in ["content_type", "allow"] {
        compare(head, &facts[head], &answer[head], &mut found);
    }
    let (expected, seen) = (events(&facts), events(&answer));
    let names = |events: &[(&str, &Value)]| json!(events.iter().map(|(name, _)| name).collect::<Vec<_>>());
    compare("events", &names(&expected), &names(&seen), &mut found);
    if found.iter().all(|difference| difference.path != "events") {
        for ((name, facts), (_, data)) in expected.iter().zip(&seen) {
            compare(name, facts, data, &mut found);
        }
    }
    compare("body", &facts["body"], &answer["body"], &mut found);
    found
}

/// Everything in which a value is not as its facts say, beside what it has more.
pub(crate) fn lacking(facts: &Value, value: &Value) -> Vec<Difference> {
    let mut found = Vec::new();
    compare("", facts, value, &mut found);
    found.retain(|difference| !difference.is_added);
    found
}

/// Whether a value is what a pattern allows.
pub(crate) fn allows(pattern: &Value, value: &Value) -> bool {
    let mut found = Vec::new();
    compare("", pattern, value, &mut found);
    found.is_empty()
}

fn events(answer: &Value) -> Vec<(&str, &Value)> {
    let events = answer["events"].as_array().into_iter().flatten();
    events.map(|event| (event["event"].as_str().unwrap_or_default(), &event["data"])).collect()
}

fn compare(path: &str, facts: &Value, seen: &Value, found: &mut Vec<Difference>) {
    let agrees = match (facts, seen) {
        (Value::Object(facts), Value::Object(seen)) => {
            for (key, value) in facts {
                compare(&format!("{path}.{key}"), value, seen.get(key).unwrap_or(&json!(ABSENT)), found);
            }
            for (key, value) in seen.iter().filter(|(key, _)| !facts.contains_key(*key)) {
                found.push(Difference { path: format!("{path}.{key}"), sent: value.clone(), is_added: true });
            }
            true
        }
        (Value::Array(facts), Value::Array(seen)) if facts.len() == seen.len() => {
            for (facts, seen) in facts.iter().zip(seen) {
                compare(&format!("{path}[]"), facts, seen, found);
            }
            true
        }
        (Value::String(kind), seen) if kind.starts_with('$') && kind != ABSENT => is_a(kind, seen),
        (facts, seen) => facts == seen,
    };
    if !agrees {
        found.push(Difference { path: path.to_owned(), sent: seen.clone(), is_added: false });
    }
}

fn is_a(kind: &str, seen: &Value) -> bool {
    let text = seen.as_str().filter(|text| *text != ABSENT);
    match kind {
        "$string" => text.is_some(),
        "$number" => seen.is_number(),
        "$boolean" => seen.is_boolean(),
        "$object" => seen.is_object(),
        "$array" => seen.is_array(),
        _ => {
            let start = kind.strip_prefix("$string^").unwrap_or_else(|| panic!("{kind} is no kind"));
            text.is_some_and(|text| text.starts_with(start))
        }
    }
}

/// An answer with the results of each batch of tools in the order of their ids.
fn in_order(mut answer: Value) -> Value {
    let call = |event: &Value| event["data"]["tool_call_id"].as_str().map(str::to_owned);
    sort_runs(&mut answer["events"], |event| call(event).filter(|_| event["event"] == "tool_calling_result"));
    let payloads = answer["events"].as_array().map_or(0, Vec::len);
    for payload in (0..payloads).map(|index| format!("/events/{index}/data")).chain(["/body".to_owned()]) {
        let Some(payload) = answer.pointer_mut(&payload).filter(|payload| payload.is_object()) else {
            continue;
        };
        for list in ["conversation_history", "tool_calls"] {
            if let Some(list) = payload.get_mut(list) {
                sort_runs(list, |item| item["tool_call_id"].as_str().map(str::to_owned));
            }
        }
    }
    answer
}

/// Sorts each run of neighbours that have a key.
fn sort_runs(list: &mut Value, key: impl Fn(&Value) -> Option<String>) {
    let Some(list) = list.as_array_mut() else { return };
    for run in list.chunk_by_mut(|left, right| key(left).is_some() && key(right).is_some()) {
        run.sort_by_key(&key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(facts: &Value, answer: &Value) -> Vec<String> {
        differences(facts, answer).into_iter().map(|difference| difference.path).collect()
    }

    #[test]
    fn kinds_and_exact_values() {
        let facts =
            json!({"status": 200, "body": {"a": "$string", "b": "$number", "c": null, "d": [1, "$boolean"]}});
        let good = json!({"status": 200, "body": {"a": "x", "b": 1.5, "c": null, "d": [1, true]}});
        assert_eq!(differences(&facts, &good), []);
        let bad = json!({"status": 200, "body": {"a": 1, "c": false, "d": [2, 3], "e": 1}});
        assert_eq!(paths(&facts, &bad), ["body.a", "body.b", "body.c", "body.d[]", "body.d[]", "body.e"]);
        assert_eq!(paths(&facts, &json!({"status": 200, "body": {"a": "$absent"}}))[0], "body.a");
        assert_eq!(paths(&facts, &json!({"status": 404, "body": {}})), ["status"]);
        let start = json!({"body": "$string^why?"});
        assert_eq!(differences(&start, &json!({"body": "why? and more"})), []);
        assert_eq!(paths(&start, &json!({"body": "what?"})), ["body"]);
    }

    #[test]
    fn only_results_of_one_batch_may_change_places() {
        let result = |id: &str| json!({"event": "tool_calling_result", "data": {"tool_call_id": id}});
        let other = json!({"event": "token_count", "data": {}});
        let facts = json!({"events": [result("1"), result("2"), other, result("3")]});
        assert_eq!(
            paths(&facts, &json!({"events": [result("2"), result("1"), other, result("3")]})),
            [""; 0]
        );
        let moved = json!({"events": [result("1"), result("3"), other, result("2")]});
        assert_eq!(paths(&facts, &moved).len(), 2);
        let cut = json!({"events": [result("1"), other, result("3")]});
        assert_eq!(paths(&facts, &cut), ["events"]);
    }

    #[test]
    fn more_than_the_facts_is_no_lack() {
        assert_eq!(lacking(&json!({"a": [{"b": 1}]}), &json!({"a": [{"b": 1, "c": 2}], "d": 3})), []);
        assert_eq!(lacking(&json!({"a": 1}), &json!({"b": 1}))[0].path, ".a");
    }

    #[test]
    fn absence_can_be_allowed() {
        assert!(allows(&json!("$absent"), &json!("$absent")));
        assert!(!allows(&json!("$string"), &json!("$absent")));
        assert!(!allows(&json!("$absent"), &json!(null)));
    }
}
