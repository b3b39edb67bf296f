//! What persons allow: exact and standing grants, what voids them, and what they never lift.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    clippy::panic,
    reason = "a failed step fails the test"
)]
#![expect(dead_code, reason = "not every test needs all of the rig")]

mod rig;

use std::{
    path::Path,
    time::{SystemTime, UNIX_EPOCH},
};

use executor::{Config, cluster::Source};
use grants::{Context, KeyRing, SigningKey, sha256};
use prost::Message as _;
use prost_types::Timestamp;
use rig::{Rig, config, finished, request, rest, unique};
use serde_json::{Value, json};
use wire::executor::{
    AttachRequest, Caller, EffectClass, Ending, ExactScope, ExecuteRequest, Finished, Grant, PlanRequest,
    PlanResponse, SignedGrant, StandingScope, Verdict, grant::Scope,
};

/// A person, and an executor that trusts their signature.
struct World {
    key: SigningKey,
    rig: Rig,
    folder: tempfile::TempDir,
}

impl World {
    async fn new() -> Self {
        Self::with(|_| {}).await
    }

    async fn with(change: impl FnOnce(&mut Config)) -> Self {
        let (key, folder) = (SigningKey::generate().unwrap(), tempfile::tempdir().unwrap());
        let mut config = trusting(&key, folder.path());
        change(&mut config);
        Self { key, rig: Rig::with(config).await, folder }
    }

    /// The same executor, started anew.
    async fn restart(&mut self) {
        self.rig.executor.shutdown().await;
        self.rig = Rig::with(trusting(&self.key, self.folder.path())).await;
    }

    /// A command that shows that it ran, each time.
    fn mark(&self) -> Value {
        json!({"command": format!("echo ran >> {}", self.folder.path().join("mark").display())})
    }

    fn marks(&self) -> usize {
        std::fs::read_to_string(self.folder.path().join("mark")).unwrap_or_default().lines().count()
    }

    /// What is said of a command that needs a permission, in a profile.
    async fn plan_in(&mut self, profile: &str, tool: &str, standing: Option<&Grant>) -> PlanResponse {
        let request = PlanRequest {
            tool: tool.to_owned(),
            arguments_json: json!({"command": "mkdir x"}).to_string(),
            standing_grants: standing.iter().map(|grant| sign(&self.key, grant).into()).collect(),
            session: "session".to_owned(),
            profile: profile.to_owned(),
            ..PlanRequest::default()
        };
        self.rig.client.plan(request).await.unwrap().into_inner()
    }

    async fn plan(&mut self, arguments: &Value, standing: &[Vec<u8>]) -> PlanResponse {
        let request = PlanRequest {
            tool: "bash".to_owned(),
            arguments_json: arguments.to_string(),
            standing_grants: standing.iter().cloned().map(Into::into).collect(),
            session: "session".to_owned(),
            ..PlanRequest::default()
        };
        self.rig.client.plan(request).await.unwrap().into_inner()
    }

    /// The grant that would be right for a call.
    async fn right(&mut self, id: &str, arguments: &Value) -> Grant {
        let plan = self.plan(arguments, &[]).await;
        let scope = ExactScope {
            execution_id: id.to_owned(),
            tool: "bash".to_owned(),
            arguments_sha256: sha256(arguments.to_string()).into(),
            policy_version: plan.policy_version,
            target: plan.target,
        };
        grant(Scope::Exact(scope))
    }

    async fn signed(&mut self, id: &str, arguments: &Value) -> Vec<u8> {
        let right = self.right(id, arguments).await;
        sign(&self.key, &right)
    }

    async fn execute(&mut self, request: ExecuteRequest) -> Finished {
        finished(&rest(self.rig.execute(request).await.unwrap()).await)
    }
}

fn trusting(key: &SigningKey, folder: &Path) -> Config {
    let mut config = config();
    config.grant_keys = KeyRing::parse(&key.public().to_string()).unwrap();
    config.state = folder.join("state");
    config
}

/// Signs anything, as no edge would.
fn sign(key: &SigningKey, grant: &Grant) -> Vec<u8> {
    let grant = grant.encode_to_vec();
    let signature = key.sign(Context::Grant, &grant).into();
    SignedGrant { grant: grant.into(), signature, key_id: key.public().id() }.encode_to_vec()
}

