//! How many streams are open at the same time: of a session, of an account, of the server.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use super::problem::Problem;

const OF_SESSION: usize = 12;
const OF_ACCOUNT: usize = 1000;
const OF_ALL: usize = 10_000;

/// The open streams.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seats(Arc<Mutex<Taken>>);

#[derive(Debug, Default)]
struct Taken {
    all: usize,
    accounts: HashMap<String, usize>,
    sessions: HashMap<String, usize>,
}

impl Seats {
    fn lock(&self) -> MutexGuard<'_, Taken> {
        // Nothing in here panics half-way through a change.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a seat, if there is one.
    pub(super) fn take(&self, account: &str, session: &str) -> Result<Seat, Problem> {
        let mut taken = self.lock();
        let of = |counts: &HashMap<String, usize>, name: &str| counts.get(name).copied().unwrap_or_default();
        let full = |what: &str, most: usize| {
            Err(Problem::too_many(format!("Too many streams: {most} of {what} are open already")))
        };
        if of(&taken.sessions, session) >= OF_SESSION {
            return full("this session", OF_SESSION);
        }
        if of(&taken.accounts, account) >= OF_ACCOUNT {
            return full("this account", OF_ACCOUNT);
        }
        if taken.all >= OF_ALL {
            return full("this server", OF_ALL);
        }
        taken.all += 1;
        *taken.accounts.entry(account.to_owned()).or_default() += 1;
        *taken.sessions.entry(session.to_owned()).or_default() += 1;
        Ok(Seat { seats: self.clone(), account: account.to_owned(), session: session.to_owned() })
    }
}

/// A seat; it is free again when this is dropped.
#[derive(Debug)]
pub(super) struct Seat {
    seats: Seats,
    account: String,
    session: String,
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut taken = self.seats.lock();
        taken.all -= 1;
        leave(&mut taken.accounts, &self.account);
        leave(&mut taken.sessions, &self.session);
    }
}

fn leave(counts: &mut HashMap<String, usize>, name: &str) {
    if let Some(count) = counts.get_mut(name) {
        *count -= 1;
        if *count == 0 {
            counts.remove(name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seat_is_free_again_after_its_stream() {
        let seats = Seats::default();
        let mut taken: Vec<_> = (0..OF_SESSION).map(|_| seats.take("a", "s").unwrap()).collect();
        assert!(seats.take("a", "s").is_err());
        assert!(seats.take("a", "t").is_ok());
        taken.pop();
        assert!(seats.take("a", "s").is_ok());
        taken.clear();
        assert!(seats.lock().accounts.is_empty() && seats.lock().sessions.is_empty());
    }
}
