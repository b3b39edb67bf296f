//! The redactor as a table, and as properties over any text in any pieces.

use std::sync::LazyLock;

use proptest::prelude::*;

use super::*;

/// Name of the rule (or `-` if it must stay readable), what is masked, and the text.
const TABLE: &str = include_str!("../../tests/data/secrets.tsv");

static BUILTIN: LazyLock<Redactor> = LazyLock::new(|| Redactor::new(Settings::default(), &[]).unwrap());

fn redactor() -> Redactor {
    BUILTIN.clone()
}

fn masked(text: &str) -> Masked {
    redactor().text(text, Suspicion::Usual)
}

fn cases() -> impl Iterator<Item = (&'static str, &'static str, String)> {
    TABLE.lines().filter(|line| !line.starts_with('#')).map(|line| {
        let columns: Vec<_> = line.splitn(3, '\t').collect();
        (columns[0], columns[1], columns[2].replace("\\n", "\n").replace('¦', "\\n"))
    })
}

#[test]
fn every_text_of_the_table_is_masked_as_it_says() {
    let wrong: Vec<_> = cases()
        .filter_map(|(rule, secrets, text)| {
            let Masked { text: shown, spans } = masked(&text);
            let right = match rule {
                "-" => shown == text && spans == 0,
                rule => {
                    let hidden = |secret| text.contains(secret) && !shown.contains(secret);
                    shown.contains(&format!("[masked:{rule}]")) && spans > 0 && secrets.split(' ').all(hidden)
                }
            };
            (!right).then(|| format!("{rule}: {shown}"))
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(cases().count() >= 100);
}

#[test]
fn what_is_masked_stays_as_it_is() {
    for (_, _, text) in cases() {
        let once = masked(&text).text;
        assert_eq!(masked(&once), Masked { text: once, spans: 0 });
    }
}

#[test]
fn json_stays_json() {
    let pod = serde_json::json!({"kind": "Secret", "data": {"a": "aHVudGVyMg==", "b\"": "{\"c\": 1}"},
        "env": [{"name": "DB_PASSWORD", "value": "hunter2"}], "password": "x\\y\"z", "token": null});
    for text in [
        pod.to_string(),
        serde_json::to_string_pretty(&pod).unwrap(),
        serde_json::json!(pod.to_string()).to_string(),
    ] {
        let shown = masked(&text).text;
        assert!(serde_json::from_str::<serde_json::Value>(&shown).is_ok(), "{shown}");
        assert!(!shown.contains("hunter2") && !shown.contains("aHVudGVyMg"), "{shown}");
    }
}

#[test]
fn a_command_that_reads_secrets_shows_no_encoded_value() {
    let text = "NAME   DATA\norders-db   map[password:aHVudGVyMg== user:YWRtaW4=]\naHVudGVyMg==";
    let shown = redactor().text(text, Suspicion::ReadsSecrets);
    assert_eq!(
        shown.text,
        "NAME   DATA\norders-db   map[password:[masked:password] user:[masked:secret-data]]\n[masked:secret-data]"
    );
    assert_eq!(shown.spans, 3);
}

#[test]
fn the_operator_adds_rules_and_switches_off_others() {
    let settings = |text: &str| serde_saphyr::from_str::<Settings>(text).unwrap();
    let own = settings("disable: [jwt]\nrules: [{name: staff, pattern: 'staff-(\\d{4})'}]");
    let text = "eyJhbGciOiJI.eyJzdWIiOiIx.c2lnbmF0dXJl staff-1234";
    let shown = Redactor::new(own, &[]).unwrap().text(text, Suspicion::Usual).text;
    assert_eq!(shown, "eyJhbGciOiJI.eyJzdWIiOiIx.c2lnbmF0dXJl staff-[masked:staff]");
    for (wrong, reason) in
        [("disable: [jwtt]", "`jwtt`"), ("rules: [{name: broken, pattern: '('}]", "`broken`")]
    {
        let error = Redactor::new(settings(wrong), &[]).unwrap_err().to_string();
        assert!(error.contains(reason), "{error}");
    }
}

#[test]
fn known_secrets_are_masked_wherever_they_are() {
    let redactor =
        Redactor::new(Settings::default(), &["correct horse".to_owned().into(), "short".to_owned().into()])
            .unwrap();
    let shown = redactor.text("x=correct horse! short", Suspicion::Usual);
    assert_eq!(shown, Masked { text: "x=[masked:known]! short".to_owned(), spans: 1 });
}

/// Each stream's text, when the pieces come in this order.
fn in_pieces(pieces: &[(Source, &[u8])], suspicion: Suspicion) -> ([Vec<u8>; 2], u64) {
    let mut masker = redactor().masker(suspicion);
    let mut shown = [Vec::new(), Vec::new()];
    for (source, piece) in pieces {
        shown[*source as usize].extend(masker.push(*source, piece));
    }
    let (stdout, stderr) = masker.finish();
    shown[0].extend(stdout);
    shown[1].extend(stderr);
    (shown, masker.spans())
}

#[test]
fn a_secret_over_both_streams_is_masked_on_both() {
    let jwt = b"eyJhbGciOiJI.eyJzdWIiOiIx.c2lnbmF0dXJl";
    let pieces = [(Source::Stdout, &jwt[..20]), (Source::Stderr, &jwt[20..])];
    let ([stdout, stderr], _) = in_pieces(&pieces, Suspicion::Usual);
    assert_eq!([stdout, stderr], [b"[masked:jwt]".to_vec(), b"[masked:jwt]".to_vec()]);

    let key = [
        (Source::Stdout, &b"-----BEGIN PRIVATE KEY-----\n"[..]),
        (Source::Stderr, b"MIIEvQIBADANBgkqhkiG9w0BAQEF\n"),
    ];
    let ([_, stderr], _) = in_pieces(&key, Suspicion::Usual);
    assert_eq!(stderr, b"[masked:private-key]\n");
}

#[test]
fn a_line_without_end_is_bounded_and_hides_its_secrets() {
    let jwt = "eyJhbGciOiJI.eyJzdWIiOiIx.c2lnbmF0dXJl";
    for before in [0, 32 << 10, (32 << 10) - 20, (64 << 10) - 20, 200 << 10] {
        let text = format!("{} {jwt} {}", "é".repeat(before / 2), "z".repeat(200 << 10));
        let shown = masked(&text);
        assert_eq!((shown.text, shown.spans), (text.replace(jwt, "[masked:jwt]"), 1), "{before}");
    }
    let mut masker = redactor().masker(Suspicion::Usual);
    let mut held = 0_usize;
    for _ in 0..64 {
        held = held + (16 << 10) - masker.push(Source::Stdout, &[b'a'; 16 << 10]).len();
        assert!(held <= 80 << 10, "{held}");
    }
}

#[test]
fn a_secret_that_is_longer_than_what_is_looked_at_is_hidden_to_its_end() {
    let value = "H4sI".repeat(100 << 10);
    for text in [
        format!("data:\n  release: {value}\n  other: eA==\nkind: Secret\n"),
        format!("{{\"data\":{{\"release\":\"{value}\"}},\"kind\":\"Secret\"}}"),
    ] {
        let shown = masked(&text).text;
        assert!(shown.len() < 200, "{}", shown.len());
    }
}

#[test]
fn a_tangled_line_is_read_in_bounded_time_and_hides_its_rest() {
    let text = format!("{}\"a\":\"aHVudGVyMg==\"", "{\"data\":".repeat(5000));
    let Masked { text: shown, spans } = masked(&text);
    assert!(!shown.contains("aHVudGVyMg") && spans >= 1 && shown.len() < text.len());
}

/// Pieces of what secrets are made of.
fn fragments() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        Just(b"-----BEGIN RSA PRIVATE KEY-----".to_vec()),
        Just(b"-----END RSA PRIVATE KEY-----".to_vec()),
        Just(b"MIIEvQIBADANBgkqhkiG9w0BAQEF".to_vec()),
        Just(b"eyJhbGciOiJI.eyJzdWIiOiIx.c2lnbmF0dXJl".to_vec()),
        Just(b"password: ".to_vec()),
        Just(b"token=".to_vec()),
        Just(b"Bearer ".to_vec()),
        Just(b"postgres://u:".to_vec()),
        Just(b"AKIAIOSFODNN7EXAMPLE".to_vec()),
        Just(b"data:\n".to_vec()),
        Just(b"\"data\": {".to_vec()),
        Just(b"kind: Secret\n".to_vec()),
        Just(b"kind: ConfigMap\n".to_vec()),
        Just(b"\"kind\":\"Secret\"".to_vec()),
        Just(b"- name: DB_PASSWORD\n  value: ".to_vec()),
        Just(b"\n  key: aHVudGVyMg==\n".to_vec()),
        "[a-z\"'{}:,\\\\@ \n-]{0,6}".prop_map(String::into_bytes),
        Just("…é\u{1f512}".as_bytes().to_vec()),
        prop::collection::vec(any::<u8>(), 0..6),
    ];
    prop::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

/// Where a text of this length is cut.
fn cuts() -> impl Strategy<Value = Vec<prop::sample::Index>> {
    prop::collection::vec(any::<prop::sample::Index>(), 0..8)
}

fn cut<'a>(text: &'a [u8], at: &[prop::sample::Index]) -> Vec<&'a [u8]> {
    let mut places: Vec<_> = at.iter().map(|index| index.index(text.len() + 1)).collect();
    places.extend([0, text.len()]);
    places.sort_unstable();
    places.windows(2).map(|pair| &text[pair[0]..pair[1]]).collect()
}