fn in_seconds(seconds: i64) -> Option<Timestamp> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    Some(Timestamp { seconds: i64::try_from(now).unwrap() + seconds, nanos: 0 })
}

fn grant(scope: Scope) -> Grant {
    Grant {
        account: String::new(),
        principal: "ada".to_owned(),
        issued_at: in_seconds(0),
        expires_at: in_seconds(60),
        scope: Some(scope),
    }
}

fn standing(prefixes: &[&str]) -> Grant {
    grant(Scope::Standing(StandingScope {
        session: "session".to_owned(),
        tool: "bash".to_owned(),
        prefixes: prefixes.iter().map(|it| (*it).to_owned()).collect(),
        ..StandingScope::default()
    }))
}

/// A permission for `mkdir` with a tool.
fn standing_of(tool: &str, edit: &dyn Fn(&mut StandingScope)) -> Grant {
    let mut scope = StandingScope {
        session: "session".to_owned(),
        tool: tool.to_owned(),
        prefixes: vec!["mkdir".to_owned()],
        ..StandingScope::default()
    };
    edit(&mut scope);
    grant(Scope::Standing(scope))
}

fn exact(grant: &mut Grant) -> &mut ExactScope {
    match &mut grant.scope {
        Some(Scope::Exact(scope)) => scope,
        Some(Scope::Standing(_)) | None => panic!("not exact"),
    }
}

#[tokio::test]
async fn an_exact_grant_runs_its_call_once() {
    let mut world = World::new().await;
    let (id, arguments) = (unique(), world.mark());
    let plan = world.plan(&arguments, &[]).await;
    assert_eq!((plan.verdict(), plan.effect()), (Verdict::Ask, EffectClass::Mutation));
    assert_eq!(plan.command, arguments["command"].as_str().unwrap());
    assert!(plan.target.starts_with("host "), "{}", plan.target);

    let mut call = request(&id, "bash", &arguments);
    let refused = world.execute(call.clone()).await;
    assert!(refused.error.contains("needs the approval of a person"), "{}", refused.error);

    // The person has decided: the same execution, now with a permission.
    call.grant = world.signed(&call.execution_id, &arguments).await.into();
    let end = world.execute(call.clone()).await;
    assert_eq!((end.ending(), end.exit_code, world.marks()), (Ending::Exited, Some(0), 1), "{}", end.error);
    assert_eq!(world.execute(call.clone()).await, end);

    world.restart().await;
    let end = world.execute(call.clone()).await;
    assert!(end.error.contains("was not run again"), "{}", end.error);
    assert_eq!((end.ending(), end.exit_code, world.marks()), (Ending::Exited, Some(0), 1));
    let attach = AttachRequest { execution_id: call.execution_id, ..AttachRequest::default() };
    let again = finished(&rest(world.rig.client.attach(attach).await.unwrap().into_inner()).await);
    assert_eq!(again.error, end.error);
}

#[tokio::test]
async fn anything_that_moved_voids_a_grant() {
    type Edit = fn(&mut Grant);
    let edits: [(&str, Edit); 10] = [
        ("has expired", |grant| grant.expires_at = in_seconds(-1)),
        ("until when", |grant| grant.expires_at = None),
        ("another account", |grant| grant.account = "other".to_owned()),
        ("another execution", |grant| exact(grant).execution_id = "other".to_owned()),
        ("another tool", |grant| exact(grant).tool = "other".to_owned()),
        ("another one than was shown", |grant| exact(grant).arguments_sha256 = sha256("{}").into()),
        ("the policy has changed", |grant| exact(grant).policy_version.insert(0, 'x')),
        ("for another executor", |grant| exact(grant).policy_version = "older".to_owned()),
        ("it is for elsewhere", |grant| exact(grant).target = "elsewhere".to_owned()),
        ("not for this one", |grant| *grant = standing(&["echo"])),
    ];
    let mut world = World::new().await;
    for (reason, edit) in edits {
        let (id, arguments) = (unique(), world.mark());
        let mut grant = world.right(&id, &arguments).await;
        edit(&mut grant);
        let call =
            ExecuteRequest { grant: sign(&world.key, &grant).into(), ..request(&id, "bash", &arguments) };
        let end = world.execute(call).await;
        assert!(end.error.contains(reason), "{reason}: {}", end.error);
        assert_eq!((end.ending(), world.marks()), (Ending::Refused, 0));
    }
    let (id, arguments) = (unique(), world.mark());
    let stranger = sign(&SigningKey::generate().unwrap(), &world.right(&id, &arguments).await);
    for (reason, grant) in [("not signed by a key", stranger), ("cannot be read", b"\xff".to_vec())] {
        let call = ExecuteRequest { grant: grant.into(), ..request(&unique(), "bash", &arguments) };
        assert!(world.execute(call).await.error.contains(reason));
    }
    assert_eq!(world.marks(), 0);
}

