//! What questions are taken to mean.

use super::*;

fn parse(text: &str) -> Question {
    Question::parse(text)
}

#[test]
fn names_are_told_from_words() {
    let named = |text| {
        let question = parse(text);
        let mentions =
            question.mentions.iter().map(|mention| mention.word.to_string()).collect::<Vec<_>>().join(",");
        format!("{}|{mentions}", question.namespace.map(|name| name.to_string()).unwrap_or_default())
    };
    for (text, expected) in [
        ("what is wrong in namespace payments?", "payments|"),
        ("What's wrong in the payments namespace?", "payments|"),
        ("why is checkout slow?", "|checkout"),
        ("why does pod web-7d9c-x2 in shop crash", "|web-7d9c-x2,shop"),
        ("what is wrong with deployment/cart -n shop", "shop|cart"),
        ("check payments/ledger-writer", "payments|ledger-writer"),
        ("why is something broken", "|"),
        ("what is wrong with my cluster?", "|"),
    ] {
        assert_eq!(named(text), expected, "{text}");
    }
}

#[test]
fn wishes_are_understood() {
    use Intent::{Investigate, Other};
    for (text, intent) in [
        ("list pods in namespace payments", Intent::Show(Show::List(Kind::Pod))),
        ("show me the logs", Intent::Show(Show::Logs { previous: false })),
        ("and the events?", Intent::Show(Show::Events)),
        ("describe deployment checkout-web", Intent::Show(Show::Description)),
        ("which ports are listening on this machine?", Intent::Show(Show::Ports)),
        ("what is wrong in namespace payments?", Investigate),
        ("which pods are pending?", Investigate),
        ("is my disk full?", Investigate),
        ("why is checkout slow?", Investigate),
        ("what is 2+2", Other),
        ("write a poem about pods", Other),
        ("what is the capital of France?", Other),
        ("hello", Other),
        ("who are you?", Other),
    ] {
        assert_eq!(parse(text).intent, intent, "{text}");
    }
}

#[test]
fn topics_are_told_apart() {
    for (text, topic) in [
        ("is my disk full?", Topic::Host),
        ("why is this machine slow?", Topic::Host),
        ("what is wrong?", Topic::Both),
        ("are all pods fine?", Topic::Cluster),
    ] {
        assert_eq!(parse(text).topic, topic, "{text}");
    }
}

#[test]
fn a_follow_up_is_about_the_last_answer() {
    let transcript = Transcript {
        question: "show me the logs".into(),
        earlier: vec![
            (Role::User, "what is wrong in payments".into()),
            (Role::Assistant, "x\n```console\n$ kubectl get pod a-1 -n payments -o yaml\n```\n`kubectl logs a-1 -n payments`".into()),
        ],
        ..Transcript::default()
    };
    let subject = Question::read(&transcript).refers_to.expect("a subject");
    assert_eq!(subject.to_string(), "Pod `payments/a-1`");
}
