//! What the hub does for clients that cache keys: see `tracking`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

use crate::messages::hub::Hub;
use crate::messages::inbox::OutputLimits;
use crate::messages::peer::Peer;
use crate::messages::tracking::{
    OpenRead, TableChange, Tracker, Tracking, TrackingCounts, TrackingMode,
};

impl Hub {
    /// Makes a session known to others by its number, until [`Hub::part`].
    pub(crate) fn meet_peer(&self, peer: &Arc<Peer>) {
        self.tracking.lock().peers.insert(peer.id, Arc::clone(peer));
    }

    /// Forgets a session.
    pub(crate) fn part(&self, id: u64) {
        let mut tracking = self.tracking.lock();
        tracking.peers.remove(&id);
        self.remove_tracker(&mut tracking, id);
    }

    /// Whether a session has this number.
    pub(crate) fn knows_peer(&self, id: u64) -> bool {
        self.tracking.lock().peers.contains_key(&id)
    }

    /// Begins to track for a session, or changes how. Prefixes are added to those that it has.
    pub(crate) fn track(&self, peer: &Arc<Peer>, mode: TrackingMode, prefixes: &[&[u8]]) {
        let mut tracking = self.tracking.lock();
        let tracker = tracking.trackers.entry(peer.id).or_insert_with(|| Tracker {
            peer: Arc::clone(peer),
            mode,
            prefixes: BTreeSet::new(),
            broken: false,
        });
        (tracker.mode, tracker.broken) = (mode, false);
        tracker.prefixes.extend(prefixes.iter().map(|prefix| prefix.to_vec()));
        if mode.broadcasts && prefixes.is_empty() {
            tracker.prefixes.insert(Vec::new());
        }
        self.set_tracking(true);
        drop(tracking);
        fence(Ordering::SeqCst);
    }

    /// Ends tracking for a session.
    pub(crate) fn untrack(&self, id: u64) {
        self.remove_tracker(&mut self.tracking.lock(), id);
    }

    fn remove_tracker(&self, tracking: &mut Tracking, id: u64) {
        tracking.reads.retain(|read| read.client != id);
        if tracking.trackers.remove(&id).is_some() && tracking.trackers.is_empty() {
            tracking.table.clear();
            self.set_tracking(false);
        }
    }

    /// The prefixes of a client in broadcast mode, in order, and whether the client that its
    /// messages go to is gone.
    pub(crate) fn tracker_state(&self, id: u64) -> (Vec<Vec<u8>>, bool) {
        let tracking = self.tracking.lock();
        let tracker = tracking.trackers.get(&id);
        tracker.map_or((Vec::new(), false), |tracker| {
            (tracker.prefixes.iter().cloned().collect(), tracker.broken)
        })
    }

    /// What INFO tells of tracking.
    pub(crate) fn tracking_counts(&self) -> TrackingCounts {
        let tracking = self.tracking.lock();
        let prefixes: BTreeSet<&Vec<u8>> =
            tracking.trackers.values().flat_map(|tracker| &tracker.prefixes).collect();
        TrackingCounts {
            clients: tracking.trackers.len(),
            keys: tracking.table.len(),
            items: tracking.table.items(),
            prefixes: prefixes.len(),
        }
    }

    /// Sets how many keys the table may hold; zero is no limit.
    pub(crate) fn set_tracking_max_keys(&self, max_keys: usize) {
        let mut tracking = self.tracking.lock();
        tracking.max_keys = max_keys;
        tracking.give_up_excess();
    }

    pub(super) fn set_tracking_limits(&self, limits: OutputLimits) {
        self.tracking.lock().limits = limits;
    }

    /// Announces that a client is about to read these keys. [`Hub::end_read`] must follow.
    pub(crate) fn begin_read(&self, client: u64, keys: Vec<Box<[u8]>>) {
        let read = OpenRead { client, keys, changed: BTreeSet::new(), flushed: false };
        self.tracking.lock().reads.push(read);
        fence(Ordering::SeqCst);
    }

    /// Ends a read: tells the client which of its keys others have changed meanwhile.
    pub(crate) fn end_read(&self, client: u64) {
        let mut tracking = self.tracking.lock();
        let Some(at) = tracking.reads.iter().position(|read| read.client == client) else { return };
        let read = tracking.reads.swap_remove(at);
        if read.flushed {
            for key in &read.keys {
                tracking.table.forget(key, client);
            }
            return tracking.send(client, None);
        }
        for key in read.changed {
            if tracking.table.forget(&key, client) {
                tracking.send(client, Some(Arc::new([Arc::from(key)])));
            }
        }
    }

    /// Applies what a commit or read did, in order. `origin` is the client that did it, zero for
    /// one that does not track.
    #[cold]
    pub(crate) fn apply_tracking<'a>(
        &self,
        origin: u64,
        changes: impl Iterator<Item = TableChange<'a>>,
    ) {
        let mut tracking = self.tracking.lock();
        if tracking.trackers.is_empty() {
            return;
        }
        // Whether the client itself has changed the key.
        let mut changed: BTreeMap<&[u8], bool> = BTreeMap::new();
        for change in changes {
            match change {
                TableChange::Read(keys) => tracking.remember(origin, keys),
                TableChange::Flushed => tracking.flush(origin),
                TableChange::Changed { key, expired } => {
                    tracking.invalidate(origin, key);
                    changed.insert(key, !expired);
                }
            }
        }
        tracking.broadcast(origin, &changed);
    }
}