#[tokio::test]
async fn a_used_grant_stays_used_after_a_restart() {
    let mut world = World::new().await;
    let (id, arguments) = (unique(), json!({"command": "cat /proc/self/environ"}));
    let plan = world.plan(&arguments, &[]).await;
    assert_eq!((plan.verdict(), plan.effect()), (Verdict::Ask, EffectClass::SensitiveRead));
    let grant = world.signed(&id, &arguments).await;
    let call = ExecuteRequest { grant: grant.into(), ..request(&id, "bash", &arguments) };
    assert_eq!(world.execute(call.clone()).await.ending(), Ending::Exited);
    world.restart().await;
    let end = world.execute(call).await;
    assert!(end.error.contains("it is used up"), "{}", end.error);
}

/// As far as the policy and the target go, the two are one.
#[tokio::test]
async fn of_two_executors_only_the_one_that_asked_takes_a_grant() {
    let mut world = World::new().await;
    let mut twin = trusting(&world.key, world.folder.path());
    twin.state = world.folder.path().join("twin");
    let mut twin = Rig::with(twin).await;
    let (id, arguments) = (unique(), world.mark());
    let grant = world.signed(&id, &arguments).await;
    let call = ExecuteRequest { grant: grant.into(), ..request(&id, "bash", &arguments) };
    for marks in [0, 1] {
        let end = finished(&rest(twin.execute(call.clone()).await.unwrap()).await);
        assert_eq!((end.ending(), world.marks()), (Ending::Refused, marks), "{}", end.error);
        assert!(end.error.contains("another executor"), "{}", end.error);
        assert_eq!(world.execute(call.clone()).await.ending(), Ending::Exited);
        assert_eq!(world.marks(), 1);
    }
}

#[tokio::test]
async fn a_policy_that_changed_voids_grants() {
    let mut world = World::new().await;
    let (id, arguments) = (unique(), world.mark());
    let right = world.right(&id, &arguments).await;
    let mut changed = trusting(&world.key, world.folder.path());
    changed.bash_deny = vec!["never".to_owned()];
    world.rig = Rig::with(changed).await;
    let call = ExecuteRequest { grant: sign(&world.key, &right).into(), ..request(&id, "bash", &arguments) };
    assert!(world.execute(call).await.error.contains("the policy has changed"));
    assert_eq!(world.marks(), 0);
}

#[tokio::test]
async fn no_grant_lifts_a_deny() {
    let mut world = World::with(|config| config.bash_deny = vec!["touch".to_owned()]).await;
    for command in ["sudo id", "touch /tmp/never"] {
        let arguments = json!({ "command": command });
        let id = unique();
        let grant = world.right(&id, &arguments).await;
        let all = [sign(&world.key, &standing(&["sudo", "sudo id", "touch", "touch /tmp"]))];
        let plan = world.plan(&arguments, &all).await;
        assert_eq!((plan.verdict(), plan.command.as_str()), (Verdict::Deny, ""));
        let call = ExecuteRequest {
            grant: sign(&world.key, &grant).into(),
            standing_grants: all.iter().cloned().map(Into::into).collect(),
            session: "session".to_owned(),
            ..request(&id, "bash", &arguments)
        };
        assert_eq!(world.execute(call).await.ending(), Ending::Refused);
    }
}

