//! Who listens to which channel, and delivery.
//!
//! One lock guards the subscriptions and is held during a delivery, so all subscribers see messages
//! in one order, and a message that is published after an unsubscribe never arrives. Nothing is
//! called under it but the `wake` of inboxes.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::encoding::glob;
use crate::messages::clients::Clients;
use crate::messages::events::{Classes, Event};
use crate::messages::inbox::{Inbox, Message, OutputLimits, Published};
use crate::messages::names::{Names, Subscriber};
use crate::messages::tracking::Tracking;
use crate::messages::wait_queues::WaitQueues;

/// What is subscribed to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A channel by its name.
    Channel,
    /// All channels that match a pattern.
    Pattern,
    /// A shard channel by its name.
    Shard,
}

/// Set in `Hub::interest` while a call waits for an element.
const WAITING: u32 = 1 << 31;
/// Set in `Hub::interest` while a client tracks keys.
const TRACKING: u32 = 1 << 30;

/// The messages of one store.
#[derive(Debug, Default)]
pub(crate) struct Hub {
    subscriptions: Mutex<Subscriptions>,
    /// The calls that wait for elements.
    pub(super) queues: Mutex<WaitQueues>,
    /// Held by the one thread that serves them.
    pub(super) serving: Mutex<()>,
    /// The clients that cache keys.
    pub(super) tracking: Mutex<Tracking>,
    /// The classes of key events that are announced, [`WAITING`] and [`TRACKING`].
    interest: AtomicU32,
    next_subscriber: AtomicU64,
    clients: Clients,
}

#[derive(Debug, Default)]
struct Subscriptions {
    channels: Names,
    patterns: Names,
    shards: Names,
    /// Every inbox, for the close of the store.
    inboxes: HashMap<u64, Arc<Inbox>>,
    limits: OutputLimits,
    closed: bool,
}

impl Hub {
    /// The sessions of the store.
    pub(crate) fn clients(&self) -> &Clients {
        &self.clients
    }

    /// Registers a subscriber and returns its number. [`Hub::leave`] ends it.
    pub(crate) fn join(&self, inbox: &Arc<Inbox>) -> u64 {
        let number = self.next_subscriber.fetch_add(1, Ordering::Relaxed);
        let mut state = self.subscriptions.lock();
        if state.closed {
            inbox.close();
        }
        state.inboxes.insert(number, Arc::clone(inbox));
        number
    }

    /// Ends all subscriptions of a subscriber.
    pub(crate) fn leave(&self, subscriber: u64) {
        let mut state = self.subscriptions.lock();
        state.inboxes.remove(&subscriber);
        state.cut(subscriber);
    }

    /// Subscribes to a name. Returns the number of the subscriber's channels and patterns, or of
    /// its shard channels, and whether the subscription is new.
    pub(crate) fn subscribe(
        &self,
        kind: Kind,
        name: &[u8],
        who: u64,
        inbox: &Arc<Inbox>,
    ) -> (usize, bool) {
        let mut state = self.subscriptions.lock();
        let added = state.names(kind).add(name, who, inbox);
        (state.count_of(kind, who), added)
    }

    /// Ends a subscription. Returns the number of those that are left, and whether there was one.
    pub(crate) fn unsubscribe(&self, kind: Kind, name: &[u8], who: u64) -> (usize, bool) {
        let mut state = self.subscriptions.lock();
        let removed = state.names(kind).remove(name, who);
        (state.count_of(kind, who), removed)
    }

    /// Ends all subscriptions of a kind. Returns their names, and how many subscriptions of other
    /// kinds are left.
    pub(crate) fn unsubscribe_all(&self, kind: Kind, who: u64) -> (Vec<Arc<[u8]>>, usize) {
        let mut state = self.subscriptions.lock();
        let names = state.names(kind).remove_all(who);
        (names, state.count_of(kind, who))
    }

    /// The numbers of channels, patterns and shard channels of a subscriber.
    pub(crate) fn counts_of(&self, who: u64) -> [usize; 3] {
        let state = self.subscriptions.lock();
        [&state.channels, &state.patterns, &state.shards].map(|names| names.count_of(who))
    }

