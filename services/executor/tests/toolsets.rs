//! Toolsets from a file: values stay values, and what does not work says why.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a failed step fails the test"
)]

#[expect(dead_code, reason = "not all tests use all of it")]
mod rig;

use std::time::Duration;

use executor::Executor;
use rig::{Rig, config};
use serde_json::json;
use wire::executor::{
    EffectClass, Ending, ListToolsRequest, PlanRequest, Summarize, ToolStatus, ToolsetStatus, Verdict,
};

async fn rig() -> Rig {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/toolsets.yaml");
    Rig::with(executor::Config { toolsets: Some(path.into()), ..config() }).await
}

/// The error of an executor with this toolset file.
async fn refusal(yaml: &str) -> String {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("own.yaml");
    std::fs::write(&path, yaml).unwrap();
    let built = Executor::build(executor::Config { toolsets: Some(path), ..config() }).await;
    built.expect_err("a refusal").to_string()
}

async fn refused_command(command: &str) -> String {
    let tool = json!({"name": "own", "description": "d", "script": command});
    refusal(&json!({"toolsets": {"mine": {"tools": [tool]}}}).to_string()).await
}

#[tokio::test]
async fn no_value_is_ever_read_by_a_shell() {
    let mut rig = rig().await;
    let directory = tempfile::tempdir().unwrap();
    let trap = directory.path().join("touched");
    let touch = format!("touch {}", trap.display());
    let values = [
        format!("; {touch}"),
        format!("$({touch})"),
        format!("`{touch}`"),
        format!("' ; {touch} ; '"),
        format!("\" ; {touch} ; \""),
        format!("'\"'\"'$({touch})"),
        format!("a\n{touch}\nb"),
        format!("END\n{touch}"),
        format!("a && {touch} || {touch} | {touch} &"),
        format!("a[$({touch})]"),
        format!("> {}", trap.display()),
        "${PATH} $HOME $1 $@ $sleuthvalue0 sleuthvalue0x".to_owned(),
        "{{ text }} {% if text %} * ? ~ [a-z] {a,b} \\ \\n %s %d !! # ü".to_owned(),
    ];
    for tool in ["say_bare", "say_double", "say_single", "say_nested", "say_script", "say_document"] {
        for value in &values {
            let end = rig.run(tool, &json!({"text": value})).await;
            assert_eq!(
                (end.status(), end.data.trim_end()),
                (ToolStatus::Success, format!("<{value}>").as_str()),
                "{tool}"
            );
        }
    }
    assert!(!trap.exists());
}

#[tokio::test]
async fn a_value_is_no_option() {
    let mut rig = rig().await;
    for value in ["-v", "--help", "-"] {
        let end = rig.run("say_bare", &json!({"text": value})).await;
        assert_eq!(end.ending(), Ending::Refused);
        assert_eq!(end.error, "refused: the parameter `text` must not begin with a dash");
        let end = rig.run("say_double", &json!({"text": value})).await;
        assert_eq!(end.data, format!("<{value}>"), "within a word it is one");
    }
}

#[tokio::test]
async fn results_and_refusals_name_the_call() {
    let mut rig = rig().await;
    for (tool, arguments, status, data, error) in [
        ("greet", json!({"who": "you all"}), ToolStatus::Success, "hello you all", ""),
        ("greet", json!({"who": "you", "times": 2}), ToolStatus::Success, "hello you 2 times", ""),
        ("greet", json!({}), ToolStatus::Error, "", "refused: the parameter `who` is missing"),
        (
            "greet",
            json!({"who": "a\0b"}),
            ToolStatus::Error,
            "",
            "refused: the parameter `who` must be at most",
        ),
        ("greet", json!({"who": "x", "times": "no"}), ToolStatus::Error, "", "must be an integer"),
        (
            "fails",
            json!({}),
            ToolStatus::Error,
            "why",
            "Command \"echo why; exit 3\" returned non-zero exit status 3",
        ),
        ("is_empty", json!({}), ToolStatus::NoData, "", ""),
        ("dawdles", json!({}), ToolStatus::Error, "", "timed out after 1 seconds"),
    ] {
        let end = rig.run(tool, &arguments).await;
        assert_eq!((end.status(), end.data.trim_end()), (status, data), "{tool} {arguments}: {}", end.error);
        assert!(end.error.contains(error), "{tool}: {}", end.error);
    }
    let plan = PlanRequest {
        tool: "greet".to_owned(),
        arguments_json: json!({"who": "a\n\u{1b}[2Jb"}).to_string(),
        ..PlanRequest::default()
    };
    let plan = rig.client.plan(plan).await.unwrap().into_inner();
    assert_eq!((plan.verdict(), plan.effect()), (Verdict::Allow, EffectClass::Read));
    assert_eq!(plan.description, "greet a ⏎  [2Jb");
}

