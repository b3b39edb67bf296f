//! What is asked: about what, and for what.

use domain::Role;

use crate::{
    name::{Kind, Name, Object},
    transcript::Transcript,
    words,
};

/// A question, understood as far as words go.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Question {
    pub(crate) intent: Intent,
    pub(crate) topic: Topic,
    /// The namespace that it names as such.
    pub(crate) namespace: Option<Name>,
    /// Other words that may be names.
    pub(crate) mentions: Vec<Mention>,
    /// What an earlier answer was about, if the question refers to it.
    pub(crate) refers_to: Option<Object>,
}

/// What is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Intent {
    /// To know what is wrong.
    Investigate,
    /// To see something as it is.
    Show(Show),
    /// Nothing that an investigator can do.
    Other,
}

/// What is to be seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Show {
    List(Kind),
    Logs { previous: bool },
    Description,
    Manifest,
    Events,
    Usage,
    Ports,
    Disks,
}

/// What it is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Topic {
    Cluster,
    Host,
    Both,
}

/// A word that may be the name of something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mention {
    pub(crate) word: Name,
    pub(crate) kind: Option<Kind>,
    /// Whether it can be nothing but a name.
    pub(crate) is_certain: bool,
}

impl Question {
    pub(crate) fn read(transcript: &Transcript) -> Self {
        let mut question = Self::parse(&transcript.question);
        let earlier_user = || transcript.earlier.iter().rev().find(|(role, _)| *role == Role::User);
        let names_nothing =
            question.namespace.is_none() && question.mentions.iter().all(|mention| !mention.is_certain);
        if names_nothing && !transcript.earlier.is_empty() && is_follow_up(&transcript.question) {
            question.refers_to = subject(transcript);
            if let (None, Some((_, text))) = (&question.refers_to, earlier_user()) {
                let before = Self::parse(text);
                question.namespace = before.namespace;
                question.mentions = before.mentions;
                question.topic = before.topic;
            }
            if question.refers_to.is_some() {
                question.topic = Topic::Cluster;
                question.mentions.clear();
            }
            if question.intent == Intent::Other {
                question.intent = Intent::Investigate;
            }
        }
        question
    }

    fn parse(text: &str) -> Self {
        let lower = text.to_lowercase();
        let words: Vec<&str> = lower
            .split(|c: char| !(c.is_alphanumeric() || "-._/'".contains(c)))
            .map(trimmed)
            .filter(|word| !word.is_empty())
            .collect();
        let mut question = Self {
            intent: Intent::Investigate,
            topic: Topic::Both,
            namespace: None,
            mentions: Vec::new(),
            refers_to: None,
        };
        for (at, word) in words.iter().enumerate() {
            let before = at.checked_sub(1).and_then(|at| words.get(at)).copied().unwrap_or_default();
            question.take_word(word, before, words.get(at + 1).copied().unwrap_or_default());
        }
        let names_cluster = words.iter().any(|word| words::is_cluster(word))
            || question.namespace.is_some()
            || question.mentions.iter().any(|mention| mention.is_certain);
        question.topic = match (names_cluster, words.iter().any(|word| words::is_host(word))) {
            (true, _) => Topic::Cluster,
            (false, true) => Topic::Host,
            (false, false) => Topic::Both,
        };
        question.intent = intent(&words, &question);
        question
    }

    fn take_word(&mut self, word: &str, before: &str, after: &str) {
        let is_namespace_word = |word: &str| matches!(word, "namespace" | "ns" | "-n" | "namespaces");
        if let Some((left, right)) = word.split_once('/') {
            match (Kind::parse(left), Name::parse(left), Name::parse(right)) {
                (Some(kind), _, Some(name)) => self.mention(name, Some(kind), true),
                (None, Some(namespace), Some(name)) => {
                    self.namespace = Some(namespace);
                    self.mention(name, None, true);
                }
                (..) => {}
            }
            return;
        }
        let is_wordy =
            word.len() > 1 && word.chars().any(|c| c.is_ascii_alphabetic()) && !words::is_common(word);
        let Some(name) = Name::parse(word).filter(|_| is_wordy) else { return };
        if is_namespace_word(before) || (is_namespace_word(after) && before != "namespace") {
            self.namespace = Some(name);
            return;
        }
        let kind = Kind::parse(before).or_else(|| Kind::parse(after));
        let looks_made =
            word.contains('-') && word.chars().any(|c| c.is_ascii_alphabetic()) && word.len() > 3;
        self.mention(name, kind, looks_made || Kind::parse(before).is_some());
    }

    fn mention(&mut self, word: Name, kind: Option<Kind>, is_certain: bool) {
        if !self.mentions.iter().any(|mention| mention.word == word) {
            self.mentions.push(Mention { word, kind, is_certain });
        }
    }
}

fn trimmed(word: &str) -> &str {
    let word = word.trim_end_matches(['.', '/', '-', '\'', '_']).trim_start_matches(['.', '/', '\'', '_']);
    if word == "-n" { word } else { word.trim_start_matches('-') }
}

