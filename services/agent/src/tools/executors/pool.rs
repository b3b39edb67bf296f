//! Executors of one kind, and which of them takes the next call.

use std::{
    hash::{DefaultHasher, Hash as _, Hasher as _},
    sync::Arc,
};

use domain::{Labels, ToolProfile};
use tokio::sync::watch;
use tonic::{Code, Status};

use super::member::{Busy, Member, is_lost, is_unsent, unsent};

/// Executors behind one name, or those of them that have certain labels.
#[derive(Debug)]
pub(crate) struct Pool {
    all: Arc<watch::Sender<Arc<[Arc<Member>]>>>,
    labels: Vec<(String, String)>,
}

/// Which executors may take something, and how it may be sent.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Wish<'a> {
    /// Not these.
    pub not: &'a [String],
    /// The tool that is called: who has it is asked first.
    pub tool: Option<(ToolProfile, &'a str)>,
    /// What has the same key goes to the same executor while that works: it has something that the others have not.
    pub near: Option<&'a str>,
    /// It may be sent again only where it certainly did nothing.
    pub once: bool,
}

/// Why there is no executor.
#[derive(Debug, thiserror::Error)]
#[error("there is no executor")]
pub(crate) struct Empty;

impl Default for Pool {
    fn default() -> Self {
        Self { all: Arc::new(watch::Sender::new(Arc::default())), labels: Vec::new() }
    }
}

impl Pool {
    /// Those of them that have these labels too, now and later.
    pub(crate) fn labelled(&self, labels: &Labels) -> Self {
        let more = labels.iter().map(|(key, value)| (key.clone(), value.clone()));
        Self { all: Arc::clone(&self.all), labels: self.labels.iter().cloned().chain(more).collect() }
    }

    /// The labels that all of them have.
    pub(crate) fn labels(&self) -> &[(String, String)] {
        &self.labels
    }

    /// Those of which it is known that they belong here.
    pub(crate) fn members(&self) -> Arc<[Arc<Member>]> {
        let all = self.candidates();
        match self.labels.is_empty() {
            true => all,
            false => all.iter().filter(|member| member.is_labelled(&self.labels)).cloned().collect(),
        }
    }

    /// Those that may belong here, once it is known what they have.
    pub(crate) fn candidates(&self) -> Arc<[Arc<Member>]> {
        Arc::clone(&self.all.borrow())
    }

    /// Has these from now on.
    pub(crate) fn set(&self, members: Arc<[Arc<Member>]>) {
        self.all.send_replace(members);
    }

    /// Adds one, in the place of one with its name.
    pub(crate) fn add(&self, new: &Arc<Member>) {
        self.all.send_modify(|members| {
            let others = members.iter().filter(|member| member.name() != new.name()).cloned();
            *members = others.chain([Arc::clone(new)]).collect();
        });
    }

    /// Removes this one, unless another has taken its place.
    pub(crate) fn remove(&self, gone: &Arc<Member>) {
        self.all.send_modify(|members| {
            *members = members.iter().filter(|member| !Arc::ptr_eq(member, gone)).cloned().collect();
        });
    }

    /// Whether its executors dial in, so that one that is not there may come.
    pub(crate) fn expects(&self) -> bool {
        self.members().iter().all(|member| member.dials_in())
    }

    /// Waits for the one that takes the place of another.
    pub(crate) async fn successor(&self, of: &Arc<Member>) -> Option<Arc<Member>> {
        let successor = |members: &[Arc<Member>]| {
            let mut others = members.iter().filter(|member| !Arc::ptr_eq(member, of));
            others.find(|member| member.name() == of.name()).cloned()
        };
        let mut members = self.all.subscribe();
        let found = members.wait_for(|members| successor(members).is_some()).await.ok()?;
        successor(&found)
    }

    /// Waits until there is one.
    pub(crate) async fn filled(&self) {
        // The sender lives as long as this.
        let _ = self.all.subscribe().wait_for(|members| !members.is_empty()).await;
    }

