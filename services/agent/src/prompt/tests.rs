use std::collections::HashMap;

use model::ToolSpec;

use super::*;

/// A question with something to say in every section.
fn told(keys: &str, place: Place) -> String {
    let sections = Sections::choose(EnabledPrompts::parse(keys.split(',')).as_ref(), &HashMap::new());
    let todo =
        ToolSpec { name: TODO_TOOL.into(), description: String::new(), parameters: serde_json::json!({}) };
    let offer = Offer {
        specs: [todo].into(),
        instructions: [("bash".to_owned(), " Only reads.\n".to_owned())].into(),
        ..Offer::default()
    };
    let file = File { name: "web\n.log".into(), text: "line\n```\nmore\n".into() };
    let prompt = Prompt {
        sections: &sections,
        cluster_name: Some("prod"),
        clusters: &[],
        offer: &offer,
        runbooks: &Runbooks::default(),
        matching: &[],
        addition: " Answer in French. ",
        files: &[file],
        announces_skills: false,
        now: 1_795_298_067_249_102_000,
    };
    match place {
        Place::System => prompt.system(),
        Place::User => prompt.question("why?", Vec::new()).joined_text(),
    }
}

/// A few words of each section that no other one has.
const WORDS: [(&str, &str); 13] = [
    ("intro", "You are Sleuth"),
    ("ask_user", "# When to ask back"),
    ("general_instructions", "# How to investigate"),
    ("cluster_name", "the Kubernetes cluster `prod`."),
    ("todowrite_instructions", "# Planning with TodoWrite"),
    ("ai_safety", "# Safety"),
    ("toolset_instructions", "## bash\n\nOnly reads."),
    ("permission_errors", "# Missing permissions"),
    ("style_guide", "# How to answer"),
    ("system_prompt_additions", "Answer in French."),
    ("files", "`web .log`:\n\n````\nline\n```\nmore\n````"),
    ("todowrite_reminder", "plan it with `TodoWrite` first"),
    (
        "time_runbooks",
        "The current UTC date and time are 2026-11-21 21:54:27. As a Unix timestamp that is 1795298067. ",
    ),
];

#[test]
fn every_section_says_its_part_and_no_other() {
    for key in WORDS.map(|(key, _)| key) {
        let [system, user] = [Place::System, Place::User].map(|place| told(key, place));
        for (other, words) in WORDS {
            assert_eq!(
                format!("{system}{user}").contains(words),
                key == other,
                "{key}: {words}\n{system}\n{user}"
            );
        }
        assert!(!format!("{system}{user}").contains(['{', '}']), "{key}: a placeholder is left");
    }
}

#[test]
fn all_sections_come_in_order() {
    let all = WORDS.map(|(key, _)| key).join(",");
    let whole = told(&all, Place::System) + &told(&all, Place::User);
    let places = WORDS.map(|(key, words)| whole.find(words).unwrap_or_else(|| panic!("no {key}")));
    assert!(places.is_sorted(), "{places:?}");
}

#[test]
fn without_sections_there_is_the_question_alone() {
    assert_eq!(told("none", Place::System), "");
    assert_eq!(told("none", Place::User), "why?");
}

#[test]
fn the_question_comes_before_what_is_added() {
    let user = told("files,time_runbooks,todowrite_reminder", Place::User);
    assert!(user.starts_with("why?\n\n# Added by Sleuth\n\n# Attached files"), "{user}");
    assert!(user.contains("\n- `crash-loop`: A container restarts"), "{user}");
}

#[test]
fn what_is_not_there_is_not_spoken_of() {
    let sections = Sections::choose(None, &HashMap::new());
    let prompt = Prompt {
        sections: &sections,
        cluster_name: None,
        clusters: &[],
        offer: &Offer::default(),
        runbooks: &Runbooks::default(),
        matching: &[],
        addition: "",
        files: &[],
        announces_skills: false,
        now: 0,
    };
    let whole = prompt.system() + &prompt.question("why?", Vec::new()).joined_text();
    for (key, words) in WORDS {
        let is_said = matches!(
            key,
            "intro" | "ask_user" | "general_instructions" | "permission_errors" | "style_guide"
        );
        assert_eq!(whole.contains(words), is_said, "{key}");
    }
    assert!(!whole.contains("# Toolsets") && !whole.contains("# Attached"), "{whole}");
    assert!(whole.contains("1970-01-01 00:00:00"), "{whole}");
}

#[test]
fn several_clusters_are_named_with_the_way_to_choose() {
    let sections = Sections::choose(None, &HashMap::new());
    let prompt = Prompt {
        sections: &sections,
        cluster_name: Some("eu"),
        clusters: &["eu".to_owned(), "us".to_owned()],
        offer: &Offer::default(),
        runbooks: &Runbooks::default(),
        matching: &[],
        addition: "",
        files: &[],
        announces_skills: false,
        now: 0,
    };
    let system = prompt.system();
    assert!(system.contains("several Kubernetes clusters: `eu`, `us`."), "{system}");
    assert!(!system.contains("the Kubernetes cluster `eu`"), "{system}");
}

#[test]
fn runbooks_are_announced_as_skills_before_the_conversation_where_that_is_usual() {
    let sections = Sections::choose(None, &HashMap::new());
    let (offer, runbooks) = (Offer::default(), Runbooks::default());
    let prompt = |announces_skills| Prompt {
        sections: &sections,
        cluster_name: None,
        clusters: &[],
        offer: &offer,
        runbooks: &runbooks,
        matching: &[],
        addition: "",
        files: &[],
        announces_skills,
        now: 0,
    };
    let skill = "  <skill>\n    <name>dns-failure</name>\n    <description>";
    assert!(prompt(true).system().contains(skill));
    assert!(!prompt(true).question("why?", Vec::new()).joined_text().contains("dns-failure"));
    assert!(!prompt(false).system().contains("dns-failure"));
}