#[tokio::test]
async fn patterns_of_approval_cover_every_tool() {
    let mut rig = rig().await;
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("touched");
    for (tool, arguments) in [("shout_loudly", json!({"file": file})), ("bash", json!({"command": "ls"}))] {
        let plan = PlanRequest {
            tool: tool.to_owned(),
            arguments_json: arguments.to_string(),
            ..PlanRequest::default()
        };
        let plan = rig.client.plan(plan).await.unwrap().into_inner();
        assert_eq!((plan.verdict(), plan.effect()), (Verdict::Ask, EffectClass::Mutation));
        assert!(plan.reason.contains("the approval of a person"));
        assert_eq!(rig.run(tool, &arguments).await.ending(), Ending::Refused);
    }
    assert!(!file.exists());
}

#[tokio::test]
async fn toolsets_say_what_is_missing() {
    let mut rig = rig().await;
    let list = rig.client.list_tools(ListToolsRequest::default()).await.unwrap().into_inner();
    for (name, status, error) in [
        ("notes", ToolsetStatus::Enabled, ""),
        ("broken", ToolsetStatus::Failed, "`echo no such thing; exit 7` exited with 7: no such thing"),
        (
            "secretive",
            ToolsetStatus::Failed,
            "these variables of the environment are not set: SLEUTH_TEST_NOT_SET",
        ),
        ("off", ToolsetStatus::Disabled, ""),
        (
            "datadog/logs",
            ToolsetStatus::Failed,
            "Sleuth has no toolset of this name, and it declares no tools",
        ),
        ("core_investigation", ToolsetStatus::Disabled, ""),
    ] {
        let toolset = list.toolsets.iter().find(|toolset| toolset.name == name).unwrap();
        assert_eq!((toolset.status(), toolset.error.as_str()), (status, error), "{name}");
    }
    let names: Vec<_> = list.tools.iter().map(|tool| tool.name.as_str()).collect();
    assert!(names.contains(&"greet"));
    for hidden in ["never", "tell", "unused", "TodoWrite"] {
        assert!(!names.contains(&hidden), "{hidden}");
    }
    let greet = list.tools.iter().find(|tool| tool.name == "greet").unwrap();
    let schema: serde_json::Value = serde_json::from_str(&greet.parameters_json).unwrap();
    assert_eq!(schema["required"], json!(["who"]));
    assert_eq!(schema["properties"]["times"], json!({"type": "integer", "description": "How often"}));
}

#[tokio::test]
async fn tools_say_what_is_to_become_of_long_results() {
    let mut rig = rig().await;
    let list = rig.client.list_tools(ListToolsRequest::default()).await.unwrap().into_inner();
    let of = |name: &str| list.tools.iter().find(|tool| tool.name == name).unwrap().summarize.clone();
    let summarize = |input_threshold, prompt: &str, model: &str| {
        Some(Summarize { input_threshold, prompt: prompt.to_owned(), model: model.to_owned() })
    };
    assert_eq!(of("greet"), summarize(500, "Only names.", "small"), "its own");
    assert_eq!(of("fails"), summarize(1000, "", ""), "its toolset's");
    assert_eq!(of("bash"), None);
    let restricted: Vec<_> =
        list.tools.iter().filter(|tool| tool.restricted).map(|tool| &tool.name).collect();
    assert_eq!(restricted, ["is_harmless", "is_empty"]);
}

#[tokio::test]
async fn commands_say_what_changes_something() {
    let mut rig = rig().await;
    for (tool, effect) in [
        ("fails", EffectClass::Read),
        ("changes", EffectClass::Mutation),
        ("is_empty", EffectClass::Mutation),
        ("is_harmless", EffectClass::Read),
    ] {
        let plan = PlanRequest { tool: tool.to_owned(), ..PlanRequest::default() };
        let plan = rig.client.plan(plan).await.unwrap().into_inner();
        assert_eq!((plan.verdict(), plan.effect()), (Verdict::Allow, effect), "{tool}");
    }
}

#[tokio::test]
async fn nobody_sees_values_but_their_command() {
    let mut rig = rig().await;
    let mut asked = rig::request(&rig::unique(), "keeps_secrets", &json!({}));
    asked.request_headers = [("x-token".to_owned(), "quiet-brown-fox".to_owned())].into();
    let events = rig.execute(asked).await.unwrap();
    let end = rig::finished(&rig::rest(events).await);
    let lines: Vec<_> = end.data.lines().collect();
    let [arguments, environment, variable, header] = lines[..] else { panic!("{end:?}") };
    let own = env!("CARGO_MANIFEST_DIR");
    assert_eq!(variable, format!("variable: {own}"));
    for seen in [arguments, environment] {
        assert!(!seen.contains(own) && !seen.contains("sleuthvalue0="), "{seen}");
    }
    assert_eq!((header, end.redacted_spans), ("header: [masked:known]", 1), "{end:?}");
}

