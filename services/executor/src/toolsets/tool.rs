//! A tool of a YAML toolset: what is called with which values, and what the model may give.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use secrecy::{ExposeSecret as _, SecretString};
use serde_json::{Map, Value, json};

use super::{
    Summarize, file,
    shell::{self, Shell},
    template::{Slot, Template, is_name},
    transformer,
};
use crate::{
    policy::Effect,
    process::Spec,
    redact::names_secret,
    sandbox::{Access, Variable},
    tools::{Decision, Plan, Presentation, RequestHeaders, Run, Settings, Work, command_line, plain},
};

/// The time of a tool that asks for none.
const TIMEOUT: Duration = Duration::from_secs(60);
/// Each combination of conditions is compiled when the file is read.
const MOST_CONDITIONS: usize = 6;
/// Longer ones do not fit into a variable of a process.
const LONGEST_VALUE: usize = 64 << 10;

/// A tool whose command is known to be safe.
#[derive(Debug)]
pub(crate) struct TemplateTool {
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) toolset: Arc<str>,
    shown: Option<Template>,
    command: Template,
    /// The command for each combination of conditions; the nth bit says whether the nth one holds.
    shells: Vec<Shell>,
    /// Values of the slots that come from the environment. `None` for those that the model gives.
    fixed: Vec<Option<SecretString>>,
    parameters: Vec<Parameter>,
    timeout: Duration,
    effect: Effect,
    /// What becomes of long results, if that is said here.
    pub(crate) summarize: Option<Arc<Summarize>>,
}

#[derive(Debug)]
struct Parameter {
    name: String,
    declared: file::Parameter,
}

impl TemplateTool {
    /// Understands a tool, or says why it cannot be one. Notes variables that are missing in `missing`.
    pub(super) fn new(
        toolset: &Arc<str>,
        tool: file::Tool,
        environment: &dyn Fn(&str) -> Option<String>,
        missing: &mut BTreeSet<String>,
    ) -> Result<Self, String> {
        if !is_tool_name(&tool.name) {
            return Err("a name must have 1 to 64 letters, digits, `_` and `-`".to_owned());
        }
        let ((Some(text), None) | (None, Some(text))) = (tool.command, tool.script) else {
            return Err("it needs a `command` or a `script`".to_owned());
        };
        let interpreter = text.trim_start().lines().next().and_then(|line| line.strip_prefix("#!"));
        if interpreter.is_some_and(|line| !line.split(['/', ' ']).any(|word| matches!(word, "sh" | "bash"))) {
            return Err("only scripts of bash are run".to_owned());
        }
        let command = Template::parse(text.trim())?;
        let shown = tool.user_description.as_deref().map(Template::parse).transpose();
        let shown = shown.map_err(|error| format!("`user_description`: {error}"))?;
        let parameters = parameters(&command, shown.as_ref(), tool.parameters)?;
        let fixed = command.slots.iter().map(|slot| match slot {
            Slot::Parameter { .. } | Slot::Header(_) => None,
            Slot::Environment(name) => Some(SecretString::from(environment(name).unwrap_or_else(|| {
                missing.insert(name.clone());
                String::new()
            }))),
        });
        Ok(Self {
            fixed: fixed.collect(),
            shells: shells(&command)?,
            summarize: transformer::summarize(&tool.name, &tool.transformers)?,
            description: tool.description,
            name: tool.name,
            toolset: Arc::clone(toolset),
            shown,
            command,
            parameters,
            effect: match tool.effect {
                Some(file::Effect::Mutation) => Effect::Mutation,
                Some(file::Effect::Read) | None => Effect::Read,
            },
            timeout: tool.timeout.map_or(TIMEOUT, |seconds| Duration::from_secs(seconds.max(1))),
        })
    }

    /// The JSON Schema of its arguments.
    pub(crate) fn schema(&self) -> Value {
        let properties: Map<_, _> = self.parameters.iter().map(Parameter::schema).collect();
        let required: Vec<_> =
            self.parameters.iter().filter(|own| own.declared.required).map(|own| &own.name).collect();
        json!({"type": "object", "properties": properties, "required": required})
    }

    /// Plans a call. What is wrong with it is part of the plan, so that the model can correct itself.
    pub(crate) fn plan(&self, settings: &Settings, arguments_json: &str) -> Plan {
        let given = match self.read(arguments_json) {
            Ok(given) => given,
            Err(reason) => return refusal(self.name.clone(), &reason),
        };
        let invocation = self.text(&self.command, &given);
        let description = one_line(&self.shown.as_ref().map_or_else(
            || invocation.clone(),
            |shown| {
                let is_set = |at: usize| !given.value(&shown.conditions[at], None).is_empty();
                shown.render(is_set, |slot| raw(&shown.slots[slot], &given))
            },
        ));
        let decision = match self.spec(settings, &given) {
            Err(reason) => return refusal(description, &reason),
            Ok(spec) => {
                let command = invocation.clone();
                Decision::Allow(Work::Run(Run {
                    invocation,
                    specs: vec![spec],
                    clusters: false,
                    workspace: None,
                    timeout: self.timeout.min(settings.longest_timeout),
                    present: Box::new(move |outcomes| match outcomes.first() {
                        Some(outcome) => plain(&command, outcome),
                        None => Presentation::NoData(String::new()),
                    }),
                }))
            }
        };
        Plan { description, effect: self.effect, decision }
    }