fn intent(words: &[&str], question: &Question) -> Intent {
    let has = |list: &[&str]| words.iter().any(|word| list.contains(word));
    let asks_why = has(&[
        "why",
        "wrong",
        "broken",
        "failing",
        "fails",
        "crashing",
        "crash",
        "problem",
        "problems",
        "issue",
        "issues",
        "investigate",
        "diagnose",
        "debug",
        "cause",
        "slow",
        "down",
        "unhealthy",
        "healthy",
        "not",
    ]);
    let asks_to_see = has(&[
        "show", "list", "get", "give", "print", "display", "describe", "fetch", "view", "see", "tail",
        "what", "which", "any", "many", "much", "usage", "top",
    ]) || words.len() <= 5;
    if let Some(show) = shown(words, question).filter(|_| asks_to_see && !asks_why) {
        return Intent::Show(show);
    }
    if is_unrelated(words) {
        return Intent::Other;
    }
    let has_signal = words.iter().any(|word| words::is_cluster(word))
        || words.iter().any(|word| words::is_host(word))
        || words.iter().any(|word| words::is_trouble(word))
        || question.namespace.is_some()
        || question.mentions.iter().any(|mention| mention.is_certain);
    if has_signal || question.mentions.len() == 1 { Intent::Investigate } else { Intent::Other }
}

fn shown(words: &[&str], question: &Question) -> Option<Show> {
    let has = |list: &[&str]| words.iter().any(|word| list.contains(word));
    let names_something = question.namespace.is_some() || !question.mentions.is_empty();
    if has(&["logs", "log"]) {
        return Some(Show::Logs { previous: has(&["previous", "last", "before"]) });
    }
    if has(&["events", "event"]) {
        return Some(Show::Events);
    }
    if has(&["yaml", "manifest"]) {
        return Some(Show::Manifest);
    }
    if has(&["describe"]) && names_something {
        return Some(Show::Description);
    }
    if has(&["usage", "top", "consuming", "uses"]) && has(&["cpu", "memory", "pods", "pod", "nodes", "node"])
    {
        return Some(Show::Usage);
    }
    if has(&["port", "ports", "listening"]) && question.topic == Topic::Host {
        return Some(Show::Ports);
    }
    if has(&["disk", "disks", "filesystems", "space"])
        && question.topic == Topic::Host
        && has(&["show", "list", "usage", "free"])
    {
        return Some(Show::Disks);
    }
    let lists =
        has(&["list", "show", "get", "which", "what", "many", "all"]) && !has(&["status", "unhealthy"]);
    let plural = |word: &&&str| word.ends_with('s') && Kind::parse(word).is_some();
    words
        .iter()
        .find(plural)
        .and_then(|word| Kind::parse(word))
        .filter(|_| lists && !asks_state(words))
        .map(Show::List)
}

/// "which pods are pending", "what nodes are not ready": a question about health all the same.
fn asks_state(words: &[&str]) -> bool {
    words.iter().any(|word| words::is_trouble(word) && !["check", "up", "run", "running"].contains(word))
}

fn is_unrelated(words: &[&str]) -> bool {
    let has = |list: &[&str]| words.iter().any(|word| list.contains(word));
    has(&["poem", "joke", "story", "essay", "song", "recipe", "translate", "weather", "haiku", "lyrics"])
        || matches!(words, ["hi" | "hello" | "hey" | "help" | "thanks" | "thank", ..] if words.len() <= 3)
        || matches!(
            words,
            ["who" | "what", "are", "you", ..]
                | ["what", "can", "you", "do", ..]
                | ["how", "do", "you", "work", ..]
        )
}

fn is_follow_up(text: &str) -> bool {
    let lower = text.to_lowercase();
    let words: Vec<&str> =
        lower.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let points_back =
        ["it", "its", "that", "this", "them", "they", "those", "same", "relevant", "more", "why", "and"];
    words.len() <= 4 || words.iter().any(|word| points_back.contains(word))
}

/// What the last answer was about: the first object that one of its commands names.
fn subject(transcript: &Transcript) -> Option<Object> {
    let (_, answer) = transcript.earlier.iter().rev().find(|(role, _)| *role == Role::Assistant)?;
    let commands: Vec<Vec<&str>> = answer
        .match_indices("kubectl ")
        .filter_map(|(at, _)| answer.get(at..)?.lines().next())
        .map(|line| line.split([' ', '`', ';', '|']).collect())
        .collect();
    let wanted = |verb: &str| {
        commands.iter().find_map(|words| object_in(words).filter(|_| words.get(1) == Some(&verb)))
    };
    wanted("logs").or_else(|| commands.iter().find_map(|words| object_in(words)))
}

/// The object of `kubectl logs POD -n NS`, `kubectl describe KIND NAME -n NS` or `kubectl get KIND/NAME`.
fn object_in(words: &[&str]) -> Option<Object> {
    let (kind, name) = match *words {
        [_, "logs", name, ..] => name
            .split_once('/')
            .map_or((Kind::Pod, name), |(kind, name)| (Kind::parse(kind).unwrap_or(Kind::Pod), name)),
        [_, "describe" | "get", kind, name, ..] if !name.starts_with('-') => (Kind::parse(kind)?, name),
        _ => return None,
    };
    let at = words.iter().position(|word| *word == "-n");
    let namespace = at.and_then(|at| words.get(at + 1)).and_then(|name| Name::parse(name));
    (namespace.is_some() || kind.is_global()).then_some(Object { kind, namespace, name: Name::parse(name)? })
}

#[cfg(test)]
mod tests;
