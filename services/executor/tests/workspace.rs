//! The tools of the profile `harness`: commands and files of a session, and no way out of its workspace.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a failed step fails the test"
)]
#![expect(dead_code, reason = "not every test needs all of the rig")]

mod rig;

use std::{fs, path::PathBuf, time::SystemTime};

use grants::{Context, Decider, KeyRing, SigningKey, allow, sha256};
use prost::Message as _;
use prost_types::Timestamp;
use rig::{Rig, config, finished, request, rest, unique};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tonic::Code;
use wire::executor::{
    Clock, CloseSessionRequest, EffectClass, Ending, ExactScope, ExecuteRequest, Finished, Grant,
    ListToolsRequest, PlanRequest, SignedGrant, StandingScope, ToolStatus, Verdict, grant::Scope,
};

/// An executor with a session in which a person has allowed `patch` and some commands.
struct World {
    rig: Rig,
    key: SigningKey,
    standing: Vec<Vec<u8>>,
    state: tempfile::TempDir,
}

impl World {
    async fn new() -> Self {
        Self::with(1 << 20).await
    }

    async fn with(workspace_bytes: u64) -> Self {
        let (key, state) = (SigningKey::generate().unwrap(), tempfile::tempdir().unwrap());
        let mut config = config();
        config.grant_keys = KeyRing::parse(&key.public().to_string()).unwrap();
        config.state = state.path().join("state");
        config.workspace_bytes = workspace_bytes;
        config.bash_allow =
            ["tee", "ln -s", "touch", "mkfifo", "dd", "sleep", "mkdir"].map(str::to_owned).to_vec();
        let standing = vec![standing(&key, "patch", "patch")];
        Self { rig: Rig::with(config).await, key, standing, state }
    }

    fn request(&self, session: &str, tool: &str, arguments: &Value) -> ExecuteRequest {
        ExecuteRequest {
            session: session.to_owned(),
            profile: "harness".to_owned(),
            standing_grants: self.standing.iter().cloned().map(Into::into).collect(),
            ..request(&unique(), tool, arguments)
        }
    }

    async fn run_in(&mut self, session: &str, tool: &str, arguments: &Value) -> Finished {
        let request = self.request(session, tool, arguments);
        finished(&rest(self.rig.execute(request).await.unwrap()).await)
    }

    async fn run(&mut self, tool: &str, arguments: &Value) -> Finished {
        self.run_in("session", tool, arguments).await
    }

    /// Runs a command that a person has seen and allowed.
    async fn approved(&mut self, command: &str) -> Finished {
        let mut request = self.request("session", "bash", &json!({"command": command}));
        let plan = PlanRequest {
            tool: request.tool.clone(),
            arguments_json: request.arguments_json.clone(),
            session: request.session.clone(),
            profile: request.profile.clone(),
            ..PlanRequest::default()
        };
        let plan = self.rig.client.plan(plan).await.unwrap().into_inner();
        let scope = Scope::Exact(ExactScope {
            execution_id: request.execution_id.clone(),
            tool: request.tool.clone(),
            arguments_sha256: sha256(&request.arguments_json).into(),
            policy_version: plan.policy_version,
            target: plan.target,
        });
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs();
        let decider = Decider { account: "", principal: "ada", now: now.try_into().unwrap() };
        request.grant = allow(&self.key, scope, decider).into();
        finished(&rest(self.rig.execute(request).await.unwrap()).await)
    }

    async fn bash(&mut self, command: &str) -> Value {
        let end = self.run("bash", &json!({"command": command})).await;
        serde_json::from_str(&end.data).unwrap_or_else(|_| json!({"error": end.error}))
    }

    async fn read(&mut self, path: &str) -> String {
        let end = self.run("read", &json!({"filePath": path})).await;
        if end.status() == ToolStatus::Success { end.data } else { end.error }
    }

    async fn patch(&mut self, patch: &str) -> String {
        let end = self.run("patch", &json!({"patch": patch})).await;
        if end.status() == ToolStatus::Success { end.data } else { end.error }
    }

    /// The directories of all sessions.
    fn workspaces(&self) -> Vec<PathBuf> {
        let homes = fs::read_dir(self.state.path().join("state/workspaces")).into_iter().flatten().flatten();
        let homes = homes.filter(|entry| entry.path().is_dir());
        homes
            .flat_map(|home| fs::read_dir(home.path()).unwrap().flatten())
            .map(|entry| entry.path())
            .collect()
    }
}

