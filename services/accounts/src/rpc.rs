//! The `sleuth.account.v1` service: thin handlers over the registry.

use std::time::Duration;

use domain::Timestamp;
use futures_util::stream::BoxStream;
use runtime::scope::{Scope, Scopes};
use store::{Account, Budget, Spent};
use tonic::{Request, Response, Status};
use wire::{
    account::{
        AuditEntry, AuditRequest, AuthenticateRequest, AuthenticateResponse, CreateAccountRequest,
        CreateAccountResponse, CreateKeyRequest, CreateKeyResponse, ListAccountsRequest,
        ListAccountsResponse, ListKeysRequest, ListKeysResponse, RevokeKeyRequest, RevokeKeyResponse,
        RotateKeyRequest, RotateKeyResponse, UpdateAccountRequest, UpdateAccountResponse,
        accounts_server::{Accounts, AccountsServer},
    },
    agent::Caller,
};

use crate::{NewKey, Registry, audit, convert, registry::now};

/// How long a key counts beside its successor, unless it is said.
const OVERLAP: u32 = 24 * 3600;

/// The gRPC service.
#[derive(Debug)]
pub struct Service {
    registry: Registry,
}

impl Registry {
    /// The gRPC service.
    pub fn service(&self) -> AccountsServer<Service> {
        AccountsServer::new(Service { registry: self.clone() })
    }
}

#[tonic::async_trait]
impl Accounts for Service {
    type AuditStream = BoxStream<'static, Result<AuditEntry, Status>>;

    async fn authenticate(
        &self,
        request: Request<AuthenticateRequest>,
    ) -> Result<Response<AuthenticateResponse>, Status> {
        let AuthenticateRequest { id, digest } = request.into_inner();
        let known = self.registry.admit(&id, &digest).await?;
        let scopes = known.scopes.iter().map(|scope| scope.to_string()).collect();
        Ok(Response::new(AuthenticateResponse { caller: Some(known.caller), scopes }))
    }

    async fn create_account(
        &self,
        request: Request<CreateAccountRequest>,
    ) -> Result<Response<CreateAccountResponse>, Status> {
        let CreateAccountRequest { id, name, default_model, daily_tokens, daily_cost_usd } =
            request.into_inner();
        let budget = convert::budget(daily_tokens, daily_cost_usd)?(Budget::default());
        let account = Account {
            id,
            name,
            default_model,
            created: now(),
            disabled: None,
            budget,
            spent: Spent::default(),
        };
        let account = convert::account(self.registry.create_account(account).await?);
        Ok(Response::new(CreateAccountResponse { account: Some(account) }))
    }

    async fn update_account(
        &self,
        request: Request<UpdateAccountRequest>,
    ) -> Result<Response<UpdateAccountResponse>, Status> {
        let UpdateAccountRequest { id, name, default_model, disabled, daily_tokens, daily_cost_usd } =
            request.into_inner();
        let budget = convert::budget(daily_tokens, daily_cost_usd)?;
        let change = |account: &mut Account| {
            account.name = name.unwrap_or_else(|| account.name.clone());
            account.default_model = default_model.unwrap_or_else(|| account.default_model.clone());
            account.budget = budget(account.budget);
            account.disabled = match disabled {
                Some(true) => account.disabled.or_else(|| Some(now())),
                Some(false) => None,
                None => account.disabled,
            };
        };
        let account = convert::account(self.registry.update_account(&id, change).await?);
        Ok(Response::new(UpdateAccountResponse { account: Some(account) }))
    }

    async fn list_accounts(
        &self,
        _: Request<ListAccountsRequest>,
    ) -> Result<Response<ListAccountsResponse>, Status> {
        let accounts = self.registry.accounts().await?.into_iter().map(convert::account).collect();
        Ok(Response::new(ListAccountsResponse { accounts }))
    }

    async fn create_key(
        &self,
        request: Request<CreateKeyRequest>,
    ) -> Result<Response<CreateKeyResponse>, Status> {
        let request = request.into_inner();
        let kind = convert::kind(request.kind());
        let expires: Option<Timestamp> = request.expires_at.map(convert::time).transpose()?;
        let new = NewKey {
            account: convert::named(request.account),
            kind,
            name: request.name,
            scopes: request.scopes,
            clusters: request.clusters,
            expires,
        };
        let secret = self.registry.create_key(new).await?;
        Ok(Response::new(CreateKeyResponse { key: Some(convert::key(secret.key)), secret: secret.text }))
    }

    async fn list_keys(
        &self,
        request: Request<ListKeysRequest>,
    ) -> Result<Response<ListKeysResponse>, Status> {
        let account = convert::named(request.into_inner().account);
        let keys = self.registry.keys(&account).await?.into_iter().map(convert::key).collect();
        Ok(Response::new(ListKeysResponse { keys }))
    }

    async fn revoke_key(
        &self,
        request: Request<RevokeKeyRequest>,
    ) -> Result<Response<RevokeKeyResponse>, Status> {
        self.registry.revoke(&request.into_inner().id).await?;
        Ok(Response::new(RevokeKeyResponse {}))
    }

    async fn rotate_key(
        &self,
        request: Request<RotateKeyRequest>,
    ) -> Result<Response<RotateKeyResponse>, Status> {
        let RotateKeyRequest { id, overlap_seconds } = request.into_inner();
        let overlap = Duration::from_secs(overlap_seconds.unwrap_or(OVERLAP).into());
        let secret = self.registry.rotate(&id, overlap).await?;
        Ok(Response::new(RotateKeyResponse { key: Some(convert::key(secret.key)), secret: secret.text }))
    }

    async fn audit(&self, request: Request<AuditRequest>) -> Result<Response<Self::AuditStream>, Status> {
        let own = request.extensions().get::<Caller>().map(|caller| caller.account.clone());
        let may_see_all =
            request.extensions().get::<Scopes>().is_none_or(|scopes| scopes.allow(Scope::Admin));
        let AuditRequest {
            account,
            runs,
            run_id: of,
            before_run_id: before,
            principal,
            cluster,
            kinds,
            since,
            until,
        } = request.into_inner();
        let (since, until) = (since.map(convert::time).transpose()?, until.map(convert::time).transpose()?);
        if let Some(unknown) = kinds.iter().find(|kind| !wire::AUDIT_KINDS.contains(&kind.as_str())) {
            let known = wire::AUDIT_KINDS.join(", ");
            return Err(Status::invalid_argument(format!("kinds: `{unknown}` is none of {known}")));
        }
        let filter = audit::Filter { principal, cluster, kinds, since, until };
        let account = match own {
            Some(own) if account.is_empty() || !may_see_all => own,
            Some(_) | None => convert::named(account),
        };
        let runs = match runs {
            0 => 100,
            runs => runs.min(1000),
        };
        let wanted = audit::Wanted { account, runs, of, before, filter };
        Ok(Response::new(audit::trail(self.registry.store.clone(), wanted).await?))
    }
}