    /// The number of subscribers that a message would reach.
    pub(crate) fn receivers(&self, kind: Kind, channel: &[u8]) -> usize {
        let state = self.subscriptions.lock();
        let direct = match kind {
            Kind::Shard => &state.shards,
            _ => &state.channels,
        };
        let direct = direct.of(channel).map_or(0, |(_, subscribers)| subscribers.len());
        match kind {
            Kind::Shard => direct,
            _ => direct + state.matching(channel).map(|(_, all)| all.len()).sum::<usize>(),
        }
    }

    /// Delivers a message to all subscribers of a channel, or of a shard channel.
    pub(crate) fn publish(&self, kind: Kind, channel: &[u8], payload: &[u8]) {
        self.subscriptions.lock().publish(kind, channel, payload);
    }

    /// Announces a key event on its two channels.
    pub(crate) fn announce(&self, event: &Event) {
        let classes = self.classes();
        if !classes.has(event.class) {
            return;
        }
        let mut state = self.subscriptions.lock();
        if classes.has(Classes::KEYSPACE) {
            let channel = event.keyspace_channel();
            state.publish(Kind::Channel, &channel, event.name.as_bytes());
        }
        if classes.has(Classes::KEYEVENT) {
            state.publish(Kind::Channel, &event.keyevent_channel(), &event.key);
        }
    }

    /// Whether somebody wants to know of events of this class.
    #[inline]
    pub(crate) fn wants(&self, class: Classes) -> bool {
        let interest = self.interest.load(Ordering::Relaxed);
        interest & (class.bits() | WAITING | TRACKING) != 0
    }

    /// Whether any key event is of interest, a call waits for an element, or a client tracks keys.
    #[inline]
    pub(crate) fn wants_any(&self) -> bool {
        self.interest.load(Ordering::Relaxed) != 0
    }

    /// The classes of events that are announced.
    pub(crate) fn classes(&self) -> Classes {
        Classes::from_bits(self.interest.load(Ordering::Relaxed) & !(WAITING | TRACKING))
    }

    /// Sets the classes of events that are announced.
    pub(crate) fn set_classes(&self, classes: Classes) {
        let with = |interest: u32| Some((interest & (WAITING | TRACKING)) | classes.bits());
        let _ = self.interest.fetch_update(Ordering::SeqCst, Ordering::Relaxed, with);
    }

    /// Whether a call waits for an element. The caller holds the stripes of what it has written.
    #[inline]
    pub(crate) fn anyone_waits(&self) -> bool {
        self.interest.load(Ordering::Relaxed) & WAITING != 0
    }

    /// Whether a client tracks keys.
    #[inline]
    pub(crate) fn anyone_tracks(&self) -> bool {
        self.interest.load(Ordering::Relaxed) & TRACKING != 0
    }

    /// Whether somebody wants to know of expired keys.
    pub(crate) fn wants_expired(&self) -> bool {
        self.anyone_tracks() || self.classes().has(Classes::EXPIRED)
    }

    /// Passes on whether somebody wants to know of expired keys, one call at a time: the last one
    /// passes on what holds in the end.
    pub(crate) fn on_wanted_expired(&self, act: impl FnOnce(bool)) {
        let _one_at_a_time = self.tracking.lock();
        act(self.wants_expired());
    }

    /// Tells writers whether a client tracks keys.
    pub(super) fn set_tracking(&self, tracking: bool) {
        match tracking {
            true => self.interest.fetch_or(TRACKING, Ordering::SeqCst),
            false => self.interest.fetch_and(!TRACKING, Ordering::SeqCst),
        };
    }

    /// Tells writers whether calls wait.
    pub(super) fn set_waiting(&self, waiting: bool) {
        match waiting {
            true => self.interest.fetch_or(WAITING, Ordering::SeqCst),
            false => self.interest.fetch_and(!WAITING, Ordering::SeqCst),
        };
    }

