//! The agents of one run: the one that answers, and those that it starts for parts of the work.
//!
//! A subagent is a machine of its own, nested in the log of its run. It ends before the call that started it does,
//! and never outlives its parent.

use std::collections::BTreeMap;

use crate::{
    AgentId, CallId, Effect, Event, EventKind, Input, Limits, Message, Role, Run, RunSetup, RunStarted, Step,
    Subagents, ToolResult,
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
        let (Some(parent), Some(call)) = (parent, &started.call) else {
            if let Some(main) = self.members.get_mut(&AgentId::main()) {
                main.subagents = started.subagents;
            }
            return;
        };
        self.started = self.started.saturating_add(1);
        let run = self.main().subagent(agent.clone(), started.setup.limits);
        let parent = Some(Parent { agent: parent.clone(), call: call.clone() });
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
        let child = AgentId::sub(self.started.saturating_add(1));
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
        self.join(&child, Some(agent), &started);
        let Some(member) = self.members.get_mut(&child) else { return Vec::new() };
        let started = EventKind::RunStarted(started);
        member.run.apply(&started);
        let mut step = Step { events: vec![started], effects: Vec::new() };
        step.then(member.run.step(Input::Begin));
        let mut moves = Vec::new();
        self.follow(&child, step, &mut moves);
        moves
    }

    /// Ends whom a step leaves behind, and tells the parent of an agent that ends.
    fn follow(&mut self, agent: &AgentId, step: Step, moves: &mut Vec<Move>) {
        if step == Step::default() {
            return;
        }
        let ends = step.effects.contains(&Effect::Finish);
        let left = |parent: &Parent| {
            parent.agent == *agent && (ends || step.effects.contains(&Effect::StopTool(parent.call.clone())))
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
        if let (Some(Parent { agent: parent, call }), Some(result)) = (parent, result) {
            self.members.remove(agent);
            moves.extend(self.step(&parent, Input::ToolFinished { call, result }));
        }
    }
}

/// What the parent of an agent hears of its end.
fn result(end: &EventKind) -> Option<ToolResult> {
    match end {
        EventKind::RunFinished { answer, .. } => Some(ToolResult::success(answer)),
        EventKind::RunFailed { message, .. } => {
            Some(ToolResult::error(format!("The agent failed: {message}")))
        }
        EventKind::RunCancelled { reason } => {
            Some(ToolResult::error(format!("The agent was stopped: {reason}")))
        }
        EventKind::RunSuspended => Some(ToolResult::error(text::CANNOT_ASK)),
        _ => None,
    }
}
