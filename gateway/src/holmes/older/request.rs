//! The bodies of this dialect, and the questions that they become. Unknown fields are ignored.

use std::collections::HashMap;

use domain::{Message, Role};
use wire::agent::{AlertHistory, ChatRequest};

use crate::problem::Problem;

use super::{
    super::{
        fields::Fields,
        invalid::{Kind, Loc},
        raw::{self, Members, Type},
    },
    prompt::{self, Earlier, Issue, Used},
    reply::{Form, Shown},
    sections::Sections,
    template,
};

const SECTIONS: &str = "sections";
const INSTRUCTIONS: &str = "instructions";
const HOURS: &str = "alert_history_since_hours";
const TOOLS: &str = "tools";
/// Section of the agent's prompt that offers runbooks.
const RUNBOOKS: &str = "time_runbooks";
const MOST_SECTIONS: usize = 100;

/// A valid request.
#[derive(Debug)]
pub(super) struct Asked {
    /// The question as the agent takes it.
    pub(super) chat: ChatRequest,
    pub(super) form: Form,
    pub(super) shown: Shown,
}

/// The body of an investigation.
pub(super) fn investigation(body: &[u8]) -> Result<Asked, Problem> {
    let mut fields = Fields::parse(body)?;
    let issue = Issue {
        source: fields.required_string("source"),
        title: fields.required_string("title"),
        description: fields.required_string("description"),
        subject: prompt::resource(fields.required_object("subject")),
        context: prompt::members(fields.required_object("context")),
        instance: fields.string("source_instance_id"),
    };
    let shown = fields.shown();
    let asked_template = fields.string("prompt_template");
    let sections = Sections::or_default(fields.sections());
    let model = fields.string("model").unwrap_or_default();
    fields.finish()?;

    let question = issue.markdown();
    let values = [
        ("issue", question.as_str()),
        ("source", &issue.source),
        ("title", &issue.title),
        ("description", &issue.description),
        ("subject", &issue.subject),
        ("context", &issue.context),
        (SECTIONS, &sections.list()),
    ];
    let system = template::resolve(asked_template.as_deref(), template::INVESTIGATION, &values)?;
    let chat = ChatRequest {
        model,
        additional_system_prompt: format!("{system}\n\n{}", sections.prompt()),
        question,
        ..ChatRequest::default()
    };
    Ok(Asked { chat, form: Form::Investigation(sections), shown })
}

/// The body of a question about an issue that was investigated.
pub(super) fn issue_chat(body: &[u8]) -> Result<Asked, Problem> {
    let mut fields = Fields::parse(body)?;
    fields.first_role()?;
    let ask = fields.required_string("ask");
    let found = fields.within("investigation_result", |result| Earlier {
        result: result.string("result"),
        tools: result.tools(),
    });
    let issue_type = fields.required_string("issue_type");
    let template = template::resolve(None, template::ISSUE_CHAT, &[])?;
    conversation(
        fields,
        ask,
        template,
        prompt::earlier(format!("Investigate this issue: {issue_type}"), found),
    )
}

/// The body of a health check.
pub(super) fn workload_check(body: &[u8]) -> Result<Asked, Problem> {
    let mut fields = Fields::parse(body)?;
    let ask = fields.required_string("ask");
    let resource = fields.required_object("resource");
    let [namespace, name] = ["namespace", "name"].map(|member| prompt::member(&resource, member));
    let resource = prompt::resource(resource);
    let hours = fields.hours();
    let alerts = fields.flag("alert_history", true);
    // The original reads the second name only.
    let stored = fields.flag("stored_instructions", true) && fields.flag("stored_instrucitons", true);
    let instructions = fields.texts(INSTRUCTIONS);
    let shown = fields.shown();
    let asked_template = fields.string("prompt_template");
    let model = fields.string("model").unwrap_or_default();
    fields.finish()?;

    let values = [
        ("ask", ask.as_str()),
        ("resource", &resource),
        ("alerts", if alerts { prompt::ALERTS } else { "" }),
        (INSTRUCTIONS, &prompt::list(&instructions)),
    ];
    let system = template::resolve(asked_template.as_deref(), template::WORKLOAD_CHECK, &values)?;
    let chat = ChatRequest {
        question: prompt::workload(&ask, &resource, &instructions),
        model,
        response_format_json: prompt::verdict(),
        additional_system_prompt: system,
        alert_history: alerts.then_some(AlertHistory { namespace, name, since_hours: hours }),
        behavior_controls: if stored { HashMap::new() } else { [(RUNBOOKS.to_owned(), false)].into() },
        ..ChatRequest::default()
    };
    Ok(Asked { chat, form: Form::Verdict { instructions }, shown })
}

