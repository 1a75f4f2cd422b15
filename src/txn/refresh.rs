//! A store that was opened beside a writer moves on to what the writer has committed by now.
//!
//! The new state is read and prepared aside. It becomes visible, with the mapping of databases that
//! belongs to it, like a command that empties or swaps databases: with all stripes held, so that
//! nobody who depends on a stripe meets it half way. Whoever watches keys finds them changed, since
//! nobody knows which of them the writer has changed.

use crate::error::Result;
use crate::messages::TableChange;
use crate::txn::store::Store;

impl Store {
    /// Moves on, if the store was opened beside a writer. An error of the kinds `Corrupt` or `Io`
    /// may come from what the writer does meanwhile: the caller tries again.
    pub(crate) fn refresh(&self) -> Result<()> {
        let Some(refresh) = self.engine().refresh()? else { return Ok(()) };
        let reader = refresh.reader();
        let mapping = self.spaces().mapping_at(&reader)?;
        self.cursors().reload(&reader)?;
        let held = self.lock_every(None)?;
        let changing = self.spaces().change();
        refresh.publish();
        self.spaces().adopt(&mapping);
        drop(changing);
        self.conflicts().forget_up_to(reader.sequence());
        if self.hub().anyone_tracks() {
            self.hub().apply_tracking(0, std::iter::once(TableChange::Flushed));
        }
        drop(held);
        Ok(())
    }
}
