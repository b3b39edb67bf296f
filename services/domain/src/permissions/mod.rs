//! What a client lets tools do: rules by which calls run unasked, or never. An executor has the last word on each.
//!
//! * [`Rule`]: a tool and patterns for its parameters; `glob`: the patterns; `patch`: what they mean for patches
//! * [`Permissions`]: the rules of a session, and what they say of a call

mod glob;
mod patch;
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

impl Permissions {
    /// Why a call never runs, if the rules say so; the text is for the model.
    pub fn denial(&self, call: &ToolCall, parameters: &Parameters) -> Option<&str> {
        let denial = self.deny.iter().find(|denial| denial.of.covers(call, parameters))?;
        Some(denial.reason.as_deref().unwrap_or(FORBIDDEN))
    }

    /// Whether a call runs unasked. A rule for one call is used up by it.
    pub fn allow(&mut self, tool: &str, parameters: &Parameters) -> bool {
        let allows = |rule: &Rule| rule.allows(tool, parameters);
        if self.allow.iter().any(allows) {
            return true;
        }
        let once = self.allow_once.iter().position(allows);
        once.map(|at| self.allow_once.remove(at)).is_some()
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
    /// Whether it is this one call.
    pub fn names(&self, call: &str) -> bool {
        match self {
            Self::Call(id) => {
                id.strip_suffix(call).is_some_and(|before| before.is_empty() || before.ends_with('/'))
            }
            Self::Calls(_) => false,
        }
    }

    fn covers(&self, call: &ToolCall, parameters: &Parameters) -> bool {
        match self {
            Self::Call(_) => self.names(call.id.as_str()),
            Self::Calls(rule) => rule.denies(&call.name, parameters),
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
        assert!(wild.denies("bash", &command("ls && id")), "what is denied is denied with its tail");
    }

    #[test]
    fn rules_about_patches_speak_of_the_files_that_they_touch() {
        let patch = |files: &[&str]| {
            let parts = files.iter().map(|file| format!("*** Add File: {file}\n+# *** Add File: x\n"));
            texts(&[("patch", &parts.collect::<String>())])
        };
        let within = rule("patch", &[("patch", "src/**")]);
        for (files, allows, denies) in [
            (&["src/a", "src/b/c"][..], true, true),
            (&["src/a", "b"], false, true),
            (&["b"], false, false),
            (&["src/../b"], false, true),
            (&[], false, false),
        ] {
            let is = (within.allows("patch", &patch(files)), within.denies("patch", &patch(files)));
            assert_eq!(is, (allows, denies), "{files:?}");
        }
        let mut permissions = Permissions::default();
        permissions.always("patch", &patch(&["src/a", "src/b/c"]));
        assert_eq!(permissions.allow, [within]);
    }

    #[test]
    fn denials_are_of_one_call_or_of_many() {
        let permissions = Permissions {
            deny: vec![
                Denial { of: Denied::Calls(rule("bash", &[("command", "ls /srv*")])), reason: None },
                Denial { of: Denied::Call("R1/call_9".into()), reason: Some("no".into()) },
            ],
            ..Permissions::default()
        };
        let ninth = ToolCall { id: CallId::new("call_9"), ..call("bash") };
        assert_eq!(permissions.denial(&call("bash"), &command("ls /srv/x")), Some(FORBIDDEN));
        assert_eq!(permissions.denial(&call("bash"), &command("ls /tmp")), None);
        assert_eq!(permissions.denial(&ninth, &command("ls /tmp")), Some("no"));
    }

    #[test]
    fn where_nothing_can_be_told_a_call_is_denied_and_not_allowed() {
        let padded = command(&format!("rm -rf / # {}", "x".repeat(9000)));
        for (rule, parameters) in [
            (rule("bash", &[("command", "rm *")]), &padded),
            (rule("bash", &[("command", "@(rm|dd) *")]), &command("rm -rf /")),
        ] {
            assert!(rule.denies("bash", parameters) && !rule.allows("bash", parameters), "{rule:?}");
        }
        assert!(!rule("bash", &[("command", "id")]).denies("bash", &padded), "it spells out another text");
    }

    #[test]
    fn a_call_is_named_by_its_whole_id() {
        let denied = Denied::Call("R1/call_11".into());
        assert!(denied.names("R1/call_11") && denied.names("call_11"));
        assert!(!denied.names("1") && !denied.names("R2/call_11"));
    }

    #[test]
    fn a_rule_for_one_call_is_used_up() {
        let mut permissions = Permissions {
            allow: vec![rule("bash", &[("command", "ls *")])],
            allow_once: vec![rule("bash", &[("command", "id")])],
            ..Permissions::default()
        };
        let mut allow = |text: &str| permissions.allow("bash", &command(text));
        assert!(allow("ls /tmp") && allow("ls /tmp"));
        assert!(allow("id") && !allow("id"));
    }

    #[test]
    fn always_means_calls_like_this_one() {
        let mut permissions = Permissions::default();
        permissions.always("bash", &command("git log -p *.rs"));
        permissions.always("bash", &command("git status"));
        permissions.always("read", &texts(&[("filePath", "/tmp/*")]));
        permissions.always("agent", &texts(&[("task", "Look at\nthe disk.")]));
        permissions.always("note", &texts(&[("text", "two lines\nof it")]));
        let expected = [
            rule("bash", &[("command", "git **")]),
            rule("read", &[("filePath", "/tmp/\\*")]),
            rule("agent", &[]),
            rule("note", &[("text", "two lines\nof it")]),
        ];
        assert_eq!(permissions.allow, expected);
        let mut allow = |tool, parameters| permissions.allow(tool, &parameters);
        assert!(allow("bash", command("git push")) && !allow("bash", command("git")));
        assert!(!allow("read", texts(&[("filePath", "/tmp/x")])));
        assert!(allow("read", texts(&[("filePath", "/tmp/*")])));
        assert!(allow("agent", texts(&[("task", "x\ny")])));
        assert!(allow("note", texts(&[("text", "two lines\nof it")])));
    }
}
