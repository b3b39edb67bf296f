//! Accounts.

use std::collections::{BTreeMap, HashMap};

use async_trait::async_trait;
use domain::Timestamp;

use super::Memory;
use crate::{Account, Accounts, Credential, Error, Spent, budget::day, catalog::now};

#[derive(Debug)]
pub(super) struct Known {
    accounts: BTreeMap<String, Account>,
    /// In the order of their creation.
    credentials: Vec<Credential>,
    /// The day on which an account has spent something last, and what.
    spent: HashMap<String, (i64, Spent)>,
}

impl Default for Known {
    fn default() -> Self {
        let default = Account::default_one();
        Self {
            accounts: [(default.id.clone(), default)].into(),
            credentials: Vec::new(),
            spent: HashMap::new(),
        }
    }
}

impl Known {
    fn add(&mut self, credential: Credential) -> bool {
        let known = self.accounts.contains_key(&credential.account);
        if known {
            self.credentials.push(credential);
        }
        known
    }

    fn account(&self, account: &Account) -> Account {
        Account { spent: self.spent_today(&account.id), ..account.clone() }
    }

    fn spent_today(&self, account: &str) -> Spent {
        let today = self.spent.get(account).filter(|(last, _)| *last == day(now()));
        today.map(|(_, spent)| *spent).unwrap_or_default()
    }

    pub(super) fn spend(&mut self, account: &str, spent: Spent) {
        if !spent.is_nothing() {
            let spent = self.spent_today(account).and(spent);
            self.spent.insert(account.to_owned(), (day(now()), spent));
        }
    }

    fn find(&mut self, id: &str) -> Option<&mut Credential> {
        self.credentials.iter_mut().find(|credential| credential.id == id)
    }

    fn end(&mut self, id: &str, now: Timestamp, end: Timestamp) -> bool {
        let Some(found) = self.find(id).filter(|credential| credential.counts(now)) else { return false };
        found.revoked = Some(found.revoked.map_or(end, |sooner| sooner.min(end)));
        true
    }
}

#[async_trait]
impl Accounts for Memory {
    async fn add_account(&self, account: Account) -> Result<bool, Error> {
        account.check()?;
        let accounts = &mut self.known().accounts;
        let new = !accounts.contains_key(&account.id);
        accounts.entry(account.id.clone()).or_insert(account);
        Ok(new)
    }

    async fn change_account(&self, account: Account) -> Result<bool, Error> {
        account.check()?;
        match self.known().accounts.get_mut(&account.id) {
            Some(known) => *known = account,
            None => return Ok(false),
        }
        Ok(true)
    }

    async fn account(&self, id: &str) -> Result<Option<Account>, Error> {
        let known = self.known();
        Ok(known.accounts.get(id).map(|account| known.account(account)))
    }

    async fn accounts(&self) -> Result<Vec<Account>, Error> {
        let known = self.known();
        Ok(known.accounts.values().map(|account| known.account(account)).collect())
    }

    async fn spend(&self, account: &str, spent: Spent) -> Result<(), Error> {
        self.known().spend(account, spent);
        Ok(())
    }

    async fn add_credential(&self, credential: Credential) -> Result<bool, Error> {
        credential.check()?;
        Ok(self.known().add(credential))
    }

    async fn credential(&self, id: &str) -> Result<Option<Credential>, Error> {
        Ok(self.known().find(id).cloned())
    }

    async fn credentials(&self, account: &str) -> Result<Vec<Credential>, Error> {
        let known = self.known();
        let of = known.credentials.iter().filter(|credential| credential.account == account);
        Ok(of.cloned().collect())
    }

    async fn end_credential(&self, id: &str, now: Timestamp, end: Timestamp) -> Result<bool, Error> {
        Ok(self.known().end(id, now, end))
    }

    async fn replace_credential(
        &self,
        old: &str,
        now: Timestamp,
        end: Timestamp,
        new: Credential,
    ) -> Result<bool, Error> {
        new.check()?;
        let mut known = self.known();
        Ok(known.accounts.contains_key(&new.account) && known.end(old, now, end) && known.add(new))
    }

    async fn credential_used(&self, id: &str, at: Timestamp) -> Result<(), Error> {
        if let Some(credential) = self.known().find(id) {
            credential.used = Some(at);
        }
        Ok(())
    }
}
