//! Questions of code: answered by one call of the model, or by an agent of its own.

use std::{collections::HashMap, sync::Arc};

use domain::{AgentId, CallId, Input, Message, Move, QuestionId, Role};
use futures_util::StreamExt as _;
use model::{Delta, Model};
use tokio_util::task::AbortOnDropHandle;

use super::{Driver, inputs::To};
use crate::{
    prompt::rlm::{self, About},
    tools::{Answerer, CodeInput, Given, Interpreter, Question, Wants},
};

/// What is known of the code of a run's agents.
#[derive(Default)]
pub(super) struct Code {
    pub(super) interpreters: HashMap<AgentId, Interpreter>,
    /// Questions that agents work on.
    open: HashMap<QuestionId, Answerer>,
    /// Calls of the model that are not in the run's totals yet.
    pub(super) in_flight: u32,
}

impl Driver {
    /// The interpreter of an agent.
    pub(super) fn interpreter(&mut self, agent: &AgentId) -> Interpreter {
        let name = format!("{}/{agent}", self.setup.context.run);
        let unknown = || Interpreter::new(name, CodeInput::Gone, true);
        self.code.interpreters.entry(agent.clone()).or_insert_with(unknown).clone()
    }

    /// Has a question of an agent's code answered.
    pub(super) fn asked(&mut self, agent: &AgentId, call: CallId, question: Question) -> Vec<Move> {
        let Question { id, wants, answerer } = question;
        let Wants::Model { prompt, given } = wants else { return Vec::new() };
        if self.family.has_asked(&id) {
            // The agent that answers it was begun before this process took the run over.
            self.code.open.insert(id, answerer);
            return Vec::new();
        }
        let most = self.setup.start.rlm.map_or(0, |rlm| rlm.calls);
        let asked = self.family.main().totals_of_all().model_calls.saturating_add(self.code.in_flight);
        if asked >= most {
            let why = format!("models were asked {most} times, which is all that this run may");
            self.spawn_answer(agent, call, answerer, Err(why));
            return Vec::new();
        }
        let about = given.as_ref().map_or_else(|| About::of(""), |given| given.about.clone());
        let text = rlm::question(&prompt, &about);
        match self.family.ask(agent, &call, &id, &text, &self.setup.start) {
            Some((child, moves)) => {
                let input = given.map_or_else(|| CodeInput::Text(prompt.into()), |given| given.input);
                let name = format!("{}/{child}", self.setup.context.run);
                self.code.interpreters.insert(child, Interpreter::new(name, input, false));
                self.code.open.insert(id, answerer);
                moves
            }
            None => {
                let model = Arc::clone(&self.setup.model);
                let to = self.inputs.of(agent);
                self.code.in_flight += 1;
                self.keep(agent, call, async move {
                    let answer = ask_once(&*model, &prompt, given, &to).await;
                    answerer.give(answer).await;
                });
                Vec::new()
            }
        }
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

/// One call of a model, in JSON.
async fn ask_once(model: &dyn Model, prompt: &str, given: Option<Given>, to: &To) -> Result<String, String> {
    let text = match given {
        None => prompt.to_owned(),
        Some(Given { text: Some(text), .. }) => format!("{prompt}\n\n{}", String::from_utf8_lossy(&text)),
        Some(Given { about, .. }) => {
            return Err(format!(
                "a context of {} characters is too long for one call: ask about pieces of it",
                about.characters
            ));
        }
    };
    let request =
        model::Request { messages: vec![Message::text(Role::User, text)], ..model::Request::default() };
    let mut deltas = model.call(request).await.map_err(|error| error.to_string())?;
    while let Some(delta) = deltas.next().await {
        match delta.map_err(|error| error.to_string())? {
            Delta::Text(_) | Delta::Thinking(_) => {}
            Delta::Done(reply) => {
                // A run that has ended wants no input.
                let _ = to.send(Input::Asked(reply.usage)).await;
                return Ok(serde_json::Value::from(reply.message.joined_text()).to_string());
            }
        }
    }
    Err("the model's reply broke off".to_owned())
}
