//! Where secrets usually are, and the doors to services that would do anything for whoever knocks.

use std::{
    fs,
    path::{Path, PathBuf},
};

use rustix::fs::{Access, access};

/// On every machine.
const PLACES: &[&str] = &[
    "/etc/shadow",
    "/etc/shadow-",
    "/etc/gshadow",
    "/etc/gshadow-",
    "/etc/sudoers",
    "/etc/sudoers.d",
    "/etc/krb5.keytab",
    "/etc/ssl/private",
    "/etc/kubernetes/pki",
    "/etc/kubernetes/admin.conf",
    "/etc/kubernetes/super-admin.conf",
    "/etc/kubernetes/controller-manager.conf",
    "/etc/kubernetes/kubelet.conf",
    "/etc/kubernetes/scheduler.conf",
    "/etc/rancher/k3s/k3s.yaml",
    "/etc/rancher/rke2/rke2.yaml",
    "/var/lib/rancher/k3s/server",
    "/var/lib/kubelet/pki",
    "/var/lib/kubelet/pods",
    "/var/lib/etcd",
    "/run/secrets",
    "/run/docker.sock",
    "/run/docker",
    "/run/containerd",
    "/run/crio",
    "/run/podman",
    "/run/buildkit",
    "/run/libvirt",
    "/run/k3s",
    "/run/user",
    "/run/systemd/private",
];

/// In every home.
const AT_HOME: &[&str] = &[
    ".ssh",
    ".kube",
    ".aws",
    ".azure",
    ".config/gcloud",
    ".config/gh",
    ".config/sops",
    ".config/helm",
    ".docker",
    ".gnupg",
    ".password-store",
    ".local/share/keyrings",
    ".local/state/sleuth",
    ".netrc",
    ".pgpass",
    ".my.cnf",
    ".git-credentials",
    ".npmrc",
    ".pypirc",
    ".cargo/credentials.toml",
    ".terraform.d/credentials.tfrc.json",
    ".vault-token",
    ".bash_history",
    ".zsh_history",
    ".python_history",
    ".psql_history",
];

/// What exists of all that, and of `more`, and could be read. Without links on the way, so that no other name of a
/// place is left open.
pub(super) fn existing(more: &[PathBuf], base: &Path) -> Vec<PathBuf> {
    let homes = homes();
    let at_home = homes.iter().flat_map(|home| AT_HOME.iter().map(move |place| home.join(place)));
    let everywhere = PLACES.iter().map(PathBuf::from);
    let mut found: Vec<_> = everywhere
        .chain(at_home)
        .chain(host_keys())
        .chain(ours().filter(|place| place != base))
        .chain(more.iter().cloned())
        .filter(|place| [Access::READ_OK, Access::EXEC_OK].iter().any(|way| access(place, *way).is_ok()))
        .filter_map(|place| place.canonicalize().ok())
        .collect();
    found.sort();
    found.dedup_by(|inner, outer| inner.starts_with(outer));
    found
}

fn homes() -> Vec<PathBuf> {
    let own = std::env::var_os("HOME").map(PathBuf::from).filter(|home| home != Path::new("/"));
    let others = fs::read_dir("/home").into_iter().flatten().flatten().map(|entry| entry.path());
    let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
    let of_users = users.lines().filter_map(|user| user.split(':').nth(5)).map(PathBuf::from);
    let mut homes: Vec<_> =
        own.into_iter().chain(others).chain(of_users).filter(|home| home.is_dir()).collect();
    homes.sort();
    homes.dedup();
    homes
}

/// Sockets and private directories of executors, this one's among them.
fn ours() -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir(std::env::temp_dir()).into_iter().flatten().flatten();
    entries
        .filter(|entry| entry.file_name().to_string_lossy().starts_with("sleuth-"))
        .map(|entry| entry.path())
}

fn host_keys() -> impl Iterator<Item = PathBuf> {
    let files = fs::read_dir("/etc/ssh").into_iter().flatten().flatten().map(|entry| entry.path());
    files.filter(|file| {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("ssh_host_") && !name.ends_with(".pub")
    })
}

/// Everything below `from` except the `hidden`: the fewest files and directories that cover it. Links are left out:
/// what they point to is covered where it is.
pub(super) fn all_but(from: &Path, hidden: &[PathBuf]) -> Vec<PathBuf> {
    if hidden.iter().any(|place| from.starts_with(place)) {
        return Vec::new();
    }
    if !hidden.iter().any(|place| place.starts_with(from)) {
        return vec![from.to_owned()];
    }
    let entries = fs::read_dir(from).into_iter().flatten().flatten();
    let real = entries.filter(|entry| entry.file_type().is_ok_and(|kind| !kind.is_symlink()));
    real.flat_map(|entry| all_but(&entry.path(), hidden)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_but_covers_the_siblings_of_what_is_hidden_and_no_links() {
        let root = tempfile::tempdir().unwrap();
        let at = |path: &str| root.path().join(path);
        for folder in ["a/secret/deep", "a/open", "b"] {
            fs::create_dir_all(at(folder)).unwrap();
        }
        fs::write(at("a/file"), "").unwrap();
        std::os::unix::fs::symlink(at("a/secret"), at("link")).unwrap();
        let mut covered = all_but(root.path(), &[at("a/secret")]);
        covered.sort();
        assert_eq!(covered, [at("a/file"), at("a/open"), at("b")]);
        assert_eq!(all_but(&at("a/secret/deep"), &[at("a/secret")]), Vec::<PathBuf>::new());
        assert_eq!(all_but(&at("b"), &[at("a/secret")]), [at("b")]);
    }

    #[test]
    fn a_place_within_a_hidden_one_is_not_named_twice() {
        let root = tempfile::tempdir().unwrap();
        let inner = root.path().join("inner");
        fs::write(&inner, "").unwrap();
        let found = existing(&[inner.clone(), root.path().to_owned()], Path::new("/nowhere"));
        assert!(found.contains(&root.path().canonicalize().unwrap()) && !found.contains(&inner));
    }
}
