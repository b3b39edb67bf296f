//! Agents that an account defines: what sessions with them begin with. Each is kept as a log without events.

use std::num::NonZeroUsize;

use prost::Message as _;
use store::{Entry, Idempotency, Kind, Query};
use wire::session::{Agent, AgentSettings, SessionSettings};

use super::{Error, Sessions, ids};

/// Agents that are looked through together for a name.
const PAGE: NonZeroUsize = NonZeroUsize::new(256).unwrap();

impl Sessions {
    pub(crate) async fn create_agent(
        &self,
        account: &str,
        settings: AgentSettings,
        idempotency: Option<Idempotency>,
    ) -> Result<Agent, Error> {
        let (title, details) = (settings.name.clone(), settings.encode_to_vec());
        let id = self.keep(ids::new("agent_"), account, Kind::Agent, (title, details), idempotency).await?;
        self.agent(id.as_str(), account).await
    }

    /// An agent of an account.
    pub(crate) async fn agent(&self, id: &str, account: &str) -> Result<Agent, Error> {
        Ok(described(&self.look_up(id, account, Kind::Agent).await?))
    }

    /// The newest agent of a name.
    pub(crate) async fn agent_named(&self, name: &str, account: &str) -> Result<Agent, Error> {
        let mut before = None;
        loop {
            let query = Query { account: account.to_owned(), kind: Kind::Agent, before, limit: PAGE };
            let page = self.store().list(query).await?;
            let Some(last) = page.last() else { return Err(Error::Unknown(Kind::Agent, name.to_owned())) };
            before = Some(last.number);
            if let Some(entry) = page.iter().find(|entry| entry.meta.title == name) {
                return Ok(described(entry));
            }
        }
    }

    /// Agents of an account, newest first: those after one, or from the newest.
    pub(crate) async fn agents(
        &self,
        account: &str,
        after: &str,
        limit: NonZeroUsize,
    ) -> Result<Vec<Agent>, Error> {
        let listed = self.listed(account, Kind::Agent, after, limit).await?;
        Ok(listed.iter().map(described).collect())
    }

    pub(crate) async fn update_agent(
        &self,
        id: &str,
        account: &str,
        settings: AgentSettings,
        before: Option<AgentSettings>,
    ) -> Result<Agent, Error> {
        let entry = self.look_up(id, account, Kind::Agent).await?;
        if before.is_some_and(|before| before != described(&entry).settings.unwrap_or_default()) {
            return Err(Error::Changed);
        }
        let details = settings.encode_to_vec();
        self.amend(entry, settings.name, details).await?;
        self.agent(id, account).await
    }

    /// Deletes an agent. Its sessions go on without what it said.
    pub(crate) async fn delete_agent(&self, id: &str, account: &str) -> Result<(), Error> {
        let entry = self.look_up(id, account, Kind::Agent).await?;
        self.store().delete(&entry.log).await?;
        Ok(())
    }

    /// What holds for a session: what it says itself, over what its agent says.
    pub(super) async fn with_agent(
        &self,
        account: &str,
        own: SessionSettings,
    ) -> Result<SessionSettings, store::Error> {
        if own.agent_id.is_empty() || own.agent_id == wire::AGENT_ID {
            return Ok(own);
        }
        match self.agent(&own.agent_id, account).await {
            Ok(agent) => Ok(over(own, agent.settings.unwrap_or_default())),
            Err(Error::Store(error)) => Err(error),
            Err(Error::Unknown(..) | Error::OtherRequest | Error::Changed) => Ok(own),
        }
    }
}

/// The settings of a session over those of its agent.
fn over(own: SessionSettings, agent: AgentSettings) -> SessionSettings {
    let is_own = |name: &str| own.tools.iter().any(|tool| tool.name == name);
    let tools = agent.tools.into_iter().filter(|tool| !is_own(&tool.name));
    let tools = tools.chain(own.tools.iter().cloned()).collect();
    let prompts = [agent.system_prompt.as_str(), own.system_prompt.as_str()];
    let prompts: Vec<_> = prompts.into_iter().filter(|prompt| !prompt.is_empty()).collect();
    let most = [agent.max_iterations, own.max_iterations].into_iter().filter(|most| *most > 0).min();
    SessionSettings {
        model: if own.model.is_empty() { agent.model } else { own.model },
        system_prompt: prompts.join("\n\n"),
        max_iterations: most.unwrap_or_default(),
        subagents: own.subagents.or(agent.subagents),
        tools,
        ..own
    }
}

fn described(entry: &Entry) -> Agent {
    Agent {
        id: entry.log.as_str().to_owned(),
        settings: AgentSettings::decode(entry.meta.details.as_slice()).ok(),
        created_at: Some(wire::time(entry.created)),
        updated_at: Some(wire::time(entry.updated)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_says_more_than_its_agent_and_may_ask_for_less() {
        let tool = |name: &str, description: &str| wire::agent::ClientTool {
            name: name.into(),
            description: description.into(),
            ..wire::agent::ClientTool::default()
        };
        let agent = AgentSettings {
            model: "gpt".into(),
            system_prompt: "Be brief.".into(),
            max_iterations: 5,
            tools: vec![tool("pick", "theirs"), tool("draw", "theirs")],
            ..AgentSettings::default()
        };
        let own = SessionSettings {
            system_prompt: "Be kind.".into(),
            max_iterations: 9,
            tools: vec![tool("pick", "ours")],
            ..SessionSettings::default()
        };
        let both = over(own, agent);
        assert_eq!((both.model.as_str(), both.max_iterations), ("gpt", 5));
        assert_eq!(both.system_prompt, "Be brief.\n\nBe kind.");
        assert_eq!(both.tools, [tool("draw", "theirs"), tool("pick", "ours")]);
    }
}
