//! The tool calls of one message of the model.

use std::collections::BTreeMap;

use domain::{
    Approval, CallId, Event, OutputStream, Timestamp, ToolCall, ToolEffect, ToolResult, ToolStatus,
    WrittenFile,
};
use sha2::{Digest as _, Sha256};
use wire::session::{
    ActCompleted, ActStarted, CapabilityUsage, FileWritten, ToolApprovalRequested, ToolCallRepaired,
    ToolCallRequested, ToolCallSummary, ToolCompleted, ToolOutputDelta, ToolProgress, ToolStarted,
    TranscriptRepaired, capability_usage, event::Data,
};

use super::{Draft, Projection, line, millis};
use crate::sessions::{ids, words};

/// Tool calls that go on.
pub(super) struct Act {
    exec: String,
    span: String,
    began: Timestamp,
    calls: Vec<Call>,
}

struct Call {
    call: ToolCall,
    state: State,
    began: Timestamp,
    took: u64,
    well: bool,
    toolset: Option<String>,
    description: String,
    /// Another process began it, and was lost.
    lost: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// It is judged, or runs.
    Open,
    /// The client runs it.
    WithClient,
    /// A person decides.
    WithPerson,
    Ended,
}

/// What became of a call.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::sessions) struct Settlement {
    /// `success`, `error`, `timeout` or `cancelled`.
    pub status: &'static str,
    /// What it returned.
    pub text: String,
    pub error: Option<String>,
    pub ran: bool,
}

impl Settlement {
    fn of(result: &ToolResult, cancelling: bool) -> Self {
        let status = match result.status {
            ToolStatus::Success | ToolStatus::NoData => "success",
            ToolStatus::Error if cancelling && result.elapsed.is_none() => "cancelled",
            ToolStatus::Error => "error",
        };
        Self { status, text: result.data.clone(), error: result.error.clone(), ran: result.elapsed.is_some() }
    }

    /// A call that ends without a result.
    pub(in crate::sessions) fn without(status: &'static str, why: &str) -> Self {
        Self { status, text: String::new(), error: Some(why.to_owned()), ran: false }
    }
}

impl Act {
    fn find(&mut self, id: &CallId) -> Option<&mut Call> {
        self.calls.iter_mut().find(|call| call.call.id == *id && call.state != State::Ended)
    }

    /// What runs was begun by a process that is lost.
    pub(super) fn lose(&mut self) {
        self.calls.iter_mut().filter(|call| call.state == State::Open).for_each(|call| call.lost = true);
    }

    pub(super) fn wants_client(&mut self, id: &CallId) {
        if let Some(call) = self.find(id) {
            call.state = State::WithClient;
        }
    }

    pub(super) fn goes_on(&mut self, id: &CallId) {
        if let Some(call) = self.find(id) {
            call.state = State::Open;
        }
    }

    fn span_of(&self, call: &CallId) -> String {
        ids::named("span_", &format!("{}/{call}", self.span))
    }
}

impl Projection {
    pub(super) fn act(&mut self, event: &Event, calls: &[ToolCall], out: &mut Vec<Draft>) {
        if calls.is_empty() {
            return;
        }
        let seed = format!("{}/{}/act", event.run, event.position);
        let open = |call: &ToolCall| Call {
            call: call.clone(),
            state: State::Open,
            began: event.time,
            took: 0,
            well: false,
            toolset: None,
            description: String::new(),
            lost: false,
        };
        let act = Act {
            exec: ids::made_of("exec_", event.time, &seed),
            span: ids::named("span_", &seed),
            began: event.time,
            calls: calls.iter().map(open).collect(),
        };
        let summaries = calls.iter().map(|call| ToolCallSummary {
            id: call.id.as_str().to_owned(),
            name: call.name.clone(),
            ..ToolCallSummary::default()
        });
        let started =
            ActStarted { tool_calls: summaries.collect(), headline: Some(headline("Running", calls)) };
        out.push((self.within(&act.exec, &act.span, &self.ids.turn), Data::ActStarted(started)));
        self.act = Some(act);
    }

    /// The calls that wait for the client, and those that wait for a person.
    pub(in crate::sessions) fn pending(&self) -> (Vec<CallId>, Vec<CallId>) {
        let of = |state| {
            let calls = self.act.iter().flat_map(|act| &act.calls).filter(move |call| call.state == state);
            calls.map(|call| call.call.id.clone()).collect()
        };
        (of(State::WithClient), of(State::WithPerson))
    }

