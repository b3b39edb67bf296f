//! Executors of one kind, and which of them takes the next call.

use std::{
    hash::{DefaultHasher, Hash as _, Hasher as _},
    sync::Arc,
};

use tokio::sync::watch;
use tonic::{Code, Status};

use super::member::{Busy, Client, Member, is_lost, is_unsent};

/// Executors that can take each other's calls.
#[derive(Debug)]
pub(crate) struct Pool {
    members: watch::Sender<Arc<[Arc<Member>]>>,
}

/// Which executors may take something, and how it may be sent.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Wish<'a> {
    /// Not these.
    pub not: &'a [String],
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
        Self { members: watch::Sender::new(Arc::default()) }
    }
}

impl Pool {
    /// All of them.
    pub(crate) fn members(&self) -> Arc<[Arc<Member>]> {
        Arc::clone(&self.members.borrow())
    }

    /// Has these from now on.
    pub(crate) fn set(&self, members: Arc<[Arc<Member>]>) {
        self.members.send_replace(members);
    }

    /// Adds one, in the place of one with its name.
    pub(crate) fn add(&self, new: &Arc<Member>) {
        self.members.send_modify(|members| {
            let others = members.iter().filter(|member| member.name() != new.name()).cloned();
            *members = others.chain([Arc::clone(new)]).collect();
        });
    }

    /// Removes this one, unless another has taken its place.
    pub(crate) fn remove(&self, gone: &Arc<Member>) {
        self.members.send_modify(|members| {
            *members = members.iter().filter(|member| !Arc::ptr_eq(member, gone)).cloned().collect();
        });
    }

    /// Waits for the one that takes the place of another.
    pub(crate) async fn successor(&self, of: &Arc<Member>) -> Option<Arc<Member>> {
        let successor = |members: &[Arc<Member>]| {
            let mut others = members.iter().filter(|member| !Arc::ptr_eq(member, of));
            others.find(|member| member.name() == of.name()).cloned()
        };
        let mut members = self.members.subscribe();
        let found = members.wait_for(|members| successor(members).is_some()).await.ok()?;
        successor(&found)
    }

    /// Waits until there is one.
    pub(crate) async fn filled(&self) {
        // The sender lives as long as this.
        let _ = self.members.subscribe().wait_for(|members| !members.is_empty()).await;
    }

    /// The one of two at random with less to do, unless another is wished for; among those that work, or else among
    /// all.
    fn pick(&self, wish: Wish<'_>) -> Result<Busy, Empty> {
        let members = self.members();
        let fresh: Vec<_> =
            members.iter().filter(|member| !wish.not.iter().any(|name| name == member.name())).collect();
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

    /// Asks executors until one answers: the next one where one is lost or full. All of them having failed, the last
    /// failure.
    pub(crate) async fn ask<T, F>(
        &self,
        wish: Wish<'_>,
        mut asks: impl FnMut(Client) -> F,
    ) -> Result<(T, Busy), Status>
    where
        F: Future<Output = Result<T, Status>>,
    {
        let mut tried = wish.not.to_vec();
        let mut last = Status::unavailable(Empty.to_string());
        while let Ok(member) = self.pick(Wish { not: &tried, ..wish }) {
            match asks(member.client()).await {
                Ok(answer) => {
                    member.answered();
                    return Ok((answer, member));
                }
                Err(status) => {
                    let lost = is_lost(&status);
                    if lost {
                        member.failed(&status);
                    }
                    let full = status.code() == Code::ResourceExhausted;
                    if !full && !is_unsent(&status) && (wish.once || !lost) {
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

/// Each key has an order of executors of its own; one that goes or comes moves only what is its own.
fn weight(key: &str, member: &Member) -> u64 {
    let mut hasher = DefaultHasher::new();
    (key, member.name()).hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use wire::transport;

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
        assert_eq!(names(false, || Status::not_found("no such tool")).await, (false, 1));
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
