//! The JavaScript client that the API's document prints, in a real browser, on a page of another origin.
//!
//! `clients/browser/document.js` is that client, unchanged but for the address; `page.html` is what surrounds it.
//! `clients/browser/install` installs the browser and the library; without them the test is left out.

#![cfg(test)]

use harness::{
    browser::{self, Site},
    models::{Script, ScriptedOpenAi},
    process::{Sleuth, Start},
};
use serde_json::json;

async fn sleuth(model: &ScriptedOpenAi, origin: Option<&str>) -> Sleuth {
    let list = format!("gpt: {{model: openai/gpt-4.1, api_key: none, base_url: {}}}\n", model.url());
    let start = Start::serve().models(&list).unwrap();
    origin
        .into_iter()
        .fold(start, |start, origin| start.env("SLEUTH_CORS_ORIGINS", origin))
        .start()
        .await
        .unwrap()
}

#[tokio::test]
async fn the_documents_client_works_in_a_browser() {
    let Some(site) = Site::new().await.unwrap() else { return };
    let model = ScriptedOpenAi::start().await.unwrap();
    let chart = json!({"chart_type": "line", "metric": "cpu"});
    let steps = json!([[
        {"name": "render_chart", "args": chart}, {"name": "navigate_to_page", "args": {"page": "/dashboards"}},
    ]]);
    let script: Script =
        serde_json::from_value(json!({"say": "**I draw.**", "steps": steps, "answer": "It is drawn."}))
            .unwrap();
    model.say_by_default(script);

    let origin = site.origin().unwrap();
    let (server, other) = tokio::join!(sleuth(&model, Some(&origin)), sleuth(&model, None));
    let addressed = |name: &str| {
        let text = browser::file(name).unwrap();
        let text = text.replace("<HOLMES-URL>", &server.address("http").unwrap().to_string());
        text.replace("<OTHER-URL>", &other.address("http").unwrap().to_string())
    };
    let client = format!("{}\nstreamChat({{ ask: originalQuestion }});\n", addressed("document.js"));
    let report = site.show(addressed("page.html"), client).await.unwrap();

    let seen = report["seen"].as_array().unwrap_or_else(|| panic!("{report:#}"));
    let shown =
        |kind: &str| seen.iter().filter(|entry| entry[0] == kind).map(|entry| &entry[1]).collect::<Vec<_>>();
    assert_eq!(shown("markdown"), ["**I draw.**"], "{report:#}");
    assert_eq!(shown("chart"), [&chart], "{report:#}");
    let logged = [
        "Tool started: render_chart",
        "Tool started: navigate_to_page",
        "Tool result: navigate_to_page",
        "Tool result: render_chart",
    ];
    assert_eq!(shown("log"), logged, "{report:#}");
    let last = report["history"]
        .as_array()
        .and_then(|history| history.last())
        .unwrap_or_else(|| panic!("{report:#}"));
    assert_eq!(last["content"], "It is drawn.");
    assert!(report["request_id"].is_string(), "headers that pages may read: {report:#}");
    assert_eq!(report["other"], "TypeError", "a server that does not know the page's origin: {report:#}");
}
