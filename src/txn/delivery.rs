//! What a command or transaction has to say to others: messages and key events. They are delivered
//! after the commit, in order, while the stripes of the written keys are still held, so that the
//! events of a key have the order of its commits. A command that is rolled back says nothing.

use std::collections::HashSet;

use crate::encoding::keys::split_meta_key;
use crate::error::Result;
use crate::messages::events::{Classes, Event};
use crate::messages::{Kind, OutputLimits, TableChange, TrackingCounts};
use crate::txn::db::Db;
use crate::txn::execution::ChangeTracking;
use crate::txn::outgoing::{ExpiredKey, Origin, Outbox, Outgoing};
use crate::txn::overlay::Overlay;
use crate::txn::store::Store;
use crate::txn::tx::Tx;

impl Tx<'_> {
    /// Publishes a message after the commit. Returns the number of subscribers that it would reach
    /// now.
    pub(crate) fn send(&mut self, kind: Kind, channel: &[u8], payload: &[u8]) -> i64 {
        let receivers = self.store().hub().receivers(kind, channel);
        if receivers > 0 {
            let (channel, payload) = (channel.into(), payload.into());
            self.say(Outgoing::Message { kind, channel, payload });
        }
        i64::try_from(receivers).unwrap_or(i64::MAX)
    }

    /// Announces an event of a key after the commit, if anybody wants to know.
    #[inline]
    pub(crate) fn notify(&mut self, class: Classes, name: &'static str, key: &[u8]) {
        if self.store().hub().wants(class) {
            self.say_event(class, name, key);
        }
    }

    /// Announces an event that takes from a collection, and the deletion of the key if nothing is
    /// left of it.
    #[inline]
    pub(crate) fn notify_taken(
        &mut self,
        class: Classes,
        name: &'static str,
        key: &[u8],
    ) -> Result<()> {
        if !self.store().hub().wants_any() {
            return Ok(());
        }
        self.say_event(class, name, key);
        if self.record(key)?.is_none() {
            self.say_event(Classes::GENERIC, "del", key);
        }
        Ok(())
    }

    /// Looks at a key that is about to be overwritten blindly, if somebody wants to know whether it
    /// has expired.
    #[inline]
    pub(crate) fn meet(&self, key: &[u8]) -> Result<()> {
        if self.store().hub().wants_any() { self.record(key).map(drop) } else { Ok(()) }
    }

    #[cold]
    fn say_event(&mut self, class: Classes, name: &'static str, key: &[u8]) {
        let (database, key) = (self.database(), key.into());
        self.say(Outgoing::Event(Event { class, name, database, key }));
    }
}

impl Db {
    /// Sets how much may wait for a slow subscriber before it is cut off.
    pub fn set_message_limits(&self, limits: OutputLimits) {
        self.store().hub().set_limits(limits);
    }

    /// The numbers of channels, of patterns and of shard channels that have subscribers.
    pub fn channel_counts(&self) -> [usize; 3] {
        [Kind::Channel, Kind::Pattern, Kind::Shard].map(|kind| self.store().hub().len(kind))
    }

    /// The number of calls that wait for elements.
    pub fn waiting_calls(&self) -> usize {
        self.store().hub().waiting_calls()
    }

    /// Turns on key events: letters of `KEg$lshzxetdmnA`, as Redis's `notify-keyspace-events`.
    /// Events are sent to the channels `__keyspace@N__:key` (K) and `__keyevent@N__:event` (E)
    /// after the commit. Without letters there are none, which is the default.
    pub fn set_keyspace_events(&self, letters: &str) -> Result<()> {
        let classes = Classes::parse(letters)?;
        self.store().hub().set_classes(classes);
        self.store().keep_expired_if_wanted();
        Ok(())
    }

    /// Sets how many keys CLIENT TRACKING remembers for all sessions; zero is no limit. Sessions are
    /// told of keys that no longer fit as if they had changed. The default is a million. All keys
    /// together take at most 256 MiB in any case.
    pub fn set_tracking_max_keys(&self, max_keys: usize) {
        self.store().hub().set_tracking_max_keys(max_keys);
    }

    /// Sets the milliseconds after which a script counts as slow, as the option `script_busy_ms`.
    pub fn set_script_busy_ms(&self, ms: u64) {
        let after = (ms > 0).then(|| std::time::Duration::from_millis(ms));
        self.store().stripes().scripts().set_slow_after(after);
    }

    /// The milliseconds after which a script counts as slow; zero if none does.
    pub(crate) fn script_busy_ms(&self) -> u64 {
        let after = self.store().stripes().scripts().slow_after().unwrap_or_default();
        u64::try_from(after.as_millis()).unwrap_or(u64::MAX)
    }

    /// The numbers of sessions that track keys, of their keys and of their prefixes.
    pub fn tracking_counts(&self) -> TrackingCounts {
        self.store().hub().tracking_counts()
    }

    /// The classes of key events that are sent, in letters.
    pub fn keyspace_events(&self) -> String {
        self.store().hub().classes().letters()
    }
}

