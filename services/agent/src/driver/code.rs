//! Questions of code: answered by one call of the model, by an agent of its own, or by a command.

use std::{collections::HashMap, sync::Arc};

use domain::{
    AgentId, Before, CallId, Command, Input, Message, Move, Permission, QuestionAnswered, QuestionId, Role,
    ToolCall,
};
use model::Model;
use store::BlobId;
use tokio_util::task::AbortOnDropHandle;
use tracing::Instrument as _;

use super::{Driver, inputs::To, using};
use crate::{
    prompt::rlm::{self, About},
    reply::reply,
    tools::{Answerer, CodeInput, Context, Given, Interpreter, Question, Tools, Wants, command},
};

/// What code reads of a command whose result nobody has any more.
const RESULT_LOST: &str = "the process that ran the command was lost, and its result with it";

/// What is known of the code of a run's agents.
#[derive(Default)]
pub(super) struct Code {
    pub(super) interpreters: HashMap<AgentId, Interpreter>,
    /// Questions that agents work on, and commands that run or wait for a person.
    open: HashMap<QuestionId, Answerer>,
    /// Commands that may run, whose code has not asked here yet.
    allowed: HashMap<QuestionId, Allowed>,
    /// Calls of the model that are not in the run's totals yet.
    flights: Flights,
    /// Executors are told that interpreters are not needed any more.
    ending: Vec<AbortOnDropHandle<()>>,
}

/// Counts the calls of the model that code waits for.
#[derive(Default)]
struct Flights(Arc<()>);