    /// Values of the environment whose names say that they are secret.
    pub(super) fn secrets(&self) -> impl Iterator<Item = SecretString> {
        self.command.slots.iter().zip(&self.fixed).filter_map(|(slot, fixed)| match slot {
            Slot::Environment(name) if names_secret(name) => fixed.clone(),
            Slot::Environment(_) | Slot::Parameter { .. } | Slot::Header(_) => None,
        })
    }

    pub(super) fn parameter_names(&self) -> impl Iterator<Item = &str> {
        self.parameters.iter().map(|own| own.name.as_str())
    }

    /// The command of a template that takes no values, as a person would write it.
    pub(super) fn invocation(&self) -> String {
        one_line(&self.text(&self.command, &Given(Vec::new())))
    }

    /// What a template runs that takes no values.
    pub(super) fn without_values(&self, settings: &Settings) -> Result<Spec, String> {
        self.spec(settings, &Given(Vec::new()))
    }

    /// The command as a person would write it. Variables of the environment keep their names.
    fn text(&self, template: &Template, given: &Given) -> String {
        let is_set = |at: usize| !given.value(&template.conditions[at], None).is_empty();
        template.render(is_set, |slot| match &template.slots[slot] {
            Slot::Parameter { name, default } => match given.value(name, default.as_deref()) {
                "" => String::new(),
                value => command_line([value]),
            },
            named @ (Slot::Environment(_) | Slot::Header(_)) => raw(named, given),
        })
    }

    fn spec(&self, settings: &Settings, given: &Given) -> Result<Spec, String> {
        let held = self.command.conditions.iter().enumerate();
        let variant: usize =
            held.filter(|(_, name)| !given.value(name, None).is_empty()).map(|(at, _)| 1_usize << at).sum();
        let shell: &Shell = self.shells.get(variant).ok_or("the command is missing")?;
        let program = vec![settings.bash.clone(), "-c".to_owned(), shell.text.clone(), self.name.clone()];
        let mut variables = Vec::new();
        for (at, (slot, fixed)) in self.command.slots.iter().zip(&self.fixed).enumerate() {
            let value = match (slot, fixed) {
                (Slot::Parameter { name, default }, _) => {
                    let value = given.value(name, default.as_deref());
                    if shell.no_dash.contains(&at) && value.starts_with('-') && !given.is_number(name) {
                        return Err(format!("the parameter `{name}` must not begin with a dash"));
                    }
                    value.to_owned()
                }
                (Slot::Header(name), _) => {
                    let value = settings.headers.get(name).ok_or_else(|| RequestHeaders::absent(name))?;
                    if shell.no_dash.contains(&at) && value.starts_with('-') {
                        return Err(format!("the header `{name}` must not begin with a dash"));
                    }
                    value.to_owned()
                }
                (Slot::Environment(_), fixed) => {
                    fixed.as_ref().map(|secret| secret.expose_secret().to_owned()).unwrap_or_default()
                }
            };
            variables.push(Variable { name: shell::variable(at), value });
        }
        // As arguments, everybody on the machine could read the values.
        let access = Access { variables, ..Access::default() };
        Ok(Spec { merge_stderr: true, access, ..Spec::program(program) })
    }

    fn read(&self, arguments_json: &str) -> Result<Given<'_>, String> {
        let json = if arguments_json.trim().is_empty() { "{}" } else { arguments_json };
        let Ok(Value::Object(given)) = serde_json::from_str(json) else {
            return Err("the arguments are not a JSON object".to_owned());
        };
        let mut values = Vec::new();
        for parameter in &self.parameters {
            match given.get(&parameter.name).filter(|value| !value.is_null()) {
                Some(value) => values.push((parameter, parameter.accept(value)?)),
                None if parameter.declared.required => {
                    return Err(format!("the parameter `{}` is missing", parameter.name));
                }
                None => {}
            }
        }
        Ok(Given(values))
    }
}

/// What a call gives.
struct Given<'a>(Vec<(&'a Parameter, String)>);

impl Given<'_> {
    fn value<'a>(&'a self, name: &str, default: Option<&'a str>) -> &'a str {
        let given = self.0.iter().find(|(own, _)| own.name == name).map(|(_, value)| value.as_str());
        given.filter(|value| !value.is_empty()).or(default).unwrap_or_default()
    }

    fn is_number(&self, name: &str) -> bool {
        self.0.iter().any(|(own, _)| {
            own.name == name && matches!(own.declared.kind, file::Kind::Integer | file::Kind::Number)
        })
    }
}

