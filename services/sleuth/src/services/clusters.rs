//! Who may register which cluster: the accounts know.

use std::sync::Arc;

use accounts::Registry;
use agent::{Admission, Agent, Joined, Link};
use tonic::{Status, async_trait};
use wire::cluster::cluster_link_server::ClusterLinkServer;

/// Keys of clusters, as the accounts keep them.
struct Keys(Registry);

/// The service where executors of clusters come in.
pub(super) fn link(agent: &Agent, registry: &Registry) -> ClusterLinkServer<Link> {
    Link::service(agent.clusters(), Arc::new(Keys(registry.clone())), agent.link_age())
}

#[async_trait]
impl Admission for Keys {
    async fn join(&self, token: &str) -> Result<(Joined, String), Status> {
        let (cluster, secret) = self.0.join(token).await?;
        Ok((Joined { account: cluster.account, cluster: cluster.name }, secret.text))
    }

    async fn renew(&self, key: &str) -> Result<String, Status> {
        Ok(self.0.renew(key).await?.1.text)
    }

    async fn admit(&self, key: &str) -> Result<Joined, Status> {
        let cluster = self.0.cluster(key).await?;
        Ok(Joined { account: cluster.account, cluster: cluster.name })
    }
}
