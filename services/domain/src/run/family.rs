//! The agents of one run: the one that answers, and those that it starts for parts of the work.
//!
//! A subagent is a machine of its own, nested in the log of its run. It ends before the call that started it does,
//! and never outlives its parent.

use std::collections::BTreeMap;

use crate::{
    AgentId, CallId, Effect, Event, EventKind, Input, Limits, Message, QuestionId, Role, Run, RunSetup,
    RunStarted, Step, Subagents, ToolResult,
};

use super::text;

#[cfg(test)]
mod tests;

/// The agents of a run that go on.
#[derive(Clone, Debug, PartialEq)]
pub struct Family {
    members: BTreeMap<AgentId, Member>,
    /// Subagents that were started so far.
    started: u32,
}

#[derive(Clone, Debug, PartialEq)]
struct Member {
    run: Run,
    parent: Option<Parent>,
    /// What it may start in turn.
    subagents: Subagents,
}

/// Who started a subagent, and by which call.
#[derive(Clone, Debug, PartialEq)]
struct Parent {
    agent: AgentId,
    call: CallId,
    /// Where the call is code: its question, to which the subagent is the answer.
    question: Option<QuestionId>,
}

/// What an input led to, for one of the agents.
#[derive(Clone, Debug, PartialEq)]
pub struct Move {
    /// The agent.
    pub agent: AgentId,
    /// The one that started it.
    pub parent: Option<AgentId>,
    /// What it does.
    pub step: Step,
}

impl Family {
    /// An agent that has started no other yet.
    pub fn new(main: Run, subagents: Subagents) -> Self {
        let main = Member { run: main, parent: None, subagents };
        Self { members: BTreeMap::from([(AgentId::main(), main)]), started: 0 }
    }

