//! What a client lets tools do: rules by which calls run unasked, or never. An executor has the last word on each.
//!
//! * [`Rule`]: a tool and patterns for its parameters; `glob`: the patterns
//! * [`Permissions`]: the rules of a session, and what they say of a call

mod glob;
mod rule;

use std::collections::BTreeMap;

use crate::ToolCall;

pub use rule::Rule;

/// What a call that a rule forbids is told, unless the rule says something else.
const FORBIDDEN: &str = "Not run: the user does not allow this call.";

/// Parameters of a call, as texts.
pub type Parameters = BTreeMap<String, String>;

/// The rules of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Permissions {
    /// Calls that run unasked.
    pub allow: Vec<Rule>,
    /// The same, each for one call.
    pub allow_once: Vec<Rule>,
    /// Calls that never run.
    pub deny: Vec<Denial>,
    /// Whether calls that change nothing need no rule.
    pub reads: bool,
}

/// Calls that never run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denial {
    /// Which ones.
    pub of: Denied,
    /// What the model is told.
    pub reason: Option<String>,
}

/// Which calls never run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Denied {
    /// One, by its id: alone, or behind the id of its run and a slash.
    Call(String),
    /// All that a rule speaks of.
    Calls(Rule),
}

/// What rules say of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Judgement {
    /// It never runs; the text tells the model why.
    Denied(String),
    /// It runs unasked.
    Allowed,
    /// Nothing.
    Unmentioned,
}

impl Permissions {
    /// What the rules say of a call. A rule for one call is used up by it.
    pub fn judge(&mut self, call: &ToolCall, parameters: &Parameters) -> Judgement {
        if let Some(denial) = self.deny.iter().find(|denial| denial.of.covers(call, parameters)) {
            return Judgement::Denied(denial.reason.clone().unwrap_or_else(|| FORBIDDEN.to_owned()));
        }
        let allows = |rule: &Rule| rule.allows(&call.name, parameters);
        if self.allow.iter().any(allows) {
            return Judgement::Allowed;
        }
        match self.allow_once.iter().position(allows) {
            Some(at) => {
                self.allow_once.remove(at);
                Judgement::Allowed
            }
            None => Judgement::Unmentioned,
        }
    }

    /// Lets calls like this one run unasked from now on.
    pub fn always(&mut self, tool: &str, parameters: &Parameters) {
        let rule = Rule::like(tool, parameters);
        if !self.allow.contains(&rule) {
            self.allow.push(rule);
        }
    }
}

impl Denied {
    fn covers(&self, call: &ToolCall, parameters: &Parameters) -> bool {
        match self {
            Self::Call(id) => {
                let raw = id.split_once('/').map_or(id.as_str(), |(_, raw)| raw);
                [id, raw].contains(&call.id.as_str())
            }
            Self::Calls(rule) => rule.matches(&call.name, parameters),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CallId;

    fn rule(tool: &str, patterns: &[(&str, &str)]) -> Rule {
        Rule { tool: tool.into(), parameters: texts(patterns) }
    }

    fn texts(pairs: &[(&str, &str)]) -> Parameters {
        pairs.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
    }

    fn call(tool: &str) -> ToolCall {
        ToolCall { id: CallId::new("call_1"), name: tool.into(), arguments: String::new() }
    }

    fn command(text: &str) -> Parameters {
        texts(&[("command", text), ("timeout", "5")])
    }

    #[test]
    fn a_rule_needs_its_tool_and_all_that_it_names() {
        let read = texts(&[("filePath", "/tmp/a"), ("limit", "42")]);
        for (rule, allows) in [
            (rule("read", &[]), true),
            (rule("rea*", &[]), false),
            (rule("read", &[("filePath", "/tmp/*")]), true),
            (rule("read", &[("filePath", "/tmp/*"), ("limit", "4?")]), true),
            (rule("read", &[("filePath", "/tmp/*"), ("offset", "*")]), false),
            (rule("read", &[("limit", "4")]), false),
        ] {
            assert_eq!(rule.allows("read", &read), allows, "{rule:?}");
        }
    }

    #[test]
    fn no_wildcard_covers_what_a_shell_takes_apart() {
        let wild = rule("bash", &[("command", "ls **")]);
        assert!(wild.allows("bash", &command("ls /tmp")));
        for tail in
            ["; id", "&& id", "| sh", "`id`", "$(id)", "> /tmp/x", "< /etc/passwd", "& id", "${IFS}", "\nid"]
        {
            let command = command(&format!("ls {tail}"));
            assert!(!wild.allows("bash", &command), "{tail}");
            assert!(!rule("exec", &[("command", "*")]).allows("exec", &command), "{tail}");
            let exact = command["command"].clone();
            assert!(rule("bash", &[("command", &exact)]).allows("bash", &command), "{tail}");
        }
        assert!(wild.matches("bash", &command("ls && id")), "what is denied is denied with its tail");
    }

    #[test]
    fn denials_come_first_and_a_rule_for_once_is_used_up() {
        let mut permissions = Permissions {
            allow: vec![rule("bash", &[("command", "ls *")])],
            allow_once: vec![rule("bash", &[("command", "id")])],
            deny: vec![
                Denial { of: Denied::Calls(rule("bash", &[("command", "ls /root*")])), reason: None },
                Denial { of: Denied::Call("R1/call_9".into()), reason: Some("no".into()) },
            ],
            reads: false,
        };
        let mut judge = |text: &str| permissions.judge(&call("bash"), &command(text));
        assert_eq!(judge("ls /tmp"), Judgement::Allowed);
        assert_eq!(judge("ls /root/x"), Judgement::Denied(FORBIDDEN.into()));
        assert_eq!(judge("id"), Judgement::Allowed);
        assert_eq!(judge("id"), Judgement::Unmentioned);
        let ninth = ToolCall { id: CallId::new("call_9"), ..call("bash") };
        assert_eq!(permissions.judge(&ninth, &command("ls /tmp")), Judgement::Denied("no".into()));
    }

    #[test]
    fn always_means_calls_like_this_one() {
        let mut permissions = Permissions::default();
        permissions.always("bash", &command("git log -p *.rs"));
        permissions.always("bash", &command("git status"));
        permissions.always("read", &texts(&[("filePath", "/tmp/*")]));
        permissions.always("agent", &Parameters::new());
        let expected = [
            rule("bash", &[("command", "git **")]),
            rule("read", &[("filePath", "/tmp/\\*")]),
            rule("agent", &[]),
        ];
        assert_eq!(permissions.allow, expected);
        let mut judge = |tool, parameters| permissions.judge(&call(tool), &parameters);
        assert_eq!(judge("bash", command("git push")), Judgement::Allowed);
        assert_eq!(judge("bash", command("git")), Judgement::Unmentioned);
        assert_eq!(judge("read", texts(&[("filePath", "/tmp/x")])), Judgement::Unmentioned);
        assert_eq!(judge("read", texts(&[("filePath", "/tmp/*")])), Judgement::Allowed);
        assert_eq!(judge("agent", texts(&[("task", "x")])), Judgement::Allowed);
    }
}
