//! Files of a session, and what a model is shown of them, of a question's documents, and of skills.

use serde_json::{Value, json};

use crate::bench::{Bench, Chat, asking, bash, call};

/// Reads on to the end, and allows whatever is asked about.
async fn allowing(bench: &Bench, chat: &mut Chat) {
    while let Some(relay) = chat.until("relay").await {
        let (session, id) = (chat.session().to_owned(), relay["id"].as_str().unwrap());
        assert_eq!(bench.answer(&session, id, json!({"approved": true})).await.0, 200);
    }
}

#[tokio::test]
async fn files_are_made_read_and_patched() {
    let bench = Bench::start().await;
    let patch =
        |text: &str| call("patch", json!({"patch": format!("*** Begin Patch\n{text}\n*** End Patch")}));
    let read = |path: &str| call("read", json!({"filePath": path}));
    let script = json!({"steps": [
        [patch("*** Add File: notes/a.txt\n+one\n+two")],
        [bash("echo three >> notes/a.txt")],
        [patch("*** Update File: notes/a.txt\n@@\n-two\n+2")],
        [read("notes/a.txt")],
        [patch("*** Update File: notes/a.txt\n@@\n one\n-two\n+2\n three")],
        [patch("*** Delete File: notes/a.txt")],
        [read("notes/a.txt")], [read("../../etc/passwd")],
    ]});
    let mut chat = bench.open(&script, None).await;
    allowing(&bench, &mut chat).await;
    let said: Vec<_> = chat
        .outputs()
        .iter()
        .map(|output| output["context"].as_str().or(output["error"].as_str()).unwrap().to_owned())
        .collect();
    assert_eq!(said[0], "Added notes/a.txt");
    assert!(said[2].contains("has changed since it was read"), "{said:?}");
    assert!(said[3].contains("1\tone\n2\ttwo\n3\tthree\n"), "{said:?}");
    assert_eq!(said[4..6], ["Updated notes/a.txt", "Deleted notes/a.txt"]);
    assert!(said[6].contains("does not exist") && said[7].contains("outside of the workspace"), "{said:?}");
}

#[tokio::test]
async fn always_counts_for_patches_of_the_same_folder_and_for_agents() {
    let bench = Bench::start().await;
    let add = |path: &str| call("patch", json!({"patch": format!("*** Add File: {path}\n+one\n+two")}));
    let agent = |number: u32| call("agent", json!({"task": format!("part {number}:\nsay what it is")}));
    let script = json!({"steps": [
        [add("notes/a.txt")], [add("notes/old/b.txt")], [add("c.txt")], [add("keys/d.txt")],
        [add("logs/e.txt")], [agent(1)], [agent(2)],
    ]});
    let rule = |files: &str| json!({"tool": "patch", "params": {"patch": files}, "reason": "not those"});
    let permissions = json!({"allowlist": [rule("logs/*")], "deny": [rule("keys/**")]});
    let mut chat = bench.open(&script, Some(permissions)).await;
    let mut asked = Vec::new();
    while let Some(relay) = chat.until("relay").await {
        asked.push(relay["params"].to_string());
        let (session, id) = (chat.session().to_owned(), relay["id"].as_str().unwrap());
        let approved = !asked.last().unwrap().contains("c.txt");
        let response = json!({"approved": approved, "always": approved, "reason": "no"});
        assert_eq!(bench.answer(&session, id, response).await.0, 200);
    }
    assert_eq!(asked.len(), 3, "{asked:?}");
    for (asked, of) in asked.iter().zip(["notes/a.txt", "c.txt", "part 1"]) {
        assert!(asked.contains(of), "{asked}");
    }
    let outputs = chat.outputs();
    let added = [0, 1, 4].map(|at| outputs[at]["context"].as_str().unwrap());
    assert_eq!(added, ["Added notes/a.txt", "Added notes/old/b.txt", "Added logs/e.txt"]);
    let denied = [outputs[2], outputs[3]].map(|output| (&output["status"], &output["reason"]));
    assert_eq!(denied, [(&json!("denied"), &json!("no")), (&json!("denied"), &json!("not those"))]);
    assert_eq!(chat.all("harness_start").len(), 3, "both agents ran");
}

