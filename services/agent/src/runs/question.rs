//! What an agent is asked, and why it may refuse.

use bytes::Bytes;
use domain::{
    ClientTool, Document, Effort, Image, Labels, Limits, Message, Part, Permissions, Rlm, Role, Subagents,
    ToolProfile,
};
use model::UnknownModel;
use store::Idempotency;

use super::{Brought, budget::OverBudget, table::Full};
use crate::{
    clusters::NotConnected,
    driver::Form,
    prompt::{File, Sections},
    tools::{AlertHistory, NoExecutor, RequestHeaders, Unusable},
};

/// A question, as the agent takes it.
#[derive(Clone, Debug)]
pub(crate) struct Question {
    pub text: String,
    pub history: Vec<Message>,
    pub model: Option<String>,
    pub images: Vec<Image>,
    pub documents: Vec<Document>,
    pub client_tools: Vec<ClientTool>,
    /// What the client brings for calls that an earlier run left open.
    pub brought: Brought,
    /// Whether the client can put a call to a person.
    pub approvals: bool,
    /// Whether calls that need the client wait in the run.
    pub waits: bool,
    /// What subagents the model may start.
    pub subagents: Subagents,
    /// Signed standing permissions.
    pub standing: Vec<Bytes>,
    /// What the request brings along for toolsets.
    pub headers: RequestHeaders,
    /// The session that they belong to.
    pub session: String,
    /// How the model works, if it does so by code, and over what.
    pub rlm: Option<(Rlm, String)>,
    /// Where commands of its code start, within the workspace.
    pub exec_directory: String,
    /// The executor process that has the session's files; empty if there is none.
    pub home: String,
    /// Whose tools it has.
    pub profile: ToolProfile,
    /// What the client says of calls.
    pub permissions: Option<Permissions>,
    /// The cluster whose executors run them; empty if none is named.
    pub cluster: String,
    /// What these executors must be called.
    pub labels: Labels,
    /// The only clusters that may be reached; all of the account's if there are none.
    pub clusters: Vec<String>,
    pub form: Option<Form>,
    pub sections: Sections,
    pub files: Vec<File>,
    /// Alerts that the model is told of.
    pub alert_history: Option<AlertHistory>,
    pub additional_system_prompt: String,
    pub limits: Limits,
    pub account: String,
    pub principal: String,
    /// What makes a repeated request the same request.
    pub idempotency: Option<Idempotency>,
    /// Who wants the run to go on without reading it; empty if only readers do.
    pub keeper: String,
    /// How much the model is to think.
    pub effort: Option<Effort>,
}

impl Question {
    /// What is asked, and nothing else.
    pub(super) fn plain(&self) -> Message {
        let mut parts = self.media();
        parts.push(Part::Text(self.text.clone()));
        Message::new(Role::User, parts)
    }

    /// What belongs to it beside its text.
    pub(super) fn media(&self) -> Vec<Part> {
        let images = self.images.iter().cloned().map(Part::Image);
        images.chain(self.documents.iter().cloned().map(Part::Document)).collect()
    }
}

/// Why a run does not start.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refusal {
    #[error(transparent)]
    Model(#[from] UnknownModel),
    #[error(
        "the model `{model}` cannot see images, and the conversation has some; models that may see them: {others}"
    )]
    Blind {
        model: String,
        /// Names of models that may do better.
        others: String,
    },
    #[error(transparent)]
    ClientTool(#[from] Unusable),
    #[error("there is no question, and the history has no open call to go on with")]
    NothingToDo,
    #[error(transparent)]
    Executor(#[from] NoExecutor),
    #[error(transparent)]
    Cluster(#[from] NotConnected),
    #[error("cluster: the API key is not for `{0}`")]
    NotPermitted(String),
    #[error("name the cluster that is asked about, one of: {0}")]
    Unnamed(String),
    #[error("this idempotency key belongs to another request: use a new key for a new request")]
    OtherRequest,
    #[error(transparent)]
    TooMany(#[from] Full),
    #[error(transparent)]
    OverBudget(#[from] OverBudget),
    #[error("this agent is shutting down")]
    ShuttingDown,
    #[error("the run could not be written to its log: {0}")]
    Log(#[from] store::Error),
}
