//! Ids of the dialect: UUIDs of version 7, made of the run's own id so that every replica says the same ones.

use domain::Timestamp;
use uuid::{Builder, Uuid};

/// How runs are called elsewhere.
const RUN: &str = "run_";

/// The session that a run is.
pub(super) fn session(run: &str) -> String {
    let uuid = run.strip_prefix(RUN).and_then(|id| Uuid::try_parse(id).ok());
    uuid.map_or_else(|| run.to_owned(), |uuid| uuid.hyphenated().to_string())
}

/// The run that a session is.
pub(super) fn run(session: &str) -> String {
    match Uuid::try_parse(session) {
        Ok(uuid) => format!("{RUN}{}", uuid.simple()),
        Err(_) => session.to_owned(),
    }
}

/// What ids of a run are made of.
#[derive(Clone, Debug)]
pub(super) struct Seed {
    run: String,
    millis: u64,
}

impl Seed {
    pub(super) fn new(run: &str, started: Timestamp) -> Self {
        Self { run: run.to_owned(), millis: u64::try_from(started.0 / 1_000_000).unwrap_or_default() }
    }

    /// The id of a part of the run.
    pub(super) fn id(&self, part: &[&str]) -> String {
        let digest = grants::sha256(format!("{}\0{}", self.run, part.join("\0")));
        let mut random = [0; 10];
        random.iter_mut().zip(digest).for_each(|(to, from)| *to = from);
        Builder::from_unix_timestamp_millis(self.millis, &random).into_uuid().to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_and_runs_are_one() {
        for (id, named) in [
            ("run_0197a1b2c3d47e5f8a9b0c1d2e3f4a5b", "0197a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b"),
            ("run-1", "run-1"),
            ("run_x", "run_x"),
        ] {
            assert_eq!(session(id), named);
            assert_eq!(run(named), id);
        }
    }

    #[test]
    fn ids_are_of_version_7_and_always_the_same() {
        let seed = Seed::new("run_1", Timestamp(1_700_000_000_123_000_000));
        let id: Uuid = seed.id(&["text", "main", "msg_1"]).parse().unwrap();
        assert_eq!(id.get_version_num(), 7);
        assert_eq!(id.get_timestamp().unwrap().to_unix().0, 1_700_000_000);
        assert_eq!(seed.id(&["text", "main", "msg_1"]), id.to_string());
        assert_ne!(seed.id(&["text", "main", "msg_2"]), id.to_string());
        assert_ne!(Seed::new("run_2", Timestamp(0)).id(&["text", "main", "msg_1"]), id.to_string());
    }
}