    pub(super) fn tool_started(
        &mut self,
        now: Timestamp,
        call: &ToolCall,
        description: &str,
        toolset: Option<&str>,
        out: &mut Vec<Draft>,
    ) {
        let clients = self.client_tools.contains(&call.name);
        let Some(act) = &mut self.act else { return };
        let Some(open) = act.find(&call.id) else { return };
        open.began = now;
        open.toolset = toolset.map(str::to_owned);
        open.description = line(call, description);
        if clients {
            return;
        }
        let started = ToolStarted {
            tool_call: Some(words::call(call)),
            tool_call_fingerprint: Some(fingerprint(&[&call.name, &call.arguments])),
            display_name: None,
            narration: Some(open.description.clone()),
        };
        let (exec, span, parent) = (act.exec.clone(), act.span_of(&call.id), act.span.clone());
        let context = self.within(&exec, &span, &parent);
        if is_malformed(call) {
            let repaired = ToolCallRepaired {
                turn_id: self.ids.turn.clone(),
                tool_call_id: call.id.as_str().to_owned(),
                tool_name: call.name.clone(),
                outcome: "re-prompt".to_owned(),
            };
            out.push((context.clone(), Data::ToolCallRepaired(repaired)));
        }
        out.push((context, Data::ToolStarted(started)));
    }

    /// A call has come further.
    pub(super) fn progressed(&mut self, id: &CallId, message: &str, out: &mut Vec<Draft>) {
        let Some(act) = &mut self.act else { return };
        let Some(tool_name) = act.find(id).map(|open| open.call.name.clone()) else { return };
        let progress = ToolProgress {
            tool_call_id: id.as_str().to_owned(),
            tool_name,
            message: message.to_owned(),
            ..ToolProgress::default()
        };
        let (exec, span, parent) = (act.exec.clone(), act.span_of(id), act.span.clone());
        out.push((self.within(&exec, &span, &parent), Data::ToolProgress(progress)));
    }

    pub(super) fn printed(&mut self, id: &CallId, stream: OutputStream, text: &str, out: &mut Vec<Draft>) {
        let Some(act) = &mut self.act else { return };
        let Some(tool_name) = act.find(id).map(|open| open.call.name.clone()) else { return };
        let stream = match stream {
            OutputStream::Stdout => "stdout",
            OutputStream::Stderr => "stderr",
        };
        let delta = ToolOutputDelta {
            tool_call_id: id.as_str().to_owned(),
            tool_name,
            delta: text.to_owned(),
            stream: stream.to_owned(),
        };
        let (exec, span, parent) = (act.exec.clone(), act.span_of(id), act.span.clone());
        out.push((self.within(&exec, &span, &parent), Data::ToolOutputDelta(delta)));
    }

    pub(super) fn asks_person(&mut self, id: &CallId, approval: &Approval, out: &mut Vec<Draft>) {
        let run_id = self.run.clone();
        let Some(act) = &mut self.act else { return };
        let Some(open) = act.find(id) else { return };
        open.state = State::WithPerson;
        let effect = match approval.effect {
            ToolEffect::Read => "read",
            ToolEffect::SensitiveRead => "sensitive_read",
            ToolEffect::Mutation => "mutation",
        };
        let present = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        let requested = ToolApprovalRequested {
            tool_call: Some(words::call(&open.call)),
            reason: approval.reason.clone(),
            command: present(&approval.command),
            target: present(&approval.target),
            effect: effect.to_owned(),
            prefixes: approval.prefixes.clone(),
            run_id,
            policy_version: approval.policy.clone(),
        };
        let (exec, span, parent) = (act.exec.clone(), act.span_of(id), act.span.clone());
        out.push((self.within(&exec, &span, &parent), Data::ToolApprovalRequested(requested)));
    }

    /// The client is asked to run its tools.
    pub(super) fn wants_client(&mut self, out: &mut Vec<Draft>) {
        let Some(act) = &self.act else { return };
        let with_client = act.calls.iter().filter(|call| call.state == State::WithClient);
        let calls: Vec<_> = with_client.map(|call| call.call.clone()).collect();
        if calls.is_empty() {
            return;
        }
        let requested = ToolCallRequested {
            tool_calls: calls.iter().map(words::call).collect(),
            tool_summaries: Vec::new(),
            headline: Some(headline("Waiting for", &calls)),
        };
        out.push((self.within(&act.exec, &act.span, &self.ids.turn), Data::ToolCallRequested(requested)));
    }

    pub(super) fn tool_finished(
        &mut self,
        now: Timestamp,
        id: &CallId,
        result: &ToolResult,
        out: &mut Vec<Draft>,
    ) {
        if let Some(act) = &self.act {
            let context = self.within(&act.exec, &act.span_of(id), &act.span);
            out.extend(result.written.iter().map(|file| (context.clone(), Data::FileWritten(written(file)))));
        }
        out.extend(self.settle(now, id, &Settlement::of(result, self.cancelled.is_some())));
    }