fn standing(key: &SigningKey, tool: &str, prefix: &str) -> Vec<u8> {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs();
    let at = |later: i64| Some(Timestamp { seconds: i64::try_from(now).unwrap() + later, nanos: 0 });
    let grant = Grant {
        account: String::new(),
        principal: "ada".to_owned(),
        issued_at: at(0),
        expires_at: at(600),
        scope: Some(Scope::Standing(StandingScope {
            session: "session".to_owned(),
            tool: tool.to_owned(),
            prefixes: vec![prefix.to_owned()],
            rules: Vec::new(),
            target: String::new(),
            profile: "harness".to_owned(),
        })),
    };
    let grant = grant.encode_to_vec();
    let signature = key.sign(Context::Grant, &grant).into();
    SignedGrant { grant: grant.into(), signature, key_id: key.public().id() }.encode_to_vec()
}

#[tokio::test]
async fn each_profile_has_its_own_tools() {
    let mut world = World::new().await;
    let ask = |profile: &str| ListToolsRequest { caller: None, profile: profile.to_owned() };
    let list = world.rig.client.list_tools(ask("harness")).await.unwrap().into_inner();
    let names: Vec<_> = list.tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["bash", "read", "patch"]);
    let usual = world.rig.client.list_tools(ask("")).await.unwrap().into_inner();
    assert!(usual.tools.iter().all(|tool| tool.toolset != "workspace" && tool.name != "patch"));
    let unknown = world.rig.client.list_tools(ask("other")).await.unwrap_err();
    assert_eq!(unknown.code(), Code::InvalidArgument);
}

#[tokio::test]
async fn commands_start_in_the_workspace_and_change_nothing_else() {
    let mut world = World::new().await;
    let elsewhere = world.state.path().join("file").display().to_string();
    assert_eq!(
        world.bash("echo 1 | tee a; cat a").await,
        json!({"exitCode": 0, "stdout": "1\n1\n", "stderr": ""})
    );
    let place = world.bash("pwd").await["stdout"].as_str().unwrap().trim().to_owned();
    assert_eq!(world.workspaces(), [PathBuf::from(&place)]);
    for command in [
        format!("tee {elsewhere}"),
        "tee ../file".to_owned(),
        "touch /etc/file".to_owned(),
        format!("mkdir {}/state/started", world.state.path().display()),
    ] {
        assert_ne!(world.bash(&command).await["exitCode"], 0, "{command}");
    }
    assert!(!PathBuf::from(elsewhere).exists());
    // Another session sees nothing of it.
    let other = world.run_in("other", "bash", &json!({"command": format!("cat {place}/a")})).await;
    assert!(other.data.contains("\"exitCode\":1"), "{}", other.data);
    assert_eq!(world.workspaces().len(), 2);
    let alone = world.run_in("", "bash", &json!({"command": "ls"})).await;
    assert!(alone.error.contains("no session"), "{}", alone.error);
}