proptest! {
    #[test]
    fn the_pieces_do_not_matter(text in fragments(), at in cuts(), strict in any::<bool>()) {
        let suspicion = if strict { Suspicion::ReadsSecrets } else { Suspicion::Usual };
        let pieces: Vec<_> = cut(&text, &at).into_iter().map(|piece| (Source::Stdout, piece)).collect();
        prop_assert_eq!(in_pieces(&pieces, suspicion), in_pieces(&[(Source::Stdout, &text)], suspicion));
    }

    #[test]
    fn the_order_of_pieces_on_one_stream_is_all_that_matters(first in fragments(), second in fragments(), at in cuts()) {
        let whole = [(Source::Stdout, &first[..]), (Source::Stderr, &second[..])];
        let pieces: Vec<_> = cut(&first, &at).into_iter().map(|piece| (Source::Stdout, piece))
            .chain(cut(&second, &at).into_iter().map(|piece| (Source::Stderr, piece))).collect();
        prop_assert_eq!(in_pieces(&pieces, Suspicion::Usual), in_pieces(&whole, Suspicion::Usual));
    }

    #[test]
    fn characters_stay_whole(text in "[\\PC\n]{0,200}", at in cuts()) {
        let mut masker = redactor().masker(Suspicion::Usual);
        for piece in cut(text.as_bytes(), &at) {
            prop_assert!(std::str::from_utf8(&masker.push(Source::Stdout, piece)).is_ok());
        }
        prop_assert!(std::str::from_utf8(&masker.finish().0).is_ok());
    }
}
