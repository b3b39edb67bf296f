//! HTTP APIs that the operator lists: what is listed is asked, and nothing else.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a failed step fails the test"
)]

#[expect(dead_code, reason = "not all tests use all of it")]
mod rig;

use std::{net::SocketAddr, sync::Arc, time::Duration};

use axum::{
    Router,
    body::Bytes,
    extract::State,
    http::{HeaderMap, Method, StatusCode, Uri},
    response::{IntoResponse as _, Redirect, Response},
};
use executor::Executor;
use rig::{Rig, config, request, unique};
use serde_json::{Value, json};
use tokio::{net::TcpListener, sync::mpsc};
use tokio_util::task::AbortOnDropHandle;
use wire::executor::{
    EffectClass, Ending, Finished, ListToolsRequest, PlanRequest, ToolStatus, ToolsetStatus, Verdict,
};

const TOKEN: &str = "t0ken-of-the-tests";

type Seen = (Method, String, HeaderMap, Bytes);

/// An API, and the requests that reached it.
struct Api {
    address: SocketAddr,
    seen: mpsc::Receiver<Seen>,
    _serving: AbortOnDropHandle<()>,
}

impl Api {
    async fn start() -> Self {
        let (to, seen) = mpsc::channel(64);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let app = Router::new().fallback(answer).with_state(Arc::new(to));
        let serving = tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        Self { address, seen, _serving: AbortOnDropHandle::new(serving) }
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }
}

async fn answer(
    State(to): State<Arc<mpsc::Sender<Seen>>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    to.send((method, uri.to_string(), headers.clone(), body)).await.unwrap();
    match uri.path() {
        "/api/moved" => Redirect::temporary("http://169.254.169.254/latest/meta-data").into_response(),
        "/api/missing" => (StatusCode::NOT_FOUND, "there is no such thing").into_response(),
        "/api/large" => vec![b'x'; 5 << 20].into_response(),
        "/api/bytes" => ([("content-type", "image/x-own")], vec![0xff, 0xfe]).into_response(),
        "/api/slow" => std::future::pending().await,
        "/api/token" => headers["authorization"].to_str().unwrap().to_owned().into_response(),
        _ => axum::Json(json!({"a": 1})).into_response(),
    }
}

async fn rig(config_of_toolset: Value) -> Rig {
    let file = tempfile::NamedTempFile::new().unwrap();
    let toolset = json!({"type": "http", "config": config_of_toolset, "llm_instructions": "Ask politely."});
    std::fs::write(&file, json!({"toolsets": {"own-api/v1": toolset}}).to_string()).unwrap();
    Rig::with(executor::Config { toolsets: Some(file.path().to_owned()), ..config() }).await
}

/// An executor that may ask an API below `/api/`.
async fn with(api: &Api) -> Rig {
    let auth = json!({"type": "bearer", "token": TOKEN});
    let endpoint = json!({
        "hosts": [api.address.to_string(), "localhost", "*.invalid"], "paths": ["/api/*"], "auth": auth,
        "methods": ["GET", "POST"], "health_check_url": api.url("/api/health"),
    });
    let headers = json!({"X-Client": "sleuth"});
    rig(json!({"endpoints": [endpoint], "default_headers": headers, "timeout_seconds": 1})).await
}

async fn ask(rig: &mut Rig, arguments: &Value) -> Finished {
    rig.run("own_api_v1_request", arguments).await
}

