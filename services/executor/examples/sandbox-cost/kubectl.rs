//! kubectl beside the executor, through its proxy, and as an execution with all that belongs to one.

use std::{
    net::TcpListener,
    path::{Path, PathBuf},
    time::Instant,
};

use executor::{
    Config, Executor,
    cluster::{Access, Clusters, Settings, Source},
};
use serde_json::json;
use tokio::process::Command;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::transport::{Channel, Server};
use wire::executor::{Ending, ExecuteRequest, execute_event::Kind, tool_executor_client::ToolExecutorClient};

use crate::print;

/// What is asked: little, and more.
const QUESTIONS: [&str; 2] = ["kubectl get namespaces -o name", "kubectl get pods -A"];

/// Measures where there is a cluster.
pub(crate) async fn measure(runs: usize) {
    let Some(kubeconfig) = std::env::var_os("SLEUTH_TEST_KUBECONFIG").map(PathBuf::from) else {
        println!("kubectl: SLEUTH_TEST_KUBECONFIG names no cluster");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let settings = Settings { source: Source::files([kubeconfig.clone()]), ..Settings::default() };
    let pass = Clusters::new(settings).pass(Access::default());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let proxied = folder.path().join("kubeconfig");
    std::fs::write(&proxied, pass.kubeconfig(listener.local_addr().unwrap().port())).unwrap();
    let _gate = pass.serve(listener).unwrap();
    let mut executor = serve(&kubeconfig, folder.path()).await;
    for question in QUESTIONS {
        let mut times = [const { Vec::new() }; 3];
        for run in 0..runs {
            let started = Instant::now();
            directly(question, &kubeconfig, folder.path()).await;
            times[0].push(started.elapsed());
            let started = Instant::now();
            directly(question, &proxied, folder.path()).await;
            times[1].push(started.elapsed());
            let started = Instant::now();
            execute(&mut executor, question, &format!("{question}-{run}")).await;
            times[2].push(started.elapsed());
        }
        let [direct, proxied, execution] = times;
        let base = print(question, direct, None);
        print("  through the proxy", proxied, Some(base));
        print("  as an execution: gRPC, sandbox and proxy", execution, Some(base));
    }
}

async fn directly(question: &str, kubeconfig: &Path, cache: &Path) {
    let mut words = question.split(' ');
    let mut command = Command::new(words.next().unwrap());
    command.args(words).env("KUBECONFIG", kubeconfig).env("KUBECACHEDIR", cache);
    let output = command.output().await.unwrap();
    assert!(output.status.success(), "{question}: {}", String::from_utf8_lossy(&output.stderr));
}

async fn serve(kubeconfig: &Path, state: &Path) -> ToolExecutorClient<Channel> {
    let mut config = Config::from_env(&|name| std::env::var(name).ok()).unwrap();
    config.kubernetes.source = Source::files([kubeconfig.to_owned()]);
    config.state = state.join("state");
    let executor = Executor::build(config).await.unwrap();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        let server = Server::builder().add_service(executor.service());
        server.serve_with_incoming(TcpListenerStream::new(listener)).await.unwrap();
    });
    ToolExecutorClient::connect(address).await.unwrap()
}

async fn execute(executor: &mut ToolExecutorClient<Channel>, question: &str, id: &str) {
    let request = ExecuteRequest {
        execution_id: id.to_owned(),
        tool: "bash".to_owned(),
        arguments_json: json!({ "command": question }).to_string(),
        ..ExecuteRequest::default()
    };
    let mut events = executor.execute(request).await.unwrap().into_inner();
    while let Some(event) = events.message().await.unwrap() {
        if let Some(Kind::Finished(end)) = event.kind {
            assert_eq!((end.ending(), end.exit_code), (Ending::Exited, Some(0)), "{end:?}");
        }
    }
}
