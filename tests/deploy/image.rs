//! The image's recipe. No test builds it: that needs a container engine.

use std::process::Command;

use serde_json::Value;

use super::{file, text, tools, yaml};

const DOCKERFILE: &str = "deploy/Dockerfile";

/// The instructions, each on one line.
fn instructions() -> Vec<(String, String)> {
    let joined = text(DOCKERFILE).replace("\\\n", " ");
    let lines = joined.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.filter_map(|line| line.split_once(' ')).map(|(name, rest)| (name.into(), rest.into())).collect()
}

fn arguments(name: &str) -> Vec<String> {
    instructions().into_iter().filter(|(own, _)| own == name).map(|(_, arguments)| arguments).collect()
}

/// What is copied from the repository.
fn sources() -> Vec<String> {
    let copies = arguments("COPY").into_iter().filter(|copy| !copy.starts_with("--from"));
    let sources = copies.flat_map(|copy| {
        let mut words: Vec<_> = copy.split_whitespace().map(str::to_owned).collect();
        words.pop();
        words
    });
    sources.collect()
}

#[test]
fn the_linter_has_nothing_to_say() {
    let Some(tools) = tools() else { return };
    let output = Command::new(tools.join("hadolint")).arg(file(DOCKERFILE)).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

#[test]
fn the_process_is_nobody_special() {
    assert_eq!(arguments("USER"), ["65532:65532"]);
    assert_eq!(arguments("ENTRYPOINT"), [r#"["sleuth"]"#]);
    assert_eq!(arguments("STOPSIGNAL"), ["SIGTERM"]);
}

#[test]
fn what_is_built_is_fixed() {
    let from = arguments("FROM");
    let stages: Vec<_> = from.iter().filter_map(|from| from.split(" AS ").nth(1)).collect();
    let bases: Vec<_> = from.iter().map(|from| from.split(' ').next().unwrap()).collect();
    for base in bases.iter().filter(|base| !stages.contains(base)) {
        let (_, tag) = base.split_once(':').unwrap();
        assert!(tag.starts_with(|first: char| first.is_ascii_digit()), "{base} names no version");
    }
    let manifest = text("Cargo.toml");
    let rust =
        manifest.lines().find_map(|line| line.strip_prefix("rust-version = ")).unwrap().trim_matches('"');
    assert!(bases[0].starts_with(&format!("rust:{rust}.")), "{} is not Rust {rust}", bases[0]);
    let cargo: Vec<_> = arguments("RUN").into_iter().filter(|run| run.starts_with("cargo")).collect();
    for command in cargo.iter().filter(|command| !command.contains("prepare")) {
        assert!(command.contains("--locked"), "{command}");
    }
}

#[test]
fn the_build_gets_every_crate_and_only_what_is_there() {
    let sources = sources();
    let ignore = text("deploy/Dockerfile.dockerignore");
    for source in &sources {
        assert!(file(source).exists(), "{source} does not exist");
        assert!(ignore.lines().any(|line| line == format!("!{source}")), "{source} is ignored");
    }
    let metadata = cargo_metadata::MetadataCommand::new().no_deps().exec().unwrap();
    for package in &metadata.packages {
        let path = package.manifest_path.strip_prefix(&metadata.workspace_root).unwrap();
        assert!(sources.iter().any(|source| path.starts_with(source)), "{path} is not copied");
    }
}

#[test]
fn compose_gives_the_image_the_same_limits() {
    let compose: Value = yaml(&text("deploy/compose.yaml"));
    for service in ["gateway", "agent", "executor"] {
        let service = &compose["services"][service];
        assert_eq!(service["image"], "sleuth");
        assert_eq!(service["read_only"], true);
        assert_eq!(service["cap_drop"][0], "ALL");
    }
    let build = &compose["services"]["gateway"]["build"];
    assert!(
        file("deploy")
            .join(build["context"].as_str().unwrap())
            .join(build["dockerfile"].as_str().unwrap())
            .exists()
    );
}