impl Parameter {
    fn schema(&self) -> (String, Value) {
        let kind = match self.declared.kind {
            file::Kind::String => "string",
            file::Kind::Integer => "integer",
            file::Kind::Number => "number",
            file::Kind::Boolean => "boolean",
            file::Kind::Array => "array",
            file::Kind::Object => "object",
        };
        (self.name.clone(), json!({"type": kind, "description": self.declared.description}))
    }

    /// The value as the text that a program gets.
    fn accept(&self, value: &Value) -> Result<String, String> {
        let wrong = |kind: &str| format!("the parameter `{}` must be {kind}", self.name);
        let text = match (self.declared.kind, value) {
            (file::Kind::String, Value::String(text)) => text.clone(),
            (file::Kind::String, Value::Number(_) | Value::Bool(_)) => value.to_string(),
            (file::Kind::String, _) => return Err(wrong("a string")),
            (file::Kind::Integer, _) => integer(value).ok_or_else(|| wrong("an integer"))?,
            (file::Kind::Number, _) => number(value).ok_or_else(|| wrong("a number"))?,
            (file::Kind::Boolean, Value::Bool(_)) => value.to_string(),
            (file::Kind::Boolean, Value::String(text)) if text == "true" || text == "false" => text.clone(),
            (file::Kind::Boolean, _) => return Err(wrong("a boolean")),
            (file::Kind::Array, Value::Array(_)) | (file::Kind::Object, Value::Object(_)) => {
                value.to_string()
            }
            (file::Kind::Array, _) => return Err(wrong("an array")),
            (file::Kind::Object, _) => return Err(wrong("an object")),
        };
        if text.contains('\0') || text.len() > LONGEST_VALUE {
            return Err(wrong(&format!("at most {LONGEST_VALUE} bytes without a NUL")));
        }
        Ok(text)
    }
}

fn integer(value: &Value) -> Option<String> {
    number(value).filter(|text| text.parse::<i64>().is_ok())
}

fn number(value: &Value) -> Option<String> {
    match value {
        Value::Number(number) => Some(number.to_string()),
        Value::String(text) => text.parse::<f64>().ok().filter(|it| it.is_finite()).map(|_| text.clone()),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

/// Declared parameters first; what the templates use beside them is a required string.
fn parameters(
    command: &Template,
    shown: Option<&Template>,
    mut declared: std::collections::BTreeMap<String, file::Parameter>,
) -> Result<Vec<Parameter>, String> {
    if let Some(name) = declared.keys().find(|name| !is_name(name)) {
        return Err(format!("`{name}` cannot be a parameter's name"));
    }
    let used = command.parameters();
    let more = shown.map(Template::parameters).unwrap_or_default();
    let more = more.into_iter().filter(|(name, _)| !used.iter().any(|(own, _)| own == name));
    let mut all = Vec::new();
    for (name, required) in used.iter().cloned().chain(more) {
        let inferred = || file::Parameter { required, ..file::Parameter::default() };
        let declared = declared.remove(&name).unwrap_or_else(inferred);
        all.push(Parameter { name, declared });
    }
    all.extend(declared.into_iter().map(|(name, declared)| Parameter { name, declared }));
    Ok(all)
}

fn shells(command: &Template) -> Result<Vec<Shell>, String> {
    if command.conditions.len() > MOST_CONDITIONS {
        return Err(format!("it has more than {MOST_CONDITIONS} conditions"));
    }
    (0..1_usize << command.conditions.len())
        .map(|variant| {
            let is_set = |at: usize| variant & (1 << at) != 0;
            if shell::resembles_marker(&command.render(is_set, |_| String::new())) {
                return Err("it holds a name that Sleuth uses itself".to_owned());
            }
            let mut places = Vec::new();
            let text = command.render(is_set, |slot| {
                places.push(slot);
                shell::marker(places.len() - 1)
            });
            shell::compile(&text, &places, command.slots.len())
        })
        .collect()
}

fn raw(slot: &Slot, given: &Given<'_>) -> String {
    match slot {
        Slot::Parameter { name, default } => given.value(name, default.as_deref()).to_owned(),
        Slot::Environment(name) => format!("{{{{ env.{name} }}}}"),
        Slot::Header(name) => format!("{{{{ header {name} }}}}"),
    }
}

fn refusal(description: String, reason: &str) -> Plan {
    Plan { description, effect: Effect::Read, decision: Decision::Deny(format!("refused: {reason}")) }
}

/// Without what could move a terminal's cursor, or hide the rest.
pub(super) fn one_line(text: &str) -> String {
    let lines: Vec<_> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    lines.join(" ⏎ ").chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// Whether every provider takes it as the name of a tool.
pub(super) fn is_tool_name(name: &str) -> bool {
    (1..=64).contains(&name.len())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))
}
