//! Subscribers by name, and names by subscriber, for one kind of subscription.

use std::collections::{HashMap, HashSet};
use std::hash::RandomState;
use std::sync::Arc;

use smallvec::SmallVec;

use crate::messages::inbox::Inbox;

/// A subscriber: its number, and its queue.
pub(super) type Subscriber = (u64, Arc<Inbox>);

/// The channels, patterns or shard channels that have subscribers. Clients choose the names, so the
/// hash is seeded: nobody can choose names that collide.
#[derive(Debug, Default)]
pub(super) struct Names {
    /// The subscribers of each name, by number.
    by_name: HashMap<Arc<[u8]>, SmallVec<[Subscriber; 1]>, RandomState>,
    /// The names of each subscriber.
    by_subscriber: HashMap<u64, HashSet<Arc<[u8]>, RandomState>>,
}

impl Names {
    /// Adds a subscription; false if it was there already.
    pub(super) fn add(&mut self, name: &[u8], subscriber: u64, inbox: &Arc<Inbox>) -> bool {
        let name = match self.by_name.get_key_value(name) {
            Some((shared, _)) => Arc::clone(shared),
            None => Arc::from(name),
        };
        if !self.by_subscriber.entry(subscriber).or_default().insert(Arc::clone(&name)) {
            return false;
        }
        let subscribers = self.by_name.entry(name).or_default();
        let at = subscribers.partition_point(|(number, _)| *number < subscriber);
        subscribers.insert(at, (subscriber, Arc::clone(inbox)));
        true
    }

    /// Removes a subscription; false if there was none.
    pub(super) fn remove(&mut self, name: &[u8], subscriber: u64) -> bool {
        let Some(own) = self.by_subscriber.get_mut(&subscriber) else { return false };
        if !own.remove(name) {
            return false;
        }
        if own.is_empty() {
            self.by_subscriber.remove(&subscriber);
        }
        self.forget(name, subscriber);
        true
    }

    /// Removes all subscriptions of a subscriber and returns their names.
    pub(super) fn remove_all(&mut self, subscriber: u64) -> Vec<Arc<[u8]>> {
        let own = self.by_subscriber.remove(&subscriber).unwrap_or_default();
        own.into_iter().inspect(|name| self.forget(name, subscriber)).collect()
    }

    fn forget(&mut self, name: &[u8], subscriber: u64) {
        let Some(subscribers) = self.by_name.get_mut(name) else { return };
        if let Ok(at) = subscribers.binary_search_by_key(&subscriber, |(number, _)| *number) {
            subscribers.remove(at);
        }
        if subscribers.is_empty() {
            self.by_name.remove(name);
            // A million channels that came and went must not hold their memory.
            if self.by_name.capacity() > 1024 && self.by_name.len() < self.by_name.capacity() / 4 {
                self.by_name.shrink_to_fit();
            }
        }
    }

    /// The subscribers of a name.
    pub(super) fn of(&self, name: &[u8]) -> Option<(&Arc<[u8]>, &[Subscriber])> {
        let (name, subscribers) = self.by_name.get_key_value(name)?;
        Some((name, subscribers))
    }

    /// The number of names of a subscriber.
    pub(super) fn count_of(&self, subscriber: u64) -> usize {
        self.by_subscriber.get(&subscriber).map_or(0, HashSet::len)
    }

    /// The number of names that have subscribers.
    pub(super) fn len(&self) -> usize {
        self.by_name.len()
    }

    #[cfg(test)]
    pub(super) fn capacity(&self) -> usize {
        self.by_name.capacity()
    }

    /// All names with their subscribers.
    pub(super) fn all(&self) -> impl Iterator<Item = (&Arc<[u8]>, &[Subscriber])> {
        self.by_name.iter().map(|(name, subscribers)| (name, subscribers.as_slice()))
    }
}