#[tokio::test]
async fn what_a_grant_may_let_run_is_the_executors_own_choice() {
    for (lifts, change, secret) in [
        ("none", Verdict::Deny, Verdict::Deny),
        ("read", Verdict::Deny, Verdict::Deny),
        ("sensitive_read", Verdict::Deny, Verdict::Ask),
        ("mutation", Verdict::Ask, Verdict::Deny),
    ] {
        let mut world = World::with(|config| config.lifts = lifts.parse().unwrap()).await;
        let secrets = json!({"command": "kubectl get secrets"});
        assert_eq!(world.plan(&secrets, &[]).await.verdict(), secret, "{lifts}");
        let (id, arguments) = (unique(), world.mark());
        assert_eq!(world.plan(&arguments, &[]).await.verdict(), change, "{lifts}");
        let may = change == Verdict::Ask;
        let all = [sign(&world.key, &standing(&["touch"]))];
        let saved = world.plan(&json!({"command": "touch /tmp/x"}), &all).await.verdict();
        assert_eq!(saved, if may { Verdict::Allow } else { Verdict::Deny }, "{lifts}");
        let grant = world.signed(&id, &arguments).await;
        let call = ExecuteRequest { grant: grant.into(), ..request(&id, "bash", &arguments) };
        let ending = if may { Ending::Exited } else { Ending::Refused };
        assert_eq!(
            (world.execute(call).await.ending(), world.marks()),
            (ending, usize::from(may)),
            "{lifts}"
        );
    }
}

#[tokio::test]
async fn a_standing_grant_allows_beginnings_of_its_session_and_no_more() {
    let mut world = World::new().await;
    let good = standing(&["mkdir", "kubectl get"]);
    let edited = |edit: fn(&mut Grant)| {
        let mut grant = good.clone();
        edit(&mut grant);
        grant
    };
    let table = [
        ("mkdir /tmp/x", good.clone(), Verdict::Allow),
        ("mkdir /tmp/x | wc -l", good.clone(), Verdict::Allow),
        ("mkdir /tmp/x; rmdir /tmp/x", good.clone(), Verdict::Ask),
        ("mkdir $(id)", good.clone(), Verdict::Ask),
        ("mkdir x > /tmp/y", good.clone(), Verdict::Ask),
        ("(mkdir x)", good.clone(), Verdict::Ask),
        ("mkdir x &", good.clone(), Verdict::Ask),
        ("mkdirs /tmp/x", good.clone(), Verdict::Ask),
        ("kubectl get secrets", good.clone(), Verdict::Ask),
        ("mkdir /tmp/x", edited(|grant| grant.expires_at = in_seconds(-1)), Verdict::Ask),
        ("mkdir /tmp/x", edited(|grant| grant.account = "other".to_owned()), Verdict::Ask),
        (
            "mkdir /tmp/x",
            edited(|grant| {
                if let Some(Scope::Standing(scope)) = &mut grant.scope {
                    scope.session = "other".to_owned();
                }
            }),
            Verdict::Ask,
        ),
        (
            "mkdir /tmp/x",
            edited(|grant| {
                if let Some(Scope::Standing(scope)) = &mut grant.scope {
                    scope.tool = "kubectl_describe".to_owned();
                }
            }),
            Verdict::Ask,
        ),
    ];
    for (command, grant, verdict) in table {
        let signed = [sign(&world.key, &grant)];
        let plan = world.plan(&json!({ "command": command }), &signed).await;
        assert_eq!(plan.verdict(), verdict, "{command} {grant:?}");
    }
    let unsigned = [sign(&SigningKey::generate().unwrap(), &good)];
    assert_eq!(world.plan(&json!({"command": "mkdir x"}), &unsigned).await.verdict(), Verdict::Ask);
}

