//! Upkeep of a whole store on request: closing, flushing, compaction, reclaiming space.

use crate::admin::stats::Stat;
use crate::engine::Stats;
use crate::error::{Error, Result};
use crate::reclaim::cleaner::Pace;
use crate::txn::Db;

impl Db {
    /// Stops background work, flushes, and releases the directory. Fails if the last flush fails;
    /// the store is closed for all handles either way.
    pub fn close(&self) -> Result<()> {
        self.store().close()
    }

    /// Ends every [`Db::wait`], and nothing else. A caller that is about to close uses it to let
    /// running calls return first.
    pub(crate) fn announce_close(&self) {
        self.store().hub().close();
        self.store().engine().announce_close();
    }

    /// Makes every earlier write durable, whatever the sync mode.
    pub fn sync(&self) -> Result<()> {
        self.store().engine().sync()
    }

    /// Writes the memtables to table files.
    pub fn flush(&self) -> Result<()> {
        self.store().engine().flush()
    }

    /// Flushes and merges everything, and returns when the old files are gone. In a store that an
    /// earlier version has written, collections and large strings from before then first get the form
    /// in which ranks, counts and changes take a time that does not grow with their size: each key in
    /// a commit of its own, under its lock.
    pub fn compact(&self) -> Result<()> {
        self.store().rewrite_older()?;
        self.store().engine().compact()
    }

    /// Resumes writing after [`crate::ErrorKind::Full`], once there is space.
    pub fn resume(&self) -> Result<()> {
        self.store().engine().resume()
    }

    /// The statistics of the engine.
    pub fn engine_stats(&self) -> Stats {
        self.store().engine().stats()
    }

    /// Deletes every key that has expired by now, and returns their number. A background thread
    /// does the same every [`crate::Options::ttl_cleaner_interval_s`].
    pub fn clean_expired(&self) -> Result<u64> {
        self.store().clean(Pace::Full)
    }

    /// Reclaims the space of deleted and expired data where that is worth it, and returns when it
    /// is done: tables that hold nothing else are dropped unread, those that hold mostly garbage
    /// are rewritten. Background threads do the same within [`crate::Options::reclaim_interval_s`];
    /// [`Db::compact`] rewrites everything.
    pub fn reclaim(&self) -> Result<()> {
        self.store().engine().reclaim()
    }

    /// Checks that everything stored is consistent, and returns the problems found. Reads the whole
    /// store at one read point; other threads go on.
    pub fn check(&self) -> Result<Vec<String>> {
        self.store().check()
    }

    /// The statistics of the store by name.
    pub fn stats(&self) -> Result<Vec<Stat>> {
        self.store().stats()
    }

    /// The statistic of this name. Unless it is about garbage, it costs less than all of them.
    pub fn stat(&self, name: &str) -> Result<Option<Stat>> {
        self.store().stat(name)
    }

    /// Makes the block cache smaller by `bytes`, down to an eighth of its share of the memory budget,
    /// until the next call. A program whose memory is limited as a whole gives way in this manner to
    /// what else it needs: buffers of its own, or memory that its allocator holds back.
    pub fn lend_cache(&self, bytes: u64) {
        self.store().engine().lend_cache(bytes);
    }

    /// Refuses writes until the store is opened again; reads go on.
    pub fn degrade(&self, cause: &Error) {
        self.store().engine().degrade(cause);
    }

    /// Closes the descriptor of the directory lock in a forked child, so that the child does not
    /// keep the store locked after its parent has gone. Safe in a `pthread_atfork` handler.
    pub fn abandon_in_child(&self) {
        self.store().engine().abandon_lock();
    }
}