/// The body of a question about a workload that was checked.
pub(super) fn workload_chat(body: &[u8]) -> Result<Asked, Problem> {
    let mut fields = Fields::parse(body)?;
    fields.first_role()?;
    let ask = fields.required_string("ask");
    let found = fields.within("workload_health_result", |result| Earlier {
        result: result.string("analysis").or(result.string("result")),
        tools: result.tools(),
    });
    let resource = prompt::resource(fields.required_object("resource"));
    let template = template::resolve(None, template::WORKLOAD_CHAT, &[])?;
    let question = prompt::workload("Is this workload healthy?", &resource, &[]);
    conversation(fields, ask, template, prompt::earlier(question, found))
}

/// A turn of a conversation that goes on after what was found earlier.
fn conversation(
    mut fields: Fields<'_>,
    question: String,
    system: String,
    earlier: [Message; 2],
) -> Result<Asked, Problem> {
    let mut history = fields.history();
    let model = fields.string("model").unwrap_or_default();
    fields.finish()?;
    let instructions = history.iter().take_while(|message| message.role == Role::System).count();
    history.splice(instructions..instructions, earlier);
    let chat = ChatRequest {
        question,
        history: history.into_iter().map(Into::into).collect(),
        model,
        additional_system_prompt: system,
        ..ChatRequest::default()
    };
    Ok(Asked { chat, form: Form::Conversation, shown: Shown { calls: true, results: true } })
}

impl<'a> Fields<'a> {
    /// The original's clients always got both, whatever the documented default.
    fn shown(&mut self) -> Shown {
        Shown {
            calls: self.flag("include_tool_calls", true),
            results: self.flag("include_tool_call_results", true),
        }
    }

    /// Titles and what belongs there, in the client's order.
    fn sections(&mut self) -> Vec<(String, String)> {
        let Some(value) = self.get(SECTIONS) else { return Vec::new() };
        let members = self.members(value, Kind::Dict, &[Loc::Key(SECTIONS)]).unwrap_or_default();
        if members.len() > MOST_SECTIONS {
            self.errors.add_value("there are too many", &[Loc::Key(SECTIONS)], value);
            return Vec::new();
        }
        let sections = raw::in_order(members).into_iter().map(|(title, what)| {
            let what = self.text(what, &[Loc::Key(SECTIONS), Loc::Member(title.clone())]);
            (title, what)
        });
        sections.collect()
    }

    fn texts(&mut self, name: &'static str) -> Vec<String> {
        let items = self.list(name).into_iter().enumerate();
        items.map(|(index, item)| self.text(item, &[Loc::Key(name), Loc::Index(index)])).collect()
    }

    fn hours(&mut self) -> f64 {
        const DEFAULT: f64 = 24.0;
        let Some(value) = self.get(HOURS) else { return DEFAULT };
        let path = [Loc::Key(HOURS)];
        let text = match Type::of(value) {
            Type::Number => value.get().to_owned(),
            Type::String => self.text(value, &path),
            Type::Object | Type::Array | Type::Bool | Type::Null => {
                self.errors.add(Kind::Float, &path, value);
                return DEFAULT;
            }
        };
        match text.trim().parse() {
            Ok(hours) if f64::is_finite(hours) && hours >= 0.0 => hours,
            Ok(_) => {
                self.errors.add_value("it is no number of hours", &path, value);
                DEFAULT
            }
            Err(_) => {
                self.errors.add(Kind::FloatParsing, &path, value);
                DEFAULT
            }
        }
    }

    /// Tools of an earlier answer: as they are to be sent, or as the answer had them.
    fn tools(&mut self) -> Vec<Used> {
        let items = self.list(TOOLS).into_iter().enumerate();
        let used = items.map(|(index, item)| {
            let members =
                self.members(item, Kind::Object, &[Loc::Key(TOOLS), Loc::Index(index)]).unwrap_or_default();
            Used {
                name: first(&members, ["name", "tool_name"]),
                description: first(&members, ["description", "description"]),
                output: first(&members, ["output", "result"]),
            }
        });
        used.collect()
    }
}

/// The first of these members that is there.
fn first(members: &Members<'_>, names: [&str; 2]) -> String {
    names.into_iter().find_map(|name| members.get(name)).map(|value| prompt::plain(value)).unwrap_or_default()
}
