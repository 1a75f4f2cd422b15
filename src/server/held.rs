//! What a connection keeps at the holder of a shared store: a view that its commands run on, and
//! walks over keys. All of it ends with the connection, and a transaction is rolled back then.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::commands::Session;
use crate::error::{Error, ErrorKind, Result};
use crate::txn::{Db, Transaction};
use crate::types::KeyIter;

/// The number of walks that one connection may keep. A handle of the library needs a second
/// connection for more.
const MOST_WALKS: usize = 1024;

/// What one connection keeps.
#[derive(Default)]
pub(crate) struct Held {
    view: Option<HeldView>,
    walks: BTreeMap<u64, KeyIter>,
    /// The number of the walk that began last.
    last: u64,
}

/// What the commands of a session run on for a while.
struct HeldView {
    /// What they ran on before.
    before: Db,
    /// The transaction; `None` if it is a snapshot.
    transaction: Option<Arc<Transaction>>,
}

impl Held {
    /// Lets the commands of a session run on a snapshot from now on.
    pub(crate) fn take_snapshot(&mut self, session: &mut Session) -> Result<()> {
        self.check_none()?;
        let before = session.db().clone();
        session.use_db(before.snapshot()?);
        self.view = Some(HeldView { before, transaction: None });
        Ok(())
    }

    /// Lets the commands of a session run in a transaction from now on.
    pub(crate) fn begin(&mut self, session: &mut Session) -> Result<()> {
        self.check_none()?;
        let before = session.db().clone();
        let transaction = Arc::new(before.begin()?);
        session.use_db(Db::clone(&transaction));
        self.view = Some(HeldView { before, transaction: Some(transaction) });
        Ok(())
    }

    /// Lets the commands of a session run on the store again. A transaction is rolled back, unless
    /// it was committed.
    pub(crate) fn end(&mut self, session: &mut Session) {
        if let Some(view) = self.view.take() {
            session.use_db(view.before);
        }
    }

    /// The transaction, if there is one: whoever works with it on another thread keeps it alive.
    pub(crate) fn transaction(&self) -> Option<Arc<Transaction>> {
        self.view.as_ref()?.transaction.clone()
    }

    /// Whether commands of the session run in a transaction.
    pub(crate) fn has_transaction(&self) -> bool {
        self.view.as_ref().is_some_and(|view| view.transaction.is_some())
    }

    /// Keeps a walk and returns its number.
    pub(crate) fn add_walk(&mut self, walk: KeyIter) -> Result<u64> {
        if self.walks.len() >= MOST_WALKS {
            let text = format!("{MOST_WALKS} iterators of one handle are open: free some");
            return Err(Error::new(ErrorKind::Busy, text));
        }
        self.last += 1;
        self.walks.insert(self.last, walk);
        Ok(self.last)
    }

    pub(crate) fn walk(&mut self, number: u64) -> Result<&mut KeyIter> {
        let none = || Error::new(ErrorKind::Invalid, "there is no such walk");
        self.walks.get_mut(&number).ok_or_else(none)
    }

    pub(crate) fn free_walk(&mut self, number: u64) {
        self.walks.remove(&number);
    }

    fn check_none(&self) -> Result<()> {
        match self.view {
            None => Ok(()),
            Some(_) => Err(Error::new(ErrorKind::Invalid, "the connection has a view already")),
        }
    }
}