    /// The agents that a log tells of.
    pub fn fold<'a>(limits: Limits, events: impl IntoIterator<Item = &'a Event>) -> Self {
        let mut family = Self::new(Run::new(limits), Subagents::default());
        for event in events {
            if let EventKind::RunStarted(started) = &event.kind {
                family.join(&event.agent, event.parent.as_ref(), started);
            }
            family.members.values_mut().for_each(|member| member.run.see(&event.agent, &event.kind));
            if event.kind.is_terminal() && event.agent != AgentId::main() {
                family.members.remove(&event.agent);
            }
        }
        family
    }

    fn join(&mut self, agent: &AgentId, parent: Option<&AgentId>, started: &RunStarted) {
        let (Some(agent_above), Some(call)) = (parent, &started.call) else {
            if let Some(main) = self.members.get_mut(&AgentId::main()) {
                main.subagents = started.subagents;
            }
            return;
        };
        self.started = self.started.saturating_add(1);
        let run = self.main().subagent(agent.clone(), started.setup.limits);
        let question = started.question.clone();
        let parent = Some(Parent { agent: agent_above.clone(), call: call.clone(), question });
        let member = Member { run, parent, subagents: started.subagents };
        self.members.insert(agent.clone(), member);
    }

    /// The agent that answers.
    pub fn main(&self) -> &Run {
        // It is put in at the start and never taken out.
        &self.members[&AgentId::main()].run
    }

    /// An agent, while it goes on.
    pub fn get(&self, agent: &AgentId) -> Option<&Run> {
        self.members.get(agent).map(|member| &member.run)
    }

    /// Whether a call has its subagent already.
    pub fn has_started(&self, call: &CallId) -> bool {
        self.members.values().any(|member| member.parent.as_ref().is_some_and(|parent| parent.call == *call))
    }

    /// Whether a question of code has its agent already.
    pub fn has_asked(&self, question: &QuestionId) -> bool {
        let asks = |parent: &Parent| parent.question.as_ref() == Some(question);
        self.members.values().any(|member| member.parent.as_ref().is_some_and(asks))
    }

    /// Whether an agent may start others.
    pub fn may_start(&self, agent: &AgentId) -> bool {
        self.members.get(agent).is_some_and(|member| member.subagents.depth > 0)
            && self.members[&AgentId::main()].subagents.number > self.started
    }

    /// Tells one agent something.
    pub fn step(&mut self, agent: &AgentId, input: Input) -> Vec<Move> {
        let mut moves = Vec::new();
        if let Some(member) = self.members.get_mut(agent) {
            let step = member.run.step(input);
            self.follow(agent, step, &mut moves);
        }
        moves
    }

    /// Tells all of them.
    pub fn step_all(&mut self, input: &Input) -> Vec<Move> {
        let agents: Vec<_> = self.members.keys().cloned().collect();
        agents.iter().flat_map(|agent| self.step(agent, input.clone())).collect()
    }

    /// Tells what somebody outside says: to the agent that answers what is meant for the run as a whole, and the rest
    /// to whom it concerns.
    pub fn told(&mut self, input: &Input) -> Vec<Move> {
        match input {
            Input::Cancelled { .. } | Input::Steered(_) => self.step(&AgentId::main(), input.clone()),
            _ => self.step_all(input),
        }
    }

    /// Starts a subagent for a call of an agent. `main` is how the run began.
    pub fn start(&mut self, agent: &AgentId, call: &CallId, task: &str, main: &RunStarted) -> Vec<Move> {
        let subagents = match self.members.get(agent) {
            Some(parent) if self.may_start(agent) => parent.subagents,
            Some(_) => {
                let result = ToolResult::error(text::NO_MORE_AGENTS);
                return self.step(agent, Input::ToolFinished { call: call.clone(), result });
            }
            None => return Vec::new(),
        };
        let subagents = Subagents { depth: subagents.depth.saturating_sub(1), ..subagents };
        let started = RunStarted {
            messages: vec![Message::text(Role::User, task)],
            structured: false,
            runbooks: Vec::new(),
            // A subagent cannot come back later: whoever it asks must be there.
            approvals: main.approvals && main.waits,
            subagents,
            call: Some(call.clone()),
            setup: Box::new(RunSetup { limits: main.setup.limits, ..RunSetup::default() }),
            ..main.clone()
        };
        self.add(agent, started).1
    }

    /// Starts an agent that answers a question of code. `main` is how the run began. `None` if there can be none.
    pub fn ask(
        &mut self,
        agent: &AgentId,
        call: &CallId,
        question: &QuestionId,
        prompt: &str,
        main: &RunStarted,
    ) -> Option<(AgentId, Vec<Move>)> {
        let rlm = self.get(agent)?.rlm?.below()?;
        let started = RunStarted {
            messages: vec![Message::text(Role::User, prompt)],
            structured: false,
            runbooks: Vec::new(),
            rlm: Some(rlm),
            call: Some(call.clone()),
            question: Some(question.clone()),
            setup: Box::new(RunSetup { limits: main.setup.limits, ..RunSetup::default() }),
            ..main.clone()
        };
        Some(self.add(agent, started))
    }

    fn add(&mut self, parent: &AgentId, started: RunStarted) -> (AgentId, Vec<Move>) {
        let child = AgentId::sub(self.started.saturating_add(1));
        self.join(&child, Some(parent), &started);
        let Some(member) = self.members.get_mut(&child) else { return (child, Vec::new()) };
        let started = EventKind::RunStarted(started);
        member.run.apply(&started);
        let mut step = Step { events: vec![started], effects: Vec::new() };
        step.then(member.run.step(Input::Begin));
        let mut moves = Vec::new();
        self.follow(&child, step, &mut moves);
        (child, moves)
    }

    /// Tells the code of an agent what became of its question.
    fn answer(&self, agent: AgentId, call: CallId, question: QuestionId, result: ToolResult) -> Option<Move> {
        let member = self.members.get(&agent)?;
        let effects = vec![Effect::AnswerCode { call, question, answer: heard(result) }];
        let parent = member.parent.as_ref().map(|parent| parent.agent.clone());
        Some(Move { agent, parent, step: Step { events: Vec::new(), effects } })
    }

    /// Ends whom a step leaves behind, and tells the parent of an agent that ends.
    fn follow(&mut self, agent: &AgentId, step: Step, moves: &mut Vec<Move>) {
        if step == Step::default() {
            return;
        }
        let ends = step.effects.contains(&Effect::Finish);
        let left = |parent: &Parent| {
            let stops = || step.effects.contains(&Effect::StopTool(parent.call.clone()));
            let answered = |event: &EventKind| matches!(event, EventKind::ReplOutput { call, .. } if *call == parent.call);
            parent.agent == *agent && (ends || stops() || step.events.iter().any(answered))
        };
        let is_left = |member: &Member| member.parent.as_ref().is_some_and(left);
        let left: Vec<_> = self
            .members
            .iter()
            .filter(|(_, member)| is_left(member))
            .map(|(agent, _)| agent.clone())
            .collect();
        for child in left {
            let input = Input::Cancelled { reason: text::LEFT_BEHIND.to_owned() };
            moves.extend(self.step(&child, input));
        }
        let parent = self.members.get(agent).and_then(|member| member.parent.clone());
        for event in &step.events {
            let others = self.members.iter_mut().filter(|(other, _)| *other != agent);
            others.for_each(|(_, member)| member.run.see(agent, event));
        }
        let result = step.events.last().and_then(result);
        let parent_agent = parent.as_ref().map(|parent| parent.agent.clone());
        moves.push(Move { agent: agent.clone(), parent: parent_agent, step });
        if let (Some(Parent { agent: parent, call, question }), Some(result)) = (parent, result) {
            self.members.remove(agent);
            match question {
                None => moves.extend(self.step(&parent, Input::ToolFinished { call, result })),
                Some(question) => moves.extend(self.answer(parent, call, question, result)),
            }
        }
    }
}

/// What the code of an agent hears of the end of another.
fn heard(result: ToolResult) -> Result<String, String> {
    match result.error {
        None => Ok(result.data),
        Some(error) => Err(error),
    }
}

/// What the parent of an agent hears of its end.
fn result(end: &EventKind) -> Option<ToolResult> {
    match end {
        EventKind::RunFinished { answer, .. } => Some(ToolResult::success(answer)),
        EventKind::RunFailed { code, message } => Some(ToolResult::error(text::agent_failed(*code, message))),
        EventKind::RunCancelled { reason } => {
            Some(ToolResult::error(format!("The agent was stopped: {reason}")))
        }
        EventKind::RunSuspended => Some(ToolResult::error(text::CANNOT_ASK)),
        _ => None,
    }
}