    /// The one of two at random with less to do, unless another is wished for; among those that have the tool and
    /// work, or else have it, or else among all.
    fn pick(&self, wish: Wish<'_>) -> Result<Busy, Empty> {
        let members = self.members();
        let fresh: Vec<_> =
            members.iter().filter(|member| !wish.not.iter().any(|name| name == member.name())).collect();
        let fresh = able(fresh, wish.tool);
        let working: Vec<_> = fresh.iter().copied().filter(|member| member.works()).collect();
        let among = if working.is_empty() { fresh } else { working };
        if let Some(key) = wish.near {
            return among.iter().max_by_key(|member| weight(key, member)).map(|own| own.begin()).ok_or(Empty);
        }
        let Some(first) = among.get(fastrand::usize(..among.len().max(1))) else { return Err(Empty) };
        let others: Vec<_> = among.iter().filter(|member| !Arc::ptr_eq(member, first)).collect();
        let second = others.get(fastrand::usize(..others.len().max(1)));
        let less = second.filter(|second| second.calls() < first.calls());
        Ok(less.map_or(*first, |second| **second).begin())
    }

    /// Asks executors until one answers: the next one where one is lost, full or without the tool. All of them having failed, the last
    /// failure.
    pub(crate) async fn ask<T, F>(
        &self,
        wish: Wish<'_>,
        mut asks: impl FnMut(Arc<Member>) -> F,
    ) -> Result<(T, Busy), Status>
    where
        F: Future<Output = Result<T, Status>>,
    {
        let mut tried = wish.not.to_vec();
        let mut last = unsent(&Empty.to_string());
        while let Ok(member) = self.pick(Wish { not: &tried, ..wish }) {
            match asks(Arc::clone(&member)).await {
                Ok(answer) => {
                    member.answered();
                    return Ok((answer, member));
                }
                Err(status) => {
                    let lost = is_lost(&status);
                    if lost {
                        member.failed(&status);
                    }
                    // It is full, or has not got the tool any more.
                    let passes = matches!(status.code(), Code::ResourceExhausted | Code::NotFound);
                    if !passes && !is_unsent(&status) && (wish.once || !lost) {
                        return Err(status);
                    }
                    last = status;
                }
            }
            tried.push(member.name().to_owned());
        }
        Err(last)
    }
}

/// Those that have the tool; of whom it is not known, where nobody has it; all, where nobody may.
fn able<'a>(members: Vec<&'a Arc<Member>>, tool: Option<(ToolProfile, &str)>) -> Vec<&'a Arc<Member>> {
    let Some((profile, tool)) = tool else { return members };
    let that = |has: Option<bool>| {
        members.iter().copied().filter(|member| member.has(profile, tool) == has).collect::<Vec<_>>()
    };
    [that(Some(true)), that(None)].into_iter().find(|some| !some.is_empty()).unwrap_or(members)
}