    /// How much may wait for a slow subscriber.
    pub(crate) fn set_limits(&self, limits: OutputLimits) {
        self.subscriptions.lock().limits = limits;
        self.set_tracking_limits(limits);
    }

    /// The names of channels or shard channels that have subscribers and match the pattern.
    pub(crate) fn names(&self, kind: Kind, pattern: Option<&[u8]>) -> Vec<Arc<[u8]>> {
        let mut state = self.subscriptions.lock();
        let fits = |name: &[u8]| pattern.is_none_or(|pattern| glob::matches(pattern, name));
        let names = state.names(kind).all().map(|(name, _)| Arc::clone(name));
        names.filter(|name| fits(name)).collect()
    }

    /// The number of subscribers of a channel or shard channel, those of patterns left out.
    pub(crate) fn subscribers(&self, kind: Kind, name: &[u8]) -> usize {
        self.subscriptions.lock().names(kind).of(name).map_or(0, |(_, all)| all.len())
    }

    /// The number of names that have subscribers.
    pub(crate) fn len(&self, kind: Kind) -> usize {
        self.subscriptions.lock().names(kind).len()
    }

    /// Ends all waits: receivers and waiting calls learn that the store is closed.
    pub(crate) fn close(&self) {
        let inboxes: Vec<Arc<Inbox>> = {
            let mut state = self.subscriptions.lock();
            state.closed = true;
            state.inboxes.values().cloned().collect()
        };
        inboxes.iter().for_each(|inbox| inbox.close());
        self.close_waiters();
    }
}

impl Subscriptions {
    fn names(&mut self, kind: Kind) -> &mut Names {
        match kind {
            Kind::Channel => &mut self.channels,
            Kind::Pattern => &mut self.patterns,
            Kind::Shard => &mut self.shards,
        }
    }

    /// The count that a confirmation carries.
    fn count_of(&self, kind: Kind, who: u64) -> usize {
        match kind {
            Kind::Shard => self.shards.count_of(who),
            _ => self.channels.count_of(who) + self.patterns.count_of(who),
        }
    }

    /// The patterns that match a channel, with their subscribers.
    fn matching(&self, channel: &[u8]) -> impl Iterator<Item = (&Arc<[u8]>, &[Subscriber])> {
        self.patterns.all().filter(move |(pattern, _)| glob::matches(pattern, channel))
    }

    fn publish(&mut self, kind: Kind, channel: &[u8], payload: &[u8]) {
        let direct = match kind {
            Kind::Shard => self.shards.of(channel),
            _ => self.channels.of(channel),
        };
        let without_patterns = kind == Kind::Shard || self.patterns.len() == 0;
        if direct.is_none() && without_patterns {
            return;
        }
        let payload: Arc<[u8]> = payload.into();
        let mut slow = Vec::new();
        if let Some((channel, subscribers)) = direct {
            let (channel, payload) = (Arc::clone(channel), Arc::clone(&payload));
            let message: Arc<Published> = Arc::from(match kind {
                Kind::Shard => Message::Shard { channel, payload },
                _ => Message::Channel { channel, payload },
            });
            for (number, inbox) in subscribers {
                if !inbox.push(Arc::clone(&message), &self.limits) {
                    slow.push(*number);
                }
            }
        }
        if !without_patterns {
            let channel: Arc<[u8]> = channel.into();
            for (pattern, subscribers) in self.matching(&channel) {
                let message: Arc<Published> = Arc::from(Message::Pattern {
                    pattern: Arc::clone(pattern),
                    channel: Arc::clone(&channel),
                    payload: Arc::clone(&payload),
                });
                for (number, inbox) in subscribers {
                    if !inbox.push(Arc::clone(&message), &self.limits) {
                        slow.push(*number);
                    }
                }
            }
        }
        slow.into_iter().for_each(|subscriber| self.cut(subscriber));
    }

    /// Removes all subscriptions of a subscriber.
    fn cut(&mut self, subscriber: u64) {
        for names in [&mut self.channels, &mut self.patterns, &mut self.shards] {
            names.remove_all(subscriber);
        }
    }
}

#[cfg(test)]
mod tests;
