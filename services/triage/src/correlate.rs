//! Tells causes from consequences, and one matter from many.

use std::collections::BTreeMap;

use crate::{finding::Finding, name::Object, rules, snapshot::Snapshot};

/// A finding, and what follows from it.
#[derive(Debug)]
pub(crate) struct Problem {
    pub(crate) cause: Finding,
    pub(crate) consequences: Vec<Finding>,
}

impl Problem {
    /// All objects that it is about.
    pub(crate) fn objects(&self) -> impl Iterator<Item = &Object> {
        std::iter::once(&self.cause).chain(&self.consequences).flat_map(|finding| &finding.covers)
    }
}

/// Asks all rules, and puts what they find in order: the worst first.
pub(crate) fn problems(snapshot: &Snapshot<'_>) -> Vec<Problem> {
    let findings = once(rules::ALL.iter().flat_map(|rule| (rule.check)(snapshot)));
    let parents = parents(&findings);
    let root = |mut at: usize| {
        while let Some(next) = parents.get(&at) {
            at = *next;
        }
        at
    };
    let roots: Vec<usize> = (0..findings.len()).map(root).collect();
    let mut problems: BTreeMap<usize, Problem> = BTreeMap::new();
    let mut later = Vec::new();
    for (at, finding) in findings.into_iter().enumerate() {
        match roots.get(at) {
            Some(root) if *root != at => later.push((*root, finding)),
            Some(_) | None => {
                problems.insert(at, Problem { cause: finding, consequences: Vec::new() });
            }
        }
    }
    for (root, finding) in later {
        if let Some(problem) = problems.get_mut(&root) {
            problem.consequences.push(finding);
        }
    }
    // a rule says "nothing here" by a finding without a title
    let mut problems: Vec<Problem> =
        problems.into_values().filter(|problem| !problem.cause.what.is_empty()).collect();
    problems.sort_by_key(|problem| {
        (problem.cause.severity, std::cmp::Reverse(problem.consequences.len()), problem.cause.about.clone())
    });
    problems
}

/// What an earlier finding covers, a later one does not say again.
fn once(findings: impl Iterator<Item = Finding>) -> Vec<Finding> {
    let mut kept: Vec<Finding> = Vec::new();
    for finding in findings {
        let is_known = |object: &Object| kept.iter().any(|other| other.covers.contains(object));
        // what it says about pods counts, where the owner has other trouble too
        let own: Vec<_> = finding.covers.iter().skip(1).collect();
        let is_told = if own.is_empty() { is_known(&finding.about) } else { own.into_iter().all(is_known) };
        if !is_told {
            kept.push(finding);
        }
    }
    kept
}

/// For each finding that blames something, the finding about that. Circles are cut where they close.
fn parents(findings: &[Finding]) -> BTreeMap<usize, usize> {
    let mut parents = BTreeMap::new();
    for (at, finding) in findings.iter().enumerate() {
        let blamed = finding.blames.iter().find_map(|object| {
            findings
                .iter()
                .enumerate()
                .find(|(other, cause)| *other != at && cause.covers.contains(object))
                .map(|(at, _)| at)
        });
        let Some(parent) = blamed else { continue };
        let mut up = Some(parent);
        while let Some(next) = up.filter(|next| *next != at) {
            up = parents.get(&next).copied();
        }
        if up.is_none() {
            parents.insert(at, parent);
        }
    }
    parents
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::Severity;

    fn finding(name: &str, blames: &str) -> Finding {
        Finding::new(Severity::Outage, Object::host(name), name).blaming([Object::host(blames)])
    }

    #[test]
    fn circles_are_cut() {
        let findings = [finding("a", "b"), finding("b", "c"), finding("c", "a")];
        assert_eq!(parents(&findings), BTreeMap::from([(0, 1), (1, 2)]));
    }

    #[test]
    fn what_was_told_is_not_told_again() {
        let findings = [finding("a", "x"), finding("a", "y"), finding("b", "x")];
        assert_eq!(once(findings.into_iter()).len(), 2);
    }
}
