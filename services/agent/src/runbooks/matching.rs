//! Which runbooks a question is about, by the words that it shares with their names and descriptions.

use std::{cmp::Reverse, collections::BTreeSet};

use super::{Runbook, Runbooks};

/// Runbooks that one question can match.
const MOST: usize = 5;
/// Words of a question that are looked at: a log in it must not take long.
const MOST_WORDS: usize = 500;
/// What an id and a state such as `OOMKilled` count, and what must be reached. A word counts one.
const ENOUGH: usize = 2;
/// Bytes that words share at least if their endings differ.
const SHORTEST_STEM: usize = 4;
/// Endings that do not change what a word means.
const ENDINGS: &[&str] = &["", "s", "e", "es", "d", "ed", "ing", "ure", "ures", "ion"];
/// Words that say nothing of a problem.
const EMPTY: &[&str] = &[
    "about",
    "again",
    "and",
    "are",
    "back",
    "because",
    "client",
    "cluster",
    "does",
    "few",
    "for",
    "from",
    "has",
    "have",
    "its",
    "kube",
    "kubernetes",
    "new",
    "nor",
    "not",
    "off",
    "old",
    "one",
    "own",
    "problem",
    "something",
    "stay",
    "that",
    "the",
    "them",
    "they",
    "this",
    "too",
    "under",
    "what",
    "when",
    "which",
    "why",
    "with",
];

impl Runbooks {
    /// Ids of the runbooks that a text is about, best first.
    pub(crate) fn matching(&self, text: &str) -> Vec<String> {
        let said = words(text, MOST_WORDS);
        let all: Vec<_> = self.iter().map(|(id, runbook)| (id, Features::of(id, runbook))).collect();
        // A word that many runbooks have tells none of them.
        let most = (all.len() / 4).max(1);
        let tells = |word: &str| all.iter().filter(|(_, features)| features.has(word)).count() <= most;
        let scores = all.iter().map(|(id, features)| (Reverse(features.score(&said, &tells)), *id));
        let mut found: Vec<_> = scores.filter(|(Reverse(score), _)| *score >= ENOUGH).collect();
        found.sort_unstable();
        found.into_iter().take(MOST).map(|(_, id)| id.to_owned()).collect()
    }
}

/// What tells a runbook from others.
struct Features {
    /// Its words, one by one.
    words: BTreeSet<String>,
    /// The words of its id, which mean something together.
    id: Vec<String>,
    /// The words of states such as `CrashLoopBackOff`, which mean something in this order.
    states: Vec<Vec<String>>,
}

impl Features {
    fn of(id: &str, runbook: &Runbook) -> Self {
        let states = runbook.description.split(|c: char| !c.is_alphanumeric()).filter(|word| is_state(word));
        let told = words(&format!("{id} {}", runbook.description), MOST_WORDS).into_iter();
        Self {
            words: told.filter(|word| word.len() > 2 && !EMPTY.contains(&word.as_str())).collect(),
            id: words(id, MOST_WORDS),
            states: states.map(|state| words(state, MOST_WORDS)).collect(),
        }
    }

    fn has(&self, word: &str) -> bool {
        self.words.iter().any(|other| is_same(other, word))
    }

    fn score(&self, said: &[String], tells: &impl Fn(&str) -> bool) -> usize {
        let says = |word: &&String| said.iter().any(|other| is_same(word, other));
        let is_state = |part: &[String], state: &[String]| {
            part.iter().zip(state).all(|(one, other)| is_same(one, other))
        };
        let shows = |state: &&Vec<String>| said.windows(state.len()).any(|part| is_state(part, state));
        let named = usize::from(!self.id.is_empty() && self.id.iter().all(|word| says(&word)))
            + self.states.iter().filter(shows).count();
        named * ENOUGH + self.words.iter().filter(says).filter(|word| tells(word)).count()
    }
}

/// Whether a word is the name of a state, not of the language: `OOMKilled`, `NXDOMAIN`, `x509`.
fn is_state(word: &str) -> bool {
    let unusual = |c: char| c.is_uppercase() || c.is_ascii_digit();
    word.len() > 3 && word.contains(char::is_alphabetic) && word.chars().skip(1).any(unusual)
}

/// The words of a text in lower case. `KubePodOOMKilled` has four.
fn words(text: &str, most: usize) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut letters = text.chars().peekable();
    let mut before = ' ';
    while let Some(letter) = letters.next() {
        let next_is_small = letters.peek().is_some_and(|next| next.is_lowercase());
        let begins = letter.is_uppercase() && (!before.is_uppercase() || next_is_small);
        if (begins || !letter.is_alphanumeric()) && words.last().is_some_and(|word| !word.is_empty()) {
            if words.len() == most {
                break;
            }
            words.push(String::new());
        }
        if let Some(word) = words.last_mut().filter(|_| letter.is_alphanumeric()) {
            word.extend(letter.to_lowercase());
        }
        before = letter;
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Whether two words differ in their ending at most: `crashing` and `crash`, `fails` and `failure`.
fn is_same(one: &str, other: &str) -> bool {
    let common = one.chars().zip(other.chars()).take_while(|(one, other)| one == other);
    let common = common.map(|(letter, _)| letter.len_utf8()).sum();
    let ends = |word: &str| word.get(common..).is_some_and(|ending| ENDINGS.contains(&ending));
    one == other || common >= SHORTEST_STEM && ends(one) && ends(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alerts_find_their_runbooks() {
        let runbooks = Runbooks::default();
        for (text, expected) in [
            ("KubePodCrashLooping", &["crash-loop"][..]),
            ("Pod CrashLoopBackOff\n\nPod is crashing repeatedly", &["crash-loop"]),
            ("KubeContainerOOMKilled", &["out-of-memory", "crash-loop"]),
            ("The pod ran out of memory", &["out-of-memory"]),
            ("ImagePullBackOff in shop", &["image-pull"]),
            ("KubeNodeNotReady: node worker-3", &["node-not-ready"]),
            ("CPUThrottlingHigh", &["high-latency"]),
            ("KubePersistentVolumeFillingUp", &["storage"]),
            ("CertManagerCertExpirySoon: the certificate expires", &["certificate-expiry"]),
            ("x509: certificate has expired", &["certificate-expiry"]),
            ("lookup db.prod: no such host", &["dns-failure"]),
            ("The rollout of web failed", &["failed-rollout"]),
            ("0/3 nodes: FailedScheduling", &["pending-pod"]),
            ("What is the status of my cluster?", &[]),
            ("List all pods in the default namespace", &[]),
            ("Watchdog", &[]),
            ("", &[]),
        ] {
            assert_eq!(runbooks.matching(text), expected, "{text}");
        }
    }

    #[test]
    fn words_are_told_apart() {
        assert_eq!(
            words("KubePodOOMKilled, x509: ÄrgerlichÜber", 10),
            ["kube", "pod", "oom", "killed", "x509", "ärgerlich", "über"]
        );
        assert_eq!(words("a b c d", 2), ["a", "b"]);
    }
}
