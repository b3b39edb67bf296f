use super::*;
use crate::tools::executors::Pool;

fn reach(names: &[&str], usual: &str) -> Reach {
    let executor = |name: &&str| ((*name).to_owned(), Executor::new(Arc::new(Pool::default())).of_many(name));
    Reach::several(names.iter().map(executor).collect(), usual)
}

fn call(arguments: &str) -> ToolCall {
    ToolCall { id: domain::CallId::new("c"), name: "bash".to_owned(), arguments: arguments.to_owned() }
}

fn offer(tools: &[(&str, Value)], instructions: &[(&str, &str)]) -> Offer {
    let spec = |(name, parameters): &(&str, Value)| ToolSpec {
        name: (*name).to_owned(),
        description: String::new(),
        parameters: parameters.clone(),
    };
    Offer {
        specs: tools.iter().map(spec).collect(),
        toolsets: tools.iter().map(|(name, _)| (*name).to_owned()).collect(),
        instructions: instructions.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect(),
        ..Offer::default()
    }
}

#[test]
fn a_call_goes_where_it_says_and_nowhere_else() {
    let with_usual = reach(&["eu", "us"], "us");
    let goes =
        |reach: &Reach, arguments: &str| reach.choose(&call(arguments)).map(|(name, _)| name.to_owned());
    for (arguments, expected) in [
        (r#"{"cluster":"eu"}"#, "eu"),
        (r#"{"cluster":"us"}"#, "us"),
        (r#"{"cluster":""}"#, "us"),
        (r#"{"cluster":7}"#, "us"),
        ("{}", "us"),
        ("not json", "us"),
    ] {
        assert_eq!(goes(&with_usual, arguments).as_deref(), Ok(expected), "{arguments}");
    }
    let unknown = goes(&with_usual, r#"{"cluster":"local"}"#).unwrap_err();
    assert!(unknown.contains("`local`") && unknown.contains("`eu`, `us`"), "{unknown}");
    let without = reach(&["eu", "us"], "local");
    assert!(goes(&without, "{}").unwrap_err().contains("must be one of `eu`, `us`"));
    assert_eq!(goes(&without, r#"{"cluster":"eu"}"#).as_deref(), Ok("eu"));
    let one = Reach::one("eu", Executor::new(Arc::new(Pool::default())));
    assert_eq!(goes(&one, r#"{"cluster":"us"}"#).as_deref(), Ok("eu"), "there it is the tool's own");
}

#[test]
fn models_see_which_cluster_has_which_tool() {
    let schema = || json!({ "type": "object", "properties": { "command": {} }, "required": ["command"] });
    let own = json!({ "type": "object", "properties": { "cluster": {} } });
    let offers = [
        (
            "us",
            offer(&[("bash", schema()), ("named", own)], &[("bash", "Use it."), ("logs", "Not available")]),
        ),
        ("eu", offer(&[("bash", schema()), ("alerts", json!({ "type": "object" }))], &[("bash", "Use it.")])),
    ];
    let merged = reach(&["eu", "us"], "us").merged(&offers);
    let names: Vec<_> = merged.specs.iter().map(|spec| spec.name.as_str()).collect();
    assert_eq!(names, ["bash", "alerts"]);
    assert_eq!(merged.toolsets.len(), 2);
    let cluster = |at: usize| merged.specs[at].parameters["properties"]["cluster"].clone();
    assert_eq!(cluster(0)["enum"], json!(["eu", "us"]));
    assert!(cluster(0)["description"].as_str().unwrap().contains("`us`"));
    assert_eq!(cluster(1)["enum"], json!(["eu"]));
    assert_eq!(merged.specs[0].parameters["required"], json!(["command"]));
    assert_eq!(merged.specs[1].parameters["required"], json!(["cluster"]), "the usual one does not have it");
    let told: Vec<_> = merged.instructions.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(told, ["bash", "logs (us)"]);
}