#[tokio::test]
async fn only_what_nobody_knows_has_a_network() {
    let mut world = World::new().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let connect = format!("</dev/tcp/127.0.0.1/{}", listener.local_addr().unwrap().port());
    // What is known to read, with a file that a person let it write.
    let end = world.approved(&format!("cat {connect} >a; echo $?")).await;
    assert!(end.data.contains(r#""stdout":"1\n""#), "{end:?}");
    let known = world.bash(&format!("ls {connect}")).await;
    assert!(known["error"].is_string() || known["exitCode"] != 0, "{known}");
    let end = world.approved(&format!("true; exec 9{connect} && echo out")).await;
    assert!(end.data.contains(r#""stdout":"out\n""#), "{end:?}");
}

#[tokio::test]
async fn what_commands_write_can_be_read_and_patched() {
    let mut world = World::new().await;
    world.bash("echo one | tee a").await;
    assert_eq!(
        world.patch("*** Update File: a\n@@\n-one\n+1").await,
        "Error: a must be read before it is changed."
    );
    assert_eq!(world.read("a").await, "<file path=\"a\" lines=\"1-1\" total=\"1\">\n1\tone\n</file>");
    let patch = "*** Begin Patch\n*** Update File: a\n@@\n-one\n+1\n*** Add File: b/c\n+2\n*** End Patch";
    assert_eq!(world.patch(patch).await, "Updated a\nAdded b/c");
    assert_eq!(world.bash("cat a b/c").await["stdout"], "1\n2\n");
    let stops = world
        .run("patch", &json!({"patch": "*** Add File: d\n+\n*** Delete File: no\n*** Delete File: d"}))
        .await;
    assert_eq!((stops.data.as_str(), stops.error.as_str()), ("Added d", "Error: no does not exist."));
}

#[tokio::test]
async fn links_lead_nowhere() {
    let mut world = World::new().await;
    fs::write(world.state.path().join("secret"), "SECRET").unwrap();
    let target = world.state.path().join("secret").display().to_string();
    world.bash(&format!("ln -s {target} link; ln -s / root; mkfifo pipe")).await;
    for path in ["link", &format!("root{target}"), "../../../../etc/passwd", "/etc/passwd", &target, "pipe"] {
        let read = world.read(path).await;
        assert!(read.starts_with("Error: ") && !read.contains("SECRET"), "{path}: {read}");
        let written = world.patch(&format!("*** Add File: {path}\n+mine")).await;
        assert!(written.starts_with("Error: "), "{path}: {written}");
    }
    assert_eq!(fs::read_to_string(target).unwrap(), "SECRET");
}

#[tokio::test]
async fn patches_need_a_person_and_reads_do_not() {
    let mut world = World::new().await;
    for (tool, arguments, verdict, effect) in [
        ("patch", json!({"patch": "*** Add File: a"}), Verdict::Ask, EffectClass::Mutation),
        ("patch", json!({"patch": "hello"}), Verdict::Deny, EffectClass::Read),
        ("read", json!({"filePath": "a"}), Verdict::Allow, EffectClass::Read),
        ("read", json!({"filePath": "a", "offset": -1}), Verdict::Deny, EffectClass::Read),
        ("bash", json!({"command": "ls"}), Verdict::Allow, EffectClass::Read),
        ("bash", json!({"command": "rm a"}), Verdict::Ask, EffectClass::Mutation),
        ("bash", json!({"command": "sudo ls"}), Verdict::Deny, EffectClass::Mutation),
        ("bash", json!({"command": "ls", "timeout": 0}), Verdict::Deny, EffectClass::Read),
    ] {
        let plan = PlanRequest {
            tool: tool.to_owned(),
            arguments_json: arguments.to_string(),
            session: "session".to_owned(),
            profile: "harness".to_owned(),
            ..PlanRequest::default()
        };
        let plan = world.rig.client.plan(plan).await.unwrap().into_inner();
        assert_eq!((plan.verdict(), plan.effect()), (verdict, effect), "{tool} {arguments}: {}", plan.reason);
    }
}

#[tokio::test]
async fn time_and_space_end() {
    let mut world = World::with(4 << 20).await;
    let late = world.run("bash", &json!({"command": "sleep 60", "timeout": 0.2})).await;
    assert_eq!((late.ending(), late.clock()), (Ending::TimedOut, Clock::Run));
    let much = "dd if=/dev/zero of=big bs=1M count=64; sleep 60";
    let full = world.run("bash", &json!({"command": much, "timeout": 30})).await;
    assert_eq!(full.ending(), Ending::OutputLimit, "{}", full.error);
    assert!(full.error.contains("the workspace held more than 4194304 bytes"), "{}", full.error);
    let more = world.run("bash", &json!({"command": "ls"})).await;
    assert!(more.error.contains("the workspace holds more than"), "{}", more.error);
    world.read("big").await;
}

#[tokio::test]
async fn a_session_that_ends_leaves_nothing() {
    let mut world = World::new().await;
    world.bash("touch a").await;
    assert_eq!(world.workspaces().len(), 1);
    let close = CloseSessionRequest { session: "session".to_owned(), ..CloseSessionRequest::default() };
    world.rig.client.close_session(close.clone()).await.unwrap();
    assert_eq!(world.workspaces(), Vec::<PathBuf>::new());
    world.rig.client.close_session(close).await.unwrap();
    assert_eq!(world.bash("cat a").await["exitCode"], 1);
}
