//! The operator's kubeconfig: read from several files and merged as kubectl does, where the first word on a name
//! counts. Relative paths are those of the file.

use std::{
    collections::{BTreeMap, HashSet},
    fs, io,
    path::{Path, PathBuf},
};

use secrecy::SecretString;
use serde::Deserialize;

/// Why a kubeconfig cannot be read.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    #[error("cannot read the kubeconfig {}: {error}", path.display())]
    Read { path: PathBuf, error: io::Error },
    /// The parser's own message would quote the file.
    #[error("the kubeconfig {} is not valid{}", path.display(), line.map(|line| format!(": see line {line}")).unwrap_or_default())]
    Parse { path: PathBuf, line: Option<u64> },
}

/// What all files say together.
#[derive(Debug, Default)]
pub(super) struct Kubeconfig {
    pub(super) contexts: Vec<Context>,
    pub(super) current: Option<String>,
}

/// One context with what it names.
#[derive(Clone, Debug)]
pub(super) struct Context {
    pub(super) name: String,
    pub(super) namespace: Option<String>,
    pub(super) cluster: Cluster,
    pub(super) user: User,
}

/// Where an API server is, and how it is known.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub(super) struct Cluster {
    pub(super) server: String,
    pub(super) certificate_authority: Option<PathBuf>,
    pub(super) certificate_authority_data: Option<String>,
    pub(super) insecure_skip_tls_verify: bool,
    pub(super) tls_server_name: Option<String>,
    pub(super) proxy_url: Option<String>,
    pub(super) extensions: Option<Vec<Extension>>,
}

/// Who asks.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub(super) struct User {
    pub(super) client_certificate: Option<PathBuf>,
    pub(super) client_certificate_data: Option<String>,
    pub(super) client_key: Option<PathBuf>,
    pub(super) client_key_data: Option<SecretString>,
    pub(super) token: Option<SecretString>,
    #[serde(rename = "tokenFile")]
    pub(super) token_file: Option<PathBuf>,
    pub(super) username: Option<String>,
    pub(super) password: Option<SecretString>,
    pub(super) exec: Option<Exec>,
    pub(super) auth_provider: Option<Provider>,
    #[serde(rename = "as")]
    pub(super) as_user: Option<String>,
    pub(super) as_uid: Option<String>,
    pub(super) as_groups: Option<Vec<String>>,
    pub(super) as_user_extra: Option<BTreeMap<String, Vec<String>>>,
}