#[tokio::test]
async fn headers_of_whoever_asks_are_values_too() {
    let mut rig = rig().await;
    let mut says = async |tenant: Option<&str>| {
        let mut asked = rig::request(&rig::unique(), "says_tenant", &json!({}));
        asked.request_headers =
            tenant.map(|tenant| ("x-tenant".to_owned(), tenant.to_owned())).into_iter().collect();
        let events = rig.execute(asked).await.unwrap();
        rig::finished(&rig::rest(events).await)
    };
    let end = says(Some("blue; $(id) '\"")).await;
    assert_eq!(end.data, "<blue; $(id) '\">");
    for (tenant, why) in [(None, "has no header `X-Tenant`"), (Some("-v"), "must not begin with a dash")] {
        let end = says(tenant).await;
        assert!(end.error.starts_with("refused: ") && end.error.contains(why), "{}", end.error);
    }
}

#[tokio::test]
async fn a_toolset_comes_when_what_it_needs_does() {
    let directory = tempfile::tempdir().unwrap();
    let needed = directory.path().join("needed");
    let path = directory.path().join("toolsets.yaml");
    let tool = json!({"name": "late", "description": "Late.", "command": "true"});
    let prerequisite = json!({"command": format!("test -e {}", needed.display())});
    let file = json!({"toolsets": {"late": {"prerequisites": [prerequisite], "tools": [tool]}}});
    std::fs::write(&path, file.to_string()).unwrap();
    let refresh = Duration::from_millis(50);
    let config = executor::Config { toolsets: Some(path), toolset_refresh: refresh, ..config() };
    let mut rig = Rig::with(config).await;
    assert!(!offers(&mut rig, "late").await);
    std::fs::write(needed, "").unwrap();
    let comes = async { while !offers(&mut rig, "late").await {} };
    tokio::time::timeout(Duration::from_secs(30), comes).await.unwrap();
}

async fn offers(rig: &mut Rig, name: &str) -> bool {
    let list = rig.client.list_tools(ListToolsRequest::default()).await.unwrap().into_inner();
    list.tools.iter().any(|tool| tool.name == name)
}

#[tokio::test]
async fn templates_in_which_a_value_could_become_code_are_refused() {
    for command in [
        "echo $(( {{ n }} ))",
        "(( {{ n }} ))",
        "[[ {{ n }} -eq 1 ]] && echo",
        "echo `echo {{ n }}`",
        "echo ${x:-{{ n }}}",
        "echo ${x:{{ n }}}",
        "echo $'{{ n }}'",
        "a[{{ n }}]=1",
        "echo > {{ n }}",
        "cat <<'END'\n{{ n }}\nEND",
        "{{ n }} --version",
        "\"{{ n }}\" --version",
        "eval echo {{ n }}",
        "bash -c \"echo {{ n }}\"",
        "timeout 5 sh -c 'echo {{ n }}'",
        "xargs /bin/sh -ec {{ n }}",
        "ssh host {{ n }}",
        "let x={{ n }}",
        "test -v {{ n }}",
        "command {{ n }}",
        "f() { eval \"{{ n }}\"; }",
        "echo $(eval {{ n }})",
        "for ((i = 0; i < {{ n }}; i++)); do echo; done",
        "echo \\{{ n }}",
    ] {
        let error = refused_command(command).await;
        assert!(error.contains("own.yaml: toolset `mine`, tool `own`: "), "{command}: {error}");
    }
}

#[tokio::test]
async fn files_that_cannot_be_used_say_where_and_why() {
    for (file, place, why) in [
        (json!({"toolsets": {"mine": {"tools": [{"name": "x"}]}}}), "toolset `mine`: ", "missing field"),
        (
            json!({"toolsets": {"mine": {"tools": [{"name": "x", "description": "d"}]}}}),
            "toolset `mine`, tool `x`: ",
            "it needs a `command` or a `script`",
        ),
        (
            json!({"toolsets": {"mine": {"tools": [{"name": "x", "description": "d", "command": "a {{ b | c }}"}]}}}),
            "toolset `mine`, tool `x`: ",
            "`{{ b | c }}` is not supported",
        ),
        (
            json!({"toolsets": {"mine": {"tools": [{"name": "bash", "description": "d", "command": "ls"}]}}}),
            "toolset `mine`: ",
            "its tool `bash` is one of toolset `bash`, too",
        ),
        (
            json!({"toolsets": {"mine": {"transformers": [{"name": "llm_summarize", "config": {"input_threshold": -1}}]}}}),
            "toolset `mine`: ",
            "transformer `llm_summarize`: invalid value",
        ),
        (
            json!({"toolsets": {"bash": {"tools": [{"name": "x", "description": "d", "command": "ls"}]}}}),
            "toolset `bash`: ",
            "it is built in",
        ),
    ] {
        let error = refusal(&file.to_string()).await;
        assert!(error.contains(&format!("own.yaml: {place}")) && error.contains(why), "{error}");
    }
    assert!(refusal("toolsets: [").await.contains("own.yaml: "));
}