/// Each key has an order of executors of its own; one that goes or comes moves only what is its own.
fn weight(key: &str, member: &Member) -> u64 {
    let mut hasher = DefaultHasher::new();
    (key, member.name()).hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use wire::{
        executor::{ListToolsResponse, Tool, Toolset},
        transport,
    };

    use super::*;

    fn member(name: &str) -> Arc<Member> {
        // Nobody is there.
        let channel = tonic::transport::Endpoint::from_static("http://127.0.0.1:1").connect_lazy();
        Member::new(name.to_owned(), transport(channel))
    }

    fn pool(members: &[Arc<Member>]) -> Pool {
        let pool = Pool::default();
        pool.set(members.into());
        pool
    }

    #[tokio::test]
    async fn the_one_with_less_to_do_takes_the_call() {
        let (one, other) = (member("one"), member("other"));
        let pool = pool(&[Arc::clone(&one), Arc::clone(&other)]);
        let mut calls = Vec::new();
        for _ in 0..10 {
            calls.push(pool.pick(Wish::default()).unwrap());
        }
        assert_eq!((one.calls(), other.calls()), (5, 5), "the two are always compared");
        calls.clear();
        assert_eq!((one.calls(), other.calls()), (0, 0));
    }

    #[tokio::test]
    async fn one_that_failed_is_left_alone_until_it_answers() {
        let (one, other) = (member("one"), member("other"));
        let pool = pool(&[Arc::clone(&one), Arc::clone(&other)]);
        one.failed(&Status::unavailable("gone"));
        for _ in 0..20 {
            assert_eq!(pool.pick(Wish::default()).unwrap().name(), "other");
        }
        assert_eq!(
            pool.pick(Wish { not: &["other".to_owned()], ..Wish::default() }).unwrap().name(),
            "one",
            "better than none"
        );
        assert!(pool.pick(Wish { not: &["one".to_owned(), "other".to_owned()], ..Wish::default() }).is_err());
        one.answered();
        other.failed(&Status::unavailable("gone"));
        assert_eq!(pool.pick(Wish::default()).unwrap().name(), "one");
    }

    #[tokio::test]
    async fn the_next_one_is_asked_only_where_nothing_can_have_happened() {
        let names = |once: bool, status: fn() -> Status| async move {
            let pool = pool(&[member("one"), member("other")]);
            let mut asked = 0;
            let answer = pool
                .ask(Wish { once, ..Wish::default() }, |_| {
                    asked += 1;
                    std::future::ready(if asked == 1 { Err(status()) } else { Ok(()) })
                })
                .await;
            (answer.is_ok(), asked)
        };
        let unsent = || Status::from_error(Box::new(tonic::ConnectError("refused".into())));
        assert_eq!(names(true, unsent).await, (true, 2));
        assert_eq!(names(true, || Status::resource_exhausted("full")).await, (true, 2));
        assert_eq!(names(true, || Status::unavailable("reset")).await, (false, 1));
        assert_eq!(names(false, || Status::unavailable("reset")).await, (true, 2));
        assert_eq!(names(true, || Status::not_found("no such tool")).await, (true, 2));
        assert_eq!(names(false, || Status::invalid_argument("no")).await, (false, 1));
    }

    #[tokio::test]
    async fn labels_and_tools_choose() {
        let list = |zone: &str, tool: &str| ListToolsResponse {
            tools: vec![Tool { name: tool.to_owned(), ..Tool::default() }],
            toolsets: vec![Toolset { name: format!("set/{tool}"), status: 1, ..Toolset::default() }],
            labels: HashMap::from([("zone".to_owned(), zone.to_owned())]),
            ..ListToolsResponse::default()
        };
        let (one, other, silent) = (member("one"), member("other"), member("silent"));
        let pool = pool(&[Arc::clone(&one), Arc::clone(&other), silent]);
        one.told(ToolProfile::Holmes, list("a", "x"));
        other.told(ToolProfile::Holmes, list("b", "y"));
        let picks = |pool: &Pool, tool: Option<&'static str>| {
            let tool = tool.map(|tool| (ToolProfile::Holmes, tool));
            pool.pick(Wish { tool, ..Wish::default() }).map(|busy| busy.name().to_owned()).ok()
        };
        for _ in 0..10 {
            assert_eq!(picks(&pool, Some("y")).as_deref(), Some("other"));
            assert_eq!(picks(&pool, Some("z")).as_deref(), Some("silent"), "it may have it");
        }
        let labels = |key: &str, value: &str| Labels::from([(key.to_owned(), value.to_owned())]);
        let zone = pool.labelled(&labels("zone", "a"));
        assert_eq!(picks(&zone, None).as_deref(), Some("one"));
        assert_eq!(picks(&zone, Some("y")).as_deref(), Some("one"), "the other is not here");
        assert_eq!(picks(&pool.labelled(&labels("toolset", "set/y")), None).as_deref(), Some("other"));
        assert_eq!(picks(&zone.labelled(&labels("toolset", "set/y")), None), None);
        assert_eq!(picks(&zone.labelled(&labels("zone", "b")), None), None, "labels only narrow down");
    }

    #[tokio::test]
    async fn one_takes_the_place_of_another_with_its_name() {
        let (old, new) = (member("one"), member("one"));
        let pool = pool(&[Arc::clone(&old)]);
        let waits = pool.successor(&old);
        let adds = async { pool.add(&new) };
        let (found, ()) = tokio::join!(waits, adds);
        assert!(found.is_some_and(|found| Arc::ptr_eq(&found, &new)));
        pool.remove(&old);
        assert_eq!(pool.members().len(), 1, "the new one stays");
        pool.remove(&new);
        assert!(pool.pick(Wish::default()).is_err());
    }

    #[tokio::test]
    async fn what_has_the_same_key_stays_together() {
        let members: Vec<_> = ["one", "two", "three"].map(member).into();
        let pool = pool(&members);
        let near = |key| pool.pick(Wish { near: Some(key), ..Wish::default() }).unwrap().name().to_owned();
        let chosen = near("session");
        assert!((0..20).all(|_| near("session") == chosen));
        let keys: Vec<_> = (0..50).map(|key| key.to_string()).collect();
        assert!(keys.iter().any(|key| near(key) != chosen), "others are elsewhere");
    }
}
