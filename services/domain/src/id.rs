//! Ids. They are made at the edges and by the driver; here they are only carried.

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(String);

        impl $name {
            /// Wraps the text of an id.
            pub fn new(text: impl Into<String>) -> Self {
                Self(text.into())
            }

            /// The id's text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(&self.0)
            }
        }
    )*};
}

ids! {
    /// A run. Unique everywhere.
    RunId;
    /// A log of events: of one run, or of a session with all its runs. Unique everywhere.
    LogId;
    /// An agent within a run: [`AgentId::main`] or a subagent.
    AgentId;
    /// A message within a run.
    MessageId;
    /// A tool call within a run. The model chose its text.
    CallId;
    /// A question of code to its host.
    QuestionId;
}

impl From<&RunId> for LogId {
    /// The log of a run that belongs to no session.
    fn from(run: &RunId) -> Self {
        Self::new(run.as_str())
    }
}

impl CallId {
    /// The id of a command that the code of a call asks for by a question.
    #[must_use]
    pub fn of_command(&self, question: &QuestionId) -> Self {
        Self(format!("{self}/{question}"))
    }

    /// What [`Self::of_command`] made the id of.
    pub fn command(&self) -> Option<(Self, QuestionId)> {
        let (call, question) = self.0.rsplit_once('/')?;
        Some((Self::new(call), QuestionId::new(question)))
    }
}

impl AgentId {
    /// The agent that answers the question itself.
    pub fn main() -> Self {
        Self::new("main")
    }

    /// A subagent, by the order in which the subagents of a run start, from 1.
    pub fn sub(number: u32) -> Self {
        Self::new(format!("a{number}"))
    }
}
