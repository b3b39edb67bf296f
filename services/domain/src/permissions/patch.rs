//! The files that a patch touches: what rules about patches speak of.

use super::glob::{Glob, Match, escaped};

/// The tool.
pub(super) const NAME: &str = "patch";
/// How the lines begin that name a file.
const HEADS: [&str; 3] = ["*** Add File:", "*** Delete File:", "*** Update File:"];

/// The paths in a patch, as they are written.
pub(super) fn files(patch: &str) -> impl Iterator<Item = &str> {
    patch.split('\n').filter_map(|line| HEADS.iter().find_map(|head| line.strip_prefix(head))).map(str::trim)
}

/// Whether a pattern fits a file. A path with `..` may lead anywhere, and where the workspace is nobody knows here.
pub(super) fn fits(glob: &Glob, file: &str) -> Match {
    match plain(file) {
        Some(path) if path.starts_with('/') == glob.is_rooted() => glob.matches(&path),
        Some(_) | None => Match::CannotTell,
    }
}

/// The pattern of all that is in the folder which holds the files of a patch; `None` if it names none.
pub(super) fn around(patch: &str) -> Option<String> {
    let folders: Option<Vec<Vec<String>>> = files(patch).map(folder).collect();
    let common = folders?.into_iter().reduce(|one, other| {
        one.into_iter().zip(other).take_while(|(one, other)| one == other).map(|(one, _)| one).collect()
    })?;
    let within: String = common.iter().map(|part| format!("{}/", escaped(part))).collect();
    Some(format!("{within}**"))
}

fn folder(file: &str) -> Option<Vec<String>> {
    let path = plain(file)?;
    let (folder, _) = path.rsplit_once('/').unzip();
    Some(folder.map_or_else(Vec::new, |folder| folder.split('/').map(str::to_owned).collect()))
}

/// A path without what leads nowhere; `None` if it leads up.
fn plain(file: &str) -> Option<String> {
    let parts: Vec<_> = file.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
    let root = if file.starts_with('/') { "/" } else { "" };
    (!parts.contains(&"..")).then(|| format!("{root}{}", parts.join("/")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patch(files: &[&str]) -> String {
        let parts = files.iter().map(|file| format!("*** Update File: {file} \n@@\n-*** Add File: x\n+y\n"));
        format!("*** Begin Patch\n{}*** End Patch", parts.collect::<String>())
    }

    #[test]
    fn a_pattern_is_of_the_folder_around_all_files() {
        for (files, pattern) in [
            (&["a"][..], Some("**")),
            (&["./src//a", "src/b/c"], Some("src/**")),
            (&["src/a", "srcs/b"], Some("**")),
            (&[".ci/a[1]/x"], Some(r"\.ci/a\[1\]/**")),
            (&["/ws/a", "/ws/b/c"], Some("/ws/**")),
            (&["/a"], Some("/**")),
            (&["src/a", "../b"], None),
            (&[], None),
        ] {
            assert_eq!(around(&patch(files)).as_deref(), pattern, "{files:?}");
        }
    }

    #[test]
    fn what_lies_elsewhere_than_it_seems_cannot_be_told() {
        use Match::{CannotTell, No, Yes};
        for (pattern, file, expected) in [
            ("src/**", "src/a/b", Yes),
            ("src/**", "./src//a", Yes),
            ("src/**", "test/a", No),
            ("src/**", "src/.env", Yes),
            ("src/**", "src/../a", CannotTell),
            ("src/**", "/ws/src/a", CannotTell),
            ("!src/**", "/ws/src/a", CannotTell),
            ("!src/**", "test/a", Yes),
            ("/ws/**", "/ws/src/a", Yes),
            ("**", "a", Yes),
        ] {
            assert_eq!(fits(&Glob::new(pattern), file), expected, "{pattern} {file}");
        }
    }
}