/// Such a call, until it has failed or is in the run's totals.
#[derive(Debug)]
pub(super) struct InFlight(#[expect(dead_code, reason = "it is there to be dropped")] Arc<()>);

impl Flights {
    fn begin(&self) -> InFlight {
        InFlight(Arc::clone(&self.0))
    }

    fn count(&self) -> u32 {
        u32::try_from(Arc::strong_count(&self.0) - 1).unwrap_or(u32::MAX)
    }
}

/// A command that code asks for.
struct Asked {
    id: QuestionId,
    command: ToolCall,
    answerer: Answerer,
}

/// A command of code that may run.
pub(super) struct Allowed {
    pub(super) call: ToolCall,
    pub(super) permission: Option<Permission>,
    /// What the log says of it.
    pub(super) before: Before,
}

impl Driver {
    /// The interpreter of an agent.
    pub(super) fn interpreter(&mut self, agent: &AgentId) -> Interpreter {
        let name = self.interpreter_name(agent);
        let unknown = || Interpreter::new(name, CodeInput::Gone, true);
        self.code.interpreters.entry(agent.clone()).or_insert_with(unknown).clone()
    }

    pub(super) fn interpreter_name(&self, agent: &AgentId) -> String {
        format!("{}/{agent}", self.setup.context.run)
    }

    /// Ends the interpreter of an agent that has ended before its run.
    pub(super) fn end_interpreter(&mut self, agent: &AgentId) {
        if self.setup.start.rlm.is_none() || *agent == AgentId::main() {
            return;
        }
        self.code.interpreters.remove(agent);
        let name = self.interpreter_name(agent);
        let (tools, context) = (self.setup.tools.clone(), self.setup.context.clone());
        let ending = async move { tools.end_interpreter(&name, &context).await };
        self.code.ending.retain(|task| !task.is_finished());
        self.code.ending.push(AbortOnDropHandle::new(tokio::spawn(ending.in_current_span())));
    }

    /// Has a question of an agent's code answered.
    pub(super) fn asked(&mut self, agent: &AgentId, call: CallId, question: Question) -> Vec<Move> {
        let Question { id, wants, answerer } = question;
        let (prompt, given) = match wants {
            Wants::Model { prompt, given } => (prompt, given),
            Wants::Command(arguments) => {
                let directory = &self.setup.start.setup.exec_directory;
                let command = command(&call, &id, arguments, directory);
                return self.asked_to_run(agent, call, Asked { id, command, answerer });
            }
            Wants::Judged { command, plan } => {
                self.code.open.insert(id, answerer);
                return self.family.step(agent, Input::CommandJudged { command, plan });
            }
            Wants::Unknown(_) => return Vec::new(),
        };
        if self.family.has_asked(&id) {
            // The agent that answers it was begun before this process took the run over.
            self.code.open.insert(id, answerer);
            return Vec::new();
        }
        let most = self.setup.start.rlm.map_or(0, |rlm| rlm.calls);
        let asked = self.family.main().totals_of_all().model_calls.saturating_add(self.code.flights.count());
        let too_often = || format!("models were asked {most} times, which is all that this run may");
        let spent = self.family.main().spent().map(|ceiling| format!("this run has reached {ceiling}"));
        if let Some(why) = spent.or_else(|| (asked >= most).then(too_often)) {
            self.spawn_answer(agent, call, answerer, Err(why));
            return Vec::new();
        }
        let about = given.as_ref().map_or_else(|| About::of(""), |given| given.about.clone());
        let text = rlm::question(&prompt, &about);
        match self.family.ask(agent, &call, &id, &text, &self.setup.start) {
            Some((child, moves)) => {
                let input = given.map_or_else(|| CodeInput::Text(prompt.into()), |given| given.input);
                let name = self.interpreter_name(&child);
                self.code.interpreters.insert(child, Interpreter::new(name, input, false));
                self.code.open.insert(id, answerer);
                moves
            }
            None => {
                let model = Arc::clone(&self.setup.model);
                let to = self.inputs.of(agent);
                let flight = self.code.flights.begin();
                self.keep(agent, call.clone(), async move {
                    let answer =
                        ask_once(&*model, Asks { call, question: id, prompt, given }, flight, &to).await;
                    answerer.give(answer).await;
                });
                Vec::new()
            }
        }
    }

    pub(super) fn is_command(&self, agent: &AgentId, call: &CallId) -> bool {
        self.family.get(agent).is_some_and(|run| run.command(call) != Command::Unknown)
    }

    /// Has a command of an agent's code judged that is new here.
    fn asked_to_run(&mut self, agent: &AgentId, call: CallId, asked: Asked) -> Vec<Move> {
        let Asked { id, command, answerer } = asked;
        match self.family.get(agent).map(|run| run.command(&command.id)) {
            Some(Command::Unknown) => {}
            Some(Command::Open) => {
                self.code.open.insert(id.clone(), answerer);
                if let Some(allowed) = self.code.allowed.remove(&id) {
                    self.run_command(agent, allowed);
                }
                return Vec::new();
            }
            Some(Command::Ended) | None => {
                self.spawn_answer(agent, call, answerer, Err(RESULT_LOST.to_owned()));
                return Vec::new();
            }
        }
        let (tools, context, to) =
            (self.setup.tools.clone(), self.setup.context.clone(), self.inputs.of(agent));
        let judging = judge(tools, context, call.clone(), Asked { id, command, answerer }, to);
        self.keep(agent, call, judging.in_current_span());
        Vec::new()
    }

    /// Runs a command that may run, once its code waits for it here.
    pub(super) fn run_command(&mut self, agent: &AgentId, allowed: Allowed) {
        let Some((_, question)) = allowed.call.id.command() else { return };
        let Some(answerer) = self.code.open.remove(&question) else {
            self.code.allowed.insert(question, allowed);
            return;
        };
        let Allowed { call, permission, before } = allowed;
        let (id, tools) = (call.id.clone(), self.setup.tools.clone());
        let running = tools.run(call, permission, before, &self.setup.context);
        let using = using::follow_command(tools, running, id.clone(), answerer, self.inputs.of(agent));
        let using = AbortOnDropHandle::new(tokio::spawn(using.in_current_span()));
        self.work_of(agent).using.insert(id, using);
    }

    /// Tells code what became of a question.
    pub(super) fn answer(
        &mut self,
        agent: &AgentId,
        call: CallId,
        question: &QuestionId,
        answer: Result<String, String>,
    ) {
        if let Some(answerer) = self.code.open.remove(question) {
            let answer = answer.map(|text| serde_json::Value::from(text).to_string());
            self.spawn_answer(agent, call, answerer, answer);
        }
    }

    fn spawn_answer(
        &mut self,
        agent: &AgentId,
        call: CallId,
        answerer: Answerer,
        answer: Result<String, String>,
    ) {
        self.keep(agent, call, answerer.give(answer));
    }

    /// Keeps a task for as long as the code runs that wants it.
    fn keep(&mut self, agent: &AgentId, call: CallId, task: impl Future<Output = ()> + Send + 'static) {
        let task = AbortOnDropHandle::new(tokio::spawn(task));
        let tasks = self.work_of(agent).answering.entry(call).or_default();
        tasks.retain(|task| !task.is_finished());
        tasks.push(task);
    }
}

/// Has a command judged, and the machine told.
async fn judge(tools: Tools, context: Context, call: CallId, asked: Asked, to: To) {
    let Asked { id, command, answerer } = asked;
    let plan = tools.plan_command(&command, &context).await;
    let wants = Wants::Judged { command, plan };
    // A run that has ended wants no input.
    let _ = to.ask(call, Question { id, wants, answerer }).await;
}

/// A question for one call of a model.
struct Asks {
    call: CallId,
    question: QuestionId,
    prompt: String,
    given: Option<Given>,
}

/// One call of a model, in JSON.
async fn ask_once(model: &dyn Model, asks: Asks, flight: InFlight, to: &To) -> Result<String, String> {
    let Asks { call, question, prompt, given } = asks;
    let (text, context) = match given {
        None => (prompt.clone(), Vec::new()),
        Some(Given { text: Some(text), .. }) => {
            let digest = BlobId::of(&text).0.to_vec();
            (format!("{prompt}\n\n{}", String::from_utf8_lossy(&text)), digest)
        }
        Some(Given { about, .. }) => {
            return Err(format!(
                "a context of {} characters is too long for one call: ask about pieces of it",
                about.characters
            ));
        }
    };
    let request =
        model::Request { messages: vec![Message::text(Role::User, text)], ..model::Request::default() };
    let reply = reply(model, request).await.map_err(|error| error.to_string())?;
    let answer = reply.message.joined_text();
    let json = serde_json::Value::from(answer.as_str()).to_string();
    let answered = QuestionAnswered { call, question, prompt, context, answer };
    // A run that has ended wants no input.
    let _ = to.answered(answered, reply.usage, flight).await;
    Ok(json)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_that_fails_is_no_longer_in_flight() {
        let flights = Flights::default();
        let (failed, goes_on) = (flights.begin(), flights.begin());
        drop(failed);
        assert_eq!(flights.count(), 1);
        drop(goes_on);
        assert_eq!(flights.count(), 0);
    }
}