#[tokio::test]
async fn pictures_and_documents_are_shown_to_the_model() {
    let bench = Bench::start().await;
    let script = json!({"steps": [
        [bash(r"printf '\x89PNG\x00' > a.png; printf '%%PDF' > b.pdf")],
        [call("read", json!({"filePath": "a.png"}))],
        [call("read", json!({"filePath": "b.pdf"}))],
    ]});
    let mut body = asking(&script, json!({}));
    let text = body["messages"][0]["content"].take();
    body["messages"][0]["content"] = json!([
        {"type": "text", "text": text}, {"type": "document", "mediaType": "application/pdf", "data": "JVBERg=="},
    ]);
    let mut chat = Chat::open(&bench.url(), &body).await;
    allowing(&bench, &mut chat).await;
    let outputs = chat.outputs();
    let picture = json!({"type": "image", "mediaType": "image/png", "data": "iVBORwA="});
    assert_eq!(*outputs[1], json!({"context": "a picture (image/png, 5 bytes)", "result": picture}));
    assert_eq!(outputs[2]["result"]["mediaType"], "application/pdf");
    let last = bench.openai.requests().last().unwrap().body["messages"].clone();
    let shown: Vec<&Value> =
        last.as_array().unwrap().iter().filter(|message| message["role"] == "user").collect();
    let file = json!({"filename": "document.pdf", "file_data": "data:application/pdf;base64,JVBERg=="});
    assert_eq!(shown[0]["content"][1], json!({"type": "file", "file": file}));
    assert_eq!(shown[1]["content"][1]["image_url"]["url"], "data:image/png;base64,iVBORwA=");
    assert_eq!(shown[2]["content"][1]["file"]["file_data"], "data:application/pdf;base64,JVBERg==");
}

#[tokio::test]
async fn skills_are_announced_and_read_by_tool() {
    const SKILL: &str = "---\nname: rotate-logs\ndescription: >-\n  Rotates logs when\n  a disk is full.\n\
        license: Apache-2.0\nmetadata:\n  version: \"1\"\n---\n# Rotate\n\nFirst look at sizes.\n";
    let bench = Bench::with(|start, folder| {
        let skills = folder.path().join("skills");
        std::fs::create_dir_all(skills.join("rotate-logs")).unwrap();
        std::fs::write(skills.join("rotate-logs/SKILL.md"), SKILL).unwrap();
        start.arg("--runbooks").arg(skills)
    })
    .await;
    let reading = json!({"steps": [[call("fetch_runbook", json!({"runbook_id": "rotate-logs"}))]]});
    let part = call("agent", json!({"task": format!("look FAKE_LLM{reading}")}));
    let mut chat = bench.open(&json!({"steps": [[part]]}), None).await;
    chat.end().await;
    let told = "<name>rotate-logs</name>\n    <description>Rotates logs when a disk is full.</description>";
    for request in bench.openai.requests() {
        let system = &request.body["messages"][0]["content"];
        assert!(system.as_str().unwrap().contains(told), "agents below hear of them, too: {system}");
    }
    assert!(chat.outputs()[0]["context"].as_str().unwrap().contains("First look at sizes."));
}

#[tokio::test]
async fn files_that_are_lost_with_their_executor_are_said_to_be() {
    let bench = Bench::start().await;
    let script = json!({"steps": [[bash("mkdir kept")], [bash("touch kept/a")], [bash("ls")]]});
    let mut chat = bench.open(&script, None).await;
    let first = chat.until("relay").await.unwrap();
    let session = chat.session().to_owned();
    let yes = json!({"approved": true});
    assert_eq!(bench.answer(&session, first["id"].as_str().unwrap(), yes.clone()).await.0, 200);
    let second = chat.until("relay").await.unwrap();

    bench.sleuth.lose_executor().await.unwrap();
    assert_eq!(bench.answer(&session, second["id"].as_str().unwrap(), yes).await.0, 200);
    chat.end().await;
    let outputs = chat.outputs();
    assert!(outputs[1]["error"].as_str().unwrap().contains("files of this session were"), "{outputs:?}");
    assert_eq!(outputs[2]["result"]["stdout"], "", "it begins anew: {outputs:?}");
}
