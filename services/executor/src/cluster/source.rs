//! Where the operator's kubeconfig is, and whether it has changed.

use std::{
    fs,
    path::{Path, PathBuf},
    time::SystemTime,
};

use super::kubeconfig::{Cluster, Context, Error, Kubeconfig, User};

/// Where a service account's files are in a pod.
const ACCOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// Where the executor learns of its clusters.
#[derive(Clone, Debug, Default)]
pub struct Source {
    files: Vec<PathBuf>,
    in_cluster: Option<InCluster>,
}

#[derive(Clone, Debug)]
struct InCluster {
    server: String,
    account: PathBuf,
}

/// How files looked when they were read.
#[derive(Debug)]
pub(super) struct Stamp(Vec<(PathBuf, Look)>);

/// When a file was changed, and its size. `None` if it is not there.
type Look = Option<(SystemTime, u64)>;

impl Stamp {
    /// Whether they still look so.
    pub(super) fn holds(&self) -> bool {
        self.0.iter().all(|(path, seen)| look(path) == *seen)
    }
}

fn look(path: &Path) -> Look {
    fs::metadata(path).and_then(|of| Ok((of.modified()?, of.len()))).ok()
}

impl Source {
    /// The files of `KUBECONFIG`, or else the usual one; where they name no cluster, the service account of the pod.
    pub fn from_env(get: &dyn Fn(&str) -> Option<String>) -> Self {
        let set = |name: &str| get(name).filter(|value| !value.is_empty());
        let named = set("KUBECONFIG").map(|paths| std::env::split_paths(&paths).collect::<Vec<_>>());
        let usual = || set("HOME").map(|home| Path::new(&home).join(".kube/config"));
        let files = named.unwrap_or_else(|| usual().into_iter().collect());
        let absolute = |path: PathBuf| std::path::absolute(&path).unwrap_or(path);
        let in_cluster = set("KUBERNETES_SERVICE_HOST").zip(set("KUBERNETES_SERVICE_PORT"));
        Self {
            files: files.into_iter().filter(|path| !path.as_os_str().is_empty()).map(absolute).collect(),
            in_cluster: in_cluster.map(|(host, port)| InCluster::new(&host, &port)),
        }
    }

    /// These files and nothing else.
    pub fn files(files: impl IntoIterator<Item = PathBuf>) -> Self {
        Self { files: files.into_iter().collect(), in_cluster: None }
    }

    /// The kubeconfigs.
    pub(crate) fn paths(&self) -> &[PathBuf] {
        &self.files
    }

    /// All files with credentials: the kubeconfigs, and what they name now.
    pub(crate) fn secrets(&self) -> Vec<PathBuf> {
        let named = self.load().map(|loaded| loaded.secrets().collect()).unwrap_or_else(|_| Vec::new());
        self.files.iter().cloned().chain(named).collect()
    }

    pub(super) fn load(&self) -> Result<Kubeconfig, Error> {
        let loaded = Kubeconfig::load(&self.files)?;
        Ok(match &self.in_cluster {
            Some(own) if loaded.contexts.is_empty() => own.kubeconfig(),
            Some(_) | None => loaded,
        })
    }

    /// How these files look now, and more that what they say depends on.
    pub(super) fn stamp(&self, more: impl Iterator<Item = PathBuf>) -> Stamp {
        let account = self.in_cluster.iter().map(|own| own.account.join("token"));
        let all = self.files.iter().cloned().chain(account).chain(more);
        Stamp(all.map(|path| (look(&path), path)).map(|(seen, path)| (path, seen)).collect())
    }
}

impl InCluster {
    fn new(host: &str, port: &str) -> Self {
        let host = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
        Self { server: format!("https://{host}:{port}"), account: PathBuf::from(ACCOUNT) }
    }

    fn kubeconfig(&self) -> Kubeconfig {
        let name = "in-cluster".to_owned();
        let namespace = fs::read_to_string(self.account.join("namespace")).ok();
        let context = Context {
            name: name.clone(),
            namespace: namespace.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty()),
            cluster: Cluster {
                server: self.server.clone(),
                certificate_authority: Some(self.account.join("ca.crt")),
                ..Cluster::default()
            },
            user: User { token_file: Some(self.account.join("token")), ..User::default() },
        };
        let there = self.account.join("token").exists();
        Kubeconfig { contexts: there.then_some(context).into_iter().collect(), current: Some(name) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pod_without_a_kubeconfig_uses_its_service_account() {
        let folder = tempfile::tempdir().unwrap();
        let mut source = Source::from_env(&|name| match name {
            "KUBERNETES_SERVICE_HOST" => Some("fd00::1".to_owned()),
            "KUBERNETES_SERVICE_PORT" => Some("443".to_owned()),
            "KUBECONFIG" => Some("/nonexistent".to_owned()),
            _ => None,
        });
        source.in_cluster.as_mut().unwrap().account = folder.path().to_owned();
        assert!(source.load().unwrap().contexts.is_empty(), "without a token it is no pod of a cluster");
        fs::write(folder.path().join("token"), "t").unwrap();
        fs::write(folder.path().join("namespace"), "shop\n").unwrap();
        let loaded = source.load().unwrap();
        assert_eq!(loaded.contexts[0].cluster.server, "https://[fd00::1]:443");
        assert_eq!(loaded.contexts[0].namespace.as_deref(), Some("shop"));
    }

    #[test]
    fn the_usual_file_counts_only_without_another() {
        let home = |name: &str| (name == "HOME").then(|| "/home/me".to_owned());
        assert_eq!(Source::from_env(&home).files, [PathBuf::from("/home/me/.kube/config")]);
        let both = |name: &str| match name {
            "KUBECONFIG" => Some("/a::/b".to_owned()),
            _ => home(name),
        };
        assert_eq!(Source::from_env(&both).files, [PathBuf::from("/a"), PathBuf::from("/b")]);
    }
}
