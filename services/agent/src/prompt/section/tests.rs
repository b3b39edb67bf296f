use super::*;

/// On by default, listed, request → on.
const RULE: [(bool, Option<bool>, Option<bool>, bool); 18] = [
    (true, None, None, true),
    (true, None, Some(true), true),
    (true, None, Some(false), false),
    (false, None, None, false),
    (false, None, Some(true), true),
    (false, None, Some(false), false),
    (true, Some(true), None, true),
    (true, Some(true), Some(true), true),
    (true, Some(true), Some(false), false),
    (false, Some(true), None, true),
    (false, Some(true), Some(true), true),
    (false, Some(true), Some(false), false),
    (true, Some(false), None, false),
    (true, Some(false), Some(true), false),
    (true, Some(false), Some(false), false),
    (false, Some(false), None, false),
    (false, Some(false), Some(true), false),
    (false, Some(false), Some(false), false),
];

const ON_BY_DEFAULT: [(&str, bool); 14] = [
    ("intro", true),
    ("ask_user", true),
    ("todowrite_instructions", true),
    ("ai_safety", false),
    ("toolset_instructions", true),
    ("permission_errors", true),
    ("general_instructions", true),
    ("style_guide", true),
    ("cluster_name", true),
    ("system_prompt_additions", true),
    ("files", true),
    ("todowrite_reminder", true),
    ("time_runbooks", true),
    ("time_skills", true),
];

fn controls(said: &[(&str, bool)]) -> HashMap<String, bool> {
    said.iter().map(|(key, on)| ((*key).to_owned(), *on)).collect()
}

#[test]
fn every_key_follows_the_rule() {
    for (key, default) in ON_BY_DEFAULT {
        let section = Section::parse(key).unwrap();
        let other = if section == Section::Intro { "files" } else { "intro" };
        for (_, listed, said, on) in RULE.into_iter().filter(|(of, ..)| *of == default) {
            let enabled = listed.and_then(|yes| EnabledPrompts::parse([if yes { key } else { other }]));
            let said: Vec<_> = said.map(|on| (key, on)).into_iter().collect();
            let sections = Sections::choose(enabled.as_ref(), &controls(&said));
            assert_eq!(sections.0.contains(&section), on, "{key}, listed: {listed:?}, request: {said:?}");
        }
    }
    let keys = ON_BY_DEFAULT.map(|(key, _)| Section::parse(key).unwrap());
    assert_eq!(BTreeSet::from(keys), BTreeSet::from(Section::ALL));
}

#[test]
fn a_choice_is_about_one_section() {
    for section in Section::ALL.into_iter().filter(|section| section.is_on_by_default()) {
        let off = Sections::choose(None, &controls(&[(section.key(), false)]));
        assert_eq!(off.0.len(), 11, "{section:?}");
        let only = EnabledPrompts::parse([section.key()]);
        assert_eq!(Sections::choose(only.as_ref(), &HashMap::new()).0, BTreeSet::from([section]));
    }
}

#[test]
fn keys_are_read_with_goodwill() {
    let off = Sections::choose(None, &controls(&[(" Style_Guide ", false), ("no such section", true)]));
    assert!(!off.0.contains(&Section::StyleGuide));
    assert_eq!(off.0.len(), 11);
    for (text, on) in [
        ("none", Some(0)),
        (" NONE ", Some(0)),
        ("", None),
        (" , ", None),
        ("files, AI_Safety ,toolset_instructions", Some(3)),
        ("scoped_namespaces,intro", Some(1)),
        ("scoped_namespaces", Some(0)),
    ] {
        let enabled = EnabledPrompts::parse(text.split(','));
        assert_eq!(enabled.map(|enabled| enabled.0.len()), on, "{text:?}");
    }
}

#[test]
fn of_contradicting_keys_off_counts() {
    for both in [[("time_runbooks", true), ("time_skills", false)], [("INTRO", false), ("intro", true)]] {
        assert_eq!(Sections::choose(None, &controls(&both)).0.len(), 11, "{both:?}");
    }
}

#[test]
fn the_order_of_the_list_is_the_order_of_the_prompt() {
    assert!(Section::ALL.is_sorted());
}