#[tokio::test]
async fn what_is_listed_is_asked_with_its_credentials() {
    let mut api = Api::start().await;
    let mut rig = with(&api).await;
    let (_, health, headers, _) = api.seen.recv().await.unwrap();
    assert_eq!((health.as_str(), headers.contains_key("authorization")), ("/api/health", true));
    let list = rig.client.list_tools(ListToolsRequest::default()).await.unwrap().into_inner();
    let toolset = list.toolsets.iter().find(|own| own.name == "own-api/v1").unwrap();
    assert_eq!((toolset.status(), toolset.instructions.as_str()), (ToolsetStatus::Enabled, "Ask politely."));

    let end =
        ask(&mut rig, &json!({"url": api.url("/api/things?x=1#y"), "headers": {"Accept": "text/plain"}}))
            .await;
    assert_eq!((end.status(), end.ending()), (ToolStatus::Success, Ending::Answered), "{}", end.error);
    assert_eq!(end.data, r#"{"body":{"a":1},"status_code":200}"#);
    let (method, path, headers, _) = api.seen.recv().await.unwrap();
    assert_eq!((method, path.as_str()), (Method::GET, "/api/things?x=1"));
    assert_eq!(headers["authorization"], format!("Bearer {TOKEN}"));
    assert_eq!(headers["x-client"], "sleuth");
    assert_eq!(headers["accept"], "text/plain");

    for (path, status, data, error) in [
        ("/api/missing", ToolStatus::Error, "there is no such thing", "HTTP 404"),
        (
            "/api/moved",
            ToolStatus::Error,
            "307",
            "it is at http://169.254.169.254/latest/meta-data; redirects are not",
        ),
        ("/api/large", ToolStatus::Error, "", "larger than 4 MiB"),
        ("/api/bytes", ToolStatus::Success, "[2 bytes of image/x-own are left out]", ""),
        ("/api/slow", ToolStatus::Error, "", "no answer in time"),
        ("/api/token", ToolStatus::Success, "[masked:", ""),
    ] {
        let end = ask(&mut rig, &json!({"url": api.url(path)})).await;
        assert_eq!(end.status(), status, "{path}: {} {}", end.data, end.error);
        assert!(end.data.contains(data) && end.error.contains(error), "{path}: {} {}", end.data, end.error);
        assert!(!end.data.contains(TOKEN), "{}", end.data);
    }
}

#[tokio::test]
async fn what_is_not_listed_is_refused_and_what_may_change_something_asks_a_person() {
    let mut api = Api::start().await;
    let mut rig = with(&api).await;
    api.seen.recv().await.unwrap();
    let port = api.address.port();
    for (arguments, why) in [
        (json!({"url": api.url("/other")}), "that address is not listed. These are: GET/POST "),
        (json!({"url": api.url("/api/../other")}), "not listed"),
        (json!({"url": api.url("/api/%2e%2e/other")}), "not listed"),
        (json!({"url": api.url("/api/..%2fother")}), "must not go up"),
        (json!({"url": format!("http://[::1]:{port}/api/x")}), "not listed"),
        (json!({"url": "http://169.254.169.254/api/x"}), "not listed"),
        (json!({"url": "http://a.invalid@169.254.169.254/api/x"}), "a user name"),
        (
            json!({"url": api.url("/api/x"), "method": "DELETE"}),
            "DELETE is not allowed there, only GET, POST",
        ),
        (json!({"url": api.url("/api/x"), "headers": {"Host": "x"}}), "cannot be chosen"),
        (json!({"url": api.url("/api/x"), "method": "POST", "body": "{}"}), "needs the approval of a person"),
    ] {
        let end = ask(&mut rig, &arguments).await;
        assert_eq!(end.ending(), Ending::Refused, "{arguments}: {} {}", end.data, end.error);
        assert!(end.error.starts_with("refused: ") && end.error.contains(why), "{arguments}: {}", end.error);
    }
    let plan = PlanRequest {
        tool: "own_api_v1_request".to_owned(),
        arguments_json: json!({"url": api.url("/api/x"), "method": "post"}).to_string(),
        ..PlanRequest::default()
    };
    let plan = rig.client.plan(plan).await.unwrap().into_inner();
    assert_eq!((plan.verdict(), plan.effect()), (Verdict::Ask, EffectClass::Mutation));
    assert_eq!(
        (plan.command, plan.target.as_str()),
        (format!("POST {}", api.url("/api/x")), "HTTP API own-api/v1")
    );
    assert!(api.seen.try_recv().is_err(), "something was sent");
}

#[tokio::test]
async fn headers_of_whoever_asks_are_sent_only_if_they_are_there() {
    let mut api = Api::start().await;
    let extra = json!({"X-Tenant": "t-{{ request_context.headers['X-Tenant-Id'] }}"});
    let endpoints = json!([{"hosts": [api.address.to_string()]}]);
    let mut rig = rig(json!({"endpoints": endpoints, "extra_headers": extra})).await;
    let arguments = json!({"url": api.url("/x")});
    let end = ask(&mut rig, &arguments).await;
    assert!(end.error.contains("has no header `X-Tenant-Id`, or it is not passed on"), "{}", end.error);
    assert!(api.seen.try_recv().is_err(), "something was sent");

    let mut asked = request(&unique(), "own_api_v1_request", &arguments);
    asked.request_headers = [("x-tenant-id".to_owned(), "blue".to_owned())].into();
    let events = rig.execute(asked).await.unwrap();
    assert_eq!(rig::finished(&rig::rest(events).await).status(), ToolStatus::Success);
    assert_eq!(api.seen.recv().await.unwrap().2["x-tenant"], "t-blue");
}

#[tokio::test]
async fn a_credential_of_whoever_asks_is_not_shown_to_the_model() {
    let api = Api::start().await;
    let extra = json!({"Authorization": "{{ request_context.headers['Authorization'] }}"});
    let endpoints = json!([{"hosts": [api.address.to_string()]}]);
    let mut rig = rig(json!({"endpoints": endpoints, "extra_headers": extra})).await;
    // No rule knows what it looks like.
    let credential = "of-somebody-who-asks";
    let mut asked = request(&unique(), "own_api_v1_request", &json!({"url": api.url("/api/token")}));
    asked.request_headers = [("authorization".to_owned(), format!("Own {credential}"))].into();
    let events = rig.execute(asked).await.unwrap();
    let end = rig::finished(&rig::rest(events).await);
    assert!(end.data.contains("Own [masked:known]") && !end.data.contains(credential), "{}", end.data);
    assert_eq!(end.redacted_spans, 1);
}

#[tokio::test]
async fn settings_that_cannot_be_used_say_why() {
    for (config_of_toolset, why) in [
        (json!({}), "it needs `endpoints`"),
        (json!({"endpoints": [{}]}), "an endpoint needs `hosts`"),
        (json!({"endpoints": [{"hosts": ["*"]}]}), "`*` is no host"),
        (json!({"endpoints": [{"hosts": ["a"], "methods": ["BREW"]}]}), "`BREW` is no method"),
        (json!({"endpoints": [{"hosts": ["a"], "auth": {"type": "digest"}}]}), "unknown variant `digest`"),
        (json!({"endpoints": [{"hosts": ["a"], "auth": {"type": "bearer"}}]}), "missing field `token`"),
        (json!({"endpoints": [{"hosts": ["a"]}], "default_headers": {"a b": "c"}}), "the header `a b`"),
        (
            json!({"endpoints": [{"hosts": ["a"]}], "default_headers": {"a": "{{ c }}"}}),
            "nobody gives a value for `c`",
        ),
    ] {
        let file = tempfile::NamedTempFile::new().unwrap();
        let toolset = json!({"type": "http", "config": config_of_toolset});
        std::fs::write(&file, json!({"toolsets": {"mine": toolset}}).to_string()).unwrap();
        let built =
            Executor::build(executor::Config { toolsets: Some(file.path().to_owned()), ..config() }).await;
        let error = built.expect_err("a refusal").to_string();
        assert!(error.contains("toolset `mine`: ") && error.contains(why), "{config_of_toolset}: {error}");
    }
}

#[tokio::test]
async fn a_toolset_whose_health_check_fails_says_so() {
    let api = Api::start().await;
    let hosts = json!([api.address.to_string()]);
    for (endpoint, why) in [
        (json!({"hosts": hosts, "health_check_url": api.url("/api/missing")}), "HTTP 404"),
        (
            json!({"hosts": hosts, "auth": {"type": "bearer", "token": "{{ env.SLEUTH_TEST_NOT_SET }}"}}),
            "SLEUTH_TEST_NOT_SET",
        ),
    ] {
        let mut rig = rig(json!({"endpoints": [endpoint]})).await;
        let looked = async {
            loop {
                let list = rig.client.list_tools(ListToolsRequest::default()).await.unwrap().into_inner();
                let own = list.toolsets.into_iter().find(|own| own.name == "own-api/v1").unwrap();
                if own.error != "it is still being checked" {
                    return own;
                }
            }
        };
        let own = tokio::time::timeout(Duration::from_secs(30), looked).await.unwrap();
        assert_eq!(own.status(), ToolsetStatus::Failed);
        assert!(own.error.contains(why), "{}", own.error);
    }
}