/// A program that prints a credential.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Exec {
    pub(super) api_version: String,
    pub(super) command: PathBuf,
    pub(super) args: Option<Vec<String>>,
    pub(super) env: Option<Vec<Variable>>,
    #[serde(default)]
    pub(super) provide_cluster_info: bool,
    pub(super) interactive_mode: Option<String>,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Variable {
    pub(super) name: String,
    pub(super) value: SecretString,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Provider {
    pub(super) name: String,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Extension {
    name: String,
    #[serde(default)]
    extension: serde_json::Value,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
struct File {
    current_context: Option<String>,
    contexts: Option<Vec<NamedContext>>,
    clusters: Option<Vec<NamedCluster>>,
    users: Option<Vec<NamedUser>>,
}

#[derive(Debug, Deserialize)]
struct NamedContext {
    name: String,
    context: Link,
}

#[derive(Debug, Deserialize)]
struct Link {
    cluster: String,
    #[serde(default)]
    user: String,
    namespace: Option<String>,
}

#[derive(Debug, Deserialize)]
struct NamedCluster {
    name: String,
    cluster: Cluster,
}

#[derive(Debug, Deserialize)]
struct NamedUser {
    name: String,
    #[serde(default)]
    user: Option<User>,
}

impl Kubeconfig {
    /// Reads the files that exist. A context whose cluster is nowhere is left out.
    pub(super) fn load(paths: &[PathBuf]) -> Result<Self, Error> {
        let mut merged = File::default();
        for path in paths {
            let file = read(path)?;
            merged.current_context =
                merged.current_context.or(file.current_context.filter(|name| !name.is_empty()));
            merged.contexts.get_or_insert_default().extend(file.contexts.unwrap_or_default());
            merged.clusters.get_or_insert_default().extend(file.clusters.unwrap_or_default());
            merged.users.get_or_insert_default().extend(file.users.unwrap_or_default());
        }
        Ok(merged.resolve())
    }

    /// Files that this depends on beside itself, except those that are read at each use.
    pub(super) fn files(&self) -> impl Iterator<Item = PathBuf> {
        self.contexts.iter().flat_map(|context| {
            let (cluster, user) = (&context.cluster, &context.user);
            [&cluster.certificate_authority, &user.client_certificate, &user.client_key]
                .into_iter()
                .filter_map(Clone::clone)
        })
    }

    /// Files with credentials that it names.
    pub(super) fn secrets(&self) -> impl Iterator<Item = PathBuf> {
        let users = self.contexts.iter().map(|context| &context.user);
        users.flat_map(|user| [&user.client_key, &user.token_file].into_iter().filter_map(Clone::clone))
    }
}

impl Cluster {
    /// What an exec plugin may be told of it beside the rest.
    pub(super) fn exec_config(&self) -> Option<&serde_json::Value> {
        const NAME: &str = "client.authentication.k8s.io/exec";
        let extension = self.extensions.iter().flatten().find(|extension| extension.name == NAME)?;
        Some(&extension.extension)
    }
}

impl File {
    fn resolve(self) -> Kubeconfig {
        let (clusters, users) = (self.clusters.unwrap_or_default(), self.users.unwrap_or_default());
        let mut seen = HashSet::new();
        let contexts = self.contexts.unwrap_or_default().into_iter().filter_map(|named| {
            if !seen.insert(named.name.clone()) {
                return None;
            }
            let cluster = clusters.iter().find(|own| own.name == named.context.cluster)?;
            let user = users.iter().find(|own| own.name == named.context.user);
            Some(Context {
                name: named.name,
                namespace: named.context.namespace.filter(|namespace| !namespace.is_empty()),
                cluster: cluster.cluster.clone(),
                user: user.and_then(|own| own.user.clone()).unwrap_or_default(),
            })
        });
        Kubeconfig { contexts: contexts.collect(), current: self.current_context }
    }

    fn place_in(&mut self, folder: &Path) {
        let place = |path: &mut Option<PathBuf>| {
            if let Some(path) = path {
                *path = folder.join(&*path);
            }
        };
        for named in self.clusters.iter_mut().flatten() {
            place(&mut named.cluster.certificate_authority);
        }
        for user in self.users.iter_mut().flatten().filter_map(|named| named.user.as_mut()) {
            place(&mut user.client_certificate);
            place(&mut user.client_key);
            place(&mut user.token_file);
            // A bare name is looked for on the path.
            if let Some(exec) = user.exec.as_mut().filter(|exec| exec.command.components().count() > 1) {
                exec.command = folder.join(&exec.command);
            }
        }
    }
}

fn read(path: &Path) -> Result<File, Error> {
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(File::default()),
        Err(error) => return Err(Error::Read { path: path.to_owned(), error }),
    };
    if text.trim().is_empty() {
        return Ok(File::default());
    }
    let parsed: Result<File, _> = serde_saphyr::from_str(&text);
    let mut file = parsed.map_err(|error| Error::Parse {
        path: path.to_owned(),
        line: error.location().map(|location| location.line()),
    })?;
    file.place_in(path.parent().unwrap_or(Path::new("")));
    Ok(file)
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret as _;

    use super::*;

    fn load(files: &[&str]) -> Result<Kubeconfig, Error> {
        let folder = tempfile::tempdir().unwrap();
        let paths: Vec<_> = (0..files.len()).map(|index| folder.path().join(index.to_string())).collect();
        for (path, text) in paths.iter().zip(files) {
            fs::write(path, text).unwrap();
        }
        Kubeconfig::load(&paths)
    }

    const FIRST: &str = "
contexts: [{name: a, context: {cluster: c, user: u, namespace: shop}}, {name: lost, context: {cluster: nowhere}}]
clusters: [{name: c, cluster: {server: 'https://c:6443', certificate-authority: ca.crt}}]
users: null
";
    const SECOND: &str = "
current-context: b
contexts: [{name: a, context: {cluster: d, user: u}}, {name: b, context: {cluster: d, user: nobody}}]
clusters: [{name: d, cluster: {server: 'https://d'}}, {name: c, cluster: {server: 'https://other'}}]
users: [{name: u, user: {token: secret, exec: null}}]
";

    #[test]
    fn files_are_merged_and_the_first_word_counts() {
        let loaded = load(&[FIRST, "", SECOND]).unwrap();
        let names: Vec<_> = loaded.contexts.iter().map(|context| context.name.as_str()).collect();
        assert_eq!((names, loaded.current.as_deref()), (vec!["a", "b"], Some("b")));
        let first = &loaded.contexts[0];
        assert_eq!(
            (first.cluster.server.as_str(), first.namespace.as_deref()),
            ("https://c:6443", Some("shop"))
        );
        assert_eq!(first.user.token.as_ref().unwrap().expose_secret(), "secret");
        assert!(loaded.contexts[1].user.token.is_none());
        assert!(loaded.files().all(|path| path.is_absolute() && path.ends_with("ca.crt")));
    }

    #[test]
    fn an_error_names_the_place_and_quotes_nothing() {
        let error = load(&["users:\n- name: u\n  user: {token: [hunter2]}\n"]).unwrap_err().to_string();
        assert!(error.contains("line 3") && !error.contains("hunter2"), "{error}");
    }

    #[test]
    fn files_that_are_not_there_say_nothing() {
        assert!(Kubeconfig::load(&[PathBuf::from("/nonexistent")]).unwrap().contexts.is_empty());
    }
}