    /// A call has ended.
    pub(in crate::sessions) fn settle(
        &mut self,
        now: Timestamp,
        id: &CallId,
        settled: &Settlement,
    ) -> Vec<Draft> {
        let mut out = Vec::new();
        let Some(act) = &mut self.act else { return out };
        let (exec, span, parent) = (act.exec.clone(), act.span_of(id), act.span.clone());
        let Some(open) = act.find(id) else { return out };
        open.state = State::Ended;
        open.took = millis(open.began, now);
        open.well = settled.status == "success";
        let (well, lost) = (open.well, open.lost);
        let completed = completed(open, settled);
        let all = act.calls.iter().all(|call| call.state == State::Ended);
        self.tally.tool_calls += 1;
        self.tally.issues += u32::from(!well);
        let context = self.within(&exec, &span, &parent);
        if lost {
            let repaired = TranscriptRepaired {
                tool_call_id: completed.tool_call_id.clone(),
                action: if settled.ran { "replay" } else { "synthesize" }.to_owned(),
                tool_name: Some(completed.tool_name.clone()),
            };
            out.push((context.clone(), Data::TranscriptRepaired(repaired)));
        }
        out.push((context, Data::ToolCompleted(completed)));
        if all {
            self.acted(now, true, &mut out);
        }
        out
    }

    /// Calls that did not end will not.
    pub(super) fn give_up_calls(&mut self, now: Timestamp, out: &mut Vec<Draft>) {
        if self.act.is_some() {
            self.acted(now, false, out);
        }
    }

    fn acted(&mut self, now: Timestamp, completed: bool, out: &mut Vec<Draft>) {
        let Some(act) = self.act.take() else { return };
        let well = act.calls.iter().filter(|call| call.well).count();
        let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        let calls: Vec<_> = act.calls.iter().map(|call| call.call.clone()).collect();
        let ended = ActCompleted {
            completed,
            success_count: count(well),
            error_count: count(calls.len() - well),
            duration_ms: Some(millis(act.began, now)),
            headline: Some(headline("Ran", &calls)),
        };
        out.push((self.within(&act.exec, &act.span, &self.ids.turn), Data::ActCompleted(ended)));
        let records = used(&act.calls);
        if !records.is_empty() {
            let used = CapabilityUsage { records };
            out.push((self.within(&act.exec, "", ""), Data::CapabilityUsage(used)));
        }
    }
}

/// Whether the model wrote arguments that cannot be read: it hears so, and calls again.
fn is_malformed(call: &ToolCall) -> bool {
    call.arguments.starts_with(&format!("{{\"{}\":", model::MALFORMED_ARGUMENTS))
}

fn completed(call: &Call, settled: &Settlement) -> ToolCompleted {
    let ToolCall { id, name, arguments } = &call.call;
    ToolCompleted {
        tool_call_id: id.as_str().to_owned(),
        tool_name: name.clone(),
        success: call.well,
        status: settled.status.to_owned(),
        result: if settled.text.is_empty() { Vec::new() } else { vec![words::text(&settled.text)] },
        error: settled.error.clone(),
        duration_ms: Some(call.took),
        display_name: None,
        narration: Some(call.description.clone()).filter(|text| !text.is_empty()),
        tool_call_fingerprint: Some(fingerprint(&[name, arguments])),
        tool_result_fingerprint: Some(fingerprint(&[&settled.text])),
        capability_id: call.toolset.clone(),
        capability_name: call.toolset.clone(),
        severity: (!call.well).then(|| "issue".to_owned()),
    }
}

/// The sets of tools that were used.
fn used(calls: &[Call]) -> Vec<capability_usage::Record> {
    let mut records: BTreeMap<(&str, &str), (u64, u64)> = BTreeMap::new();
    for call in calls {
        if let Some(toolset) = &call.toolset {
            let (times, took) = records.entry((toolset, &call.call.name)).or_default();
            *times += 1;
            *took += call.took;
        }
    }
    let records = records.into_iter().map(|((toolset, tool), (times, took))| capability_usage::Record {
        capability_id: toolset.to_owned(),
        usage_kind: "invoked".to_owned(),
        capability_name: Some(toolset.to_owned()),
        tool_name: Some(tool.to_owned()),
        usage_count: Some(times),
        duration_ms: Some(took),
    });
    records.collect()
}

fn written(file: &WrittenFile) -> FileWritten {
    FileWritten {
        path: file.path.clone(),
        operation: if file.created { "create" } else { "update" }.to_owned(),
        size_bytes: file.bytes,
        created: file.created,
    }
}

fn headline(verb: &str, calls: &[ToolCall]) -> String {
    match calls {
        [call] => format!("{verb} {}", call.name),
        calls => format!("{verb} {} tools", calls.len()),
    }
}

fn fingerprint(texts: &[&str]) -> String {
    let digest = Sha256::digest(texts.join("\n"));
    let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{hex}")
}