/// What is allowed in one place is allowed nowhere else: another host, cluster or context, or another profile whose
/// tools have the same names.
#[tokio::test]
async fn a_standing_grant_covers_its_place_and_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let kubeconfig = folder.path().join("kubeconfig");
    let use_context = |name: &str| {
        let context = |name: &str| json!({"name": name, "context": {"cluster": "c", "user": "u"}});
        let file = json!({"current-context": name, "contexts": [context("one"), context("two")]});
        std::fs::write(&kubeconfig, file.to_string()).unwrap();
    };
    use_context("one");
    let source = Source::files([kubeconfig.clone()]);
    let mut world = World::with(|config| config.kubernetes.source = source).await;
    for (profile, tool) in [("", "bash"), ("harness", "bash"), ("rlm", "exec")] {
        use_context("one");
        let here = world.plan_in(profile, tool, None).await;
        assert_eq!(here.verdict(), Verdict::Ask, "{here:?}");
        let elsewhere = here.target.replace("(context one)", "(context two)");
        let another_host = here.target.replace("host ", "host another-");
        assert!(elsewhere != here.target && another_host != here.target, "{}", here.target);
        let at = |target: &str, profile: &str| {
            standing_of(tool, &|scope| {
                (scope.target, scope.profile) = (target.to_owned(), profile.to_owned());
            })
        };
        let other = if profile == "harness" { "rlm" } else { "harness" };
        for (grant, verdict) in [
            (at(&here.target, ""), Verdict::Allow),
            (at(&another_host, ""), Verdict::Allow),
            (at(&elsewhere, ""), Verdict::Ask),
            (at("host another", ""), Verdict::Ask),
            (at("", profile), Verdict::Allow),
            (at("", other), Verdict::Ask),
            (at("", "unheard-of"), Verdict::Ask),
        ] {
            let plan = world.plan_in(profile, tool, Some(&grant)).await;
            assert_eq!(plan.verdict(), verdict, "{profile} {tool} {grant:?}");
        }
        use_context("two");
        let plan = world.plan_in(profile, tool, Some(&at(&here.target, ""))).await;
        assert_eq!((plan.verdict(), plan.target), (Verdict::Ask, elsewhere), "the context has moved");
    }
    let workspace = standing_of("bash", &|scope| scope.profile = "harness".to_owned());
    assert_eq!(world.plan_in("", "bash", Some(&workspace)).await.verdict(), Verdict::Ask);
    let bash = standing_of("bash", &|scope| scope.profile = "rlm".to_owned());
    assert_eq!(world.plan_in("rlm", "exec", Some(&bash)).await.verdict(), Verdict::Ask);
}

#[tokio::test]
async fn a_plan_says_what_a_person_needs_to_know() {
    let mut world = World::new().await;
    let arguments = json!({"command": "mkdir a\u{202e}b && ls", "suggested_prefixes": ["mkdir", "ls"]});
    let plan = world.plan(&arguments, &[]).await;
    assert_eq!(plan.prefixes, ["mkdir"]);
    assert_eq!(plan.command, "mkdir a\\u{202e}b && ls");
    assert!(!plan.reason.contains("refused"), "{}", plan.reason);
    let secret = world.plan(&json!({"command": "mysql --password=hunter2 -e x"}), &[]).await;
    assert!(!format!("{secret:?}").contains("hunter2"), "{secret:?}");
}

#[tokio::test]
async fn what_cannot_be_noted_is_not_begun() {
    let mut world = World::with(|config| config.state = "/proc/nowhere".into()).await;
    let (id, arguments) = (unique(), world.mark());
    let grant = world.signed(&id, &arguments).await;
    let call = ExecuteRequest { grant: grant.into(), ..request(&id, "bash", &arguments) };
    let end = world.execute(call).await;
    assert!(end.error.contains("cannot be noted"), "{}", end.error);
    assert_eq!((end.ending(), world.marks()), (Ending::Refused, 0));
}

#[tokio::test]
async fn an_account_named_default_is_the_one_without_a_name() {
    let mut world = World::new().await;
    let (id, arguments) = (unique(), world.mark());
    let grant = world.signed(&id, &arguments).await;
    let caller = Some(Caller { account: "default".to_owned(), principal: String::new() });
    let call = ExecuteRequest { grant: grant.into(), caller, ..request(&id, "bash", &arguments) };
    assert_eq!(world.execute(call).await.ending(), Ending::Exited);
    assert_eq!(world.marks(), 1);
}