impl Store {
    /// Delivers what the commands of an overlay have to say, and notes the keys that calls wait
    /// for. The caller holds the stripes of all keys in the overlay, and calls
    /// [`Store::serve_waiters`] once it has released them.
    #[cold]
    pub(super) fn deliver(&self, overlay: &Overlay) {
        let outbox = overlay.take_outbox();
        self.send_all(&outbox);
        if self.hub().anyone_tracks() {
            self.tell_trackers(&outbox, Some(overlay));
        }
        if self.hub().anyone_waits() {
            self.note_written(overlay, &outbox);
        }
    }

    fn send_all(&self, outbox: &Outbox) {
        for outgoing in &outbox.outgoing {
            match outgoing {
                Outgoing::Message { kind, channel, payload } => {
                    self.hub().publish(*kind, channel, payload);
                }
                Outgoing::Event(event) => self.hub().announce(event),
                Outgoing::Read(_) | Outgoing::Flushed => {}
            }
        }
    }

    /// Tells clients that track keys what was read and changed, in order. Keys that were changed
    /// without an event follow: tracking may have begun after their command ran.
    #[cold]
    fn tell_trackers(&self, outbox: &Outbox, overlay: Option<&Overlay>) {
        let mut changed: Vec<Vec<u8>> = Vec::new();
        if let Some(overlay) = overlay {
            let known: HashSet<&[u8]> = outbox.outgoing.iter().filter_map(changed_key).collect();
            overlay.changed_keys(|meta| {
                changed.extend(
                    split_meta_key(meta)
                        .filter(|(_, key)| !known.contains(key))
                        .map(|(_, key)| key.to_vec()),
                );
            });
        }
        let rest = changed.iter().map(|key| TableChange::Changed { key, expired: false });
        let said = outbox.outgoing.iter().filter_map(|outgoing| match outgoing {
            Outgoing::Read(keys) => Some(TableChange::Read(keys)),
            Outgoing::Flushed => Some(TableChange::Flushed),
            Outgoing::Message { .. } => None,
            Outgoing::Event(event) => changed_key(outgoing)
                .map(|key| TableChange::Changed { key, expired: event.class == Classes::EXPIRED }),
        });
        self.hub().apply_tracking(outbox.client(), said.chain(rest));
    }

    /// Keeps compactions from removing expired keys silently while somebody wants to know of them.
    pub(crate) fn keep_expired_if_wanted(&self) {
        self.hub().on_wanted_expired(|wanted| self.clock().keep_expired(wanted));
    }

    /// Delivers what a read has to say, and deletes the expired keys that it has met, which
    /// announces them.
    #[cold]
    pub(super) fn deliver_read(&self, database: u32, outbox: &Outbox) {
        self.expire_met(database, &outbox.expired, outbox.client());
        self.send_all(outbox);
        if self.hub().anyone_tracks() {
            self.tell_trackers(outbox, None);
        }
    }

    /// Delivers what a failed command has found. The caller holds no lock.
    #[cold]
    pub(super) fn deliver_findings(&self, database: u32, mut outbox: Outbox) {
        outbox.drop_claims(0);
        // Their deletion announces them.
        for (_, key) in &outbox.expired {
            outbox.outgoing.retain(|outgoing| !outgoing.is_expiry_of(key));
        }
        self.deliver_read(database, &outbox);
    }

    /// Deletes keys of this database that have expired, and announces that. `client` is the number
    /// of the client that met them, if it tracks keys. The caller holds no lock.
    #[cold]
    pub(super) fn expire_met(&self, database: u32, keys: &[ExpiredKey], client: u64) {
        for (space, key) in keys {
            if self.spaces().of(database).ok() == Some(*space) {
                let meet = |tx: &mut Tx<'_>| {
                    tx.set_origin((client != 0).then_some(Origin { client, keys: None }));
                    tx.record(key).map(drop)
                };
                // If this fails, the cleaner deletes the key later.
                let _ = self.write(database, &[key], ChangeTracking::Ignored, meet);
            }
        }
    }

    /// Notes the changed keys for calls that wait: first those of events, in their order, then all
    /// others.
    fn note_written(&self, overlay: &Overlay, outbox: &Outbox) {
        if !overlay.assignments().is_empty() {
            return self.hub().note_all_written();
        }
        let mut seen: HashSet<Vec<u8>> = HashSet::new();
        let mut keys: Vec<Vec<u8>> = Vec::new();
        let mut add = |key: &[u8]| {
            if seen.insert(key.to_vec()) {
                keys.push(key.to_vec());
            }
        };
        for outgoing in &outbox.outgoing {
            if let Outgoing::Event(event) = outgoing {
                add(&event.key);
            }
        }
        overlay.changed_keys(|meta| {
            if let Some((_, key)) = split_meta_key(meta) {
                add(key);
            }
        });
        self.hub().note_written(keys.iter().map(Vec::as_slice));
    }

    /// Serves the calls that wait for what was written. The caller holds no lock.
    #[inline]
    pub(super) fn serve_waiters(&self) {
        if self.hub().anyone_waits() {
            self.hub().serve();
        }
    }
}

/// The key that an event tells to have changed.
fn changed_key(outgoing: &Outgoing) -> Option<&[u8]> {
    match outgoing {
        Outgoing::Event(event)
            if event.class != Classes::KEY_MISS && event.class != Classes::NEW =>
        {
            Some(&event.key)
        }
        _ => None,
    }
}
