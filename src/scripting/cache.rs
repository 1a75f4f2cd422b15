//! The scripts that a store knows by their digest. They live as long as the store is open.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use super::shebang::Shebang;

/// The most scripts that are kept.
const MOST_SCRIPTS: usize = 10_000;
/// The most bytes of their texts together.
const MOST_BYTES: usize = 64 << 20;

/// A script that compiles.
#[derive(Debug)]
pub(super) struct Script {
    /// The digest, in hexadecimal digits.
    pub(super) sha1: Arc<str>,
    /// The text after the first line, if that is a shebang.
    pub(super) source: Vec<u8>,
    pub(super) shebang: Shebang,
}

/// The scripts of a store. The oldest ones make room for new ones.
#[derive(Debug, Default)]
pub(super) struct ScriptCache {
    scripts: HashMap<Arc<str>, Arc<Script>>,
    order: VecDeque<Arc<str>>,
    bytes: usize,
}

impl ScriptCache {
    /// The script with this digest, in any case.
    pub(super) fn find(&self, sha1: &[u8]) -> Option<Arc<Script>> {
        let sha1 = std::str::from_utf8(sha1).ok()?;
        if let Some(script) = self.scripts.get(sha1) {
            return Some(Arc::clone(script));
        }
        self.scripts.get(sha1.to_ascii_lowercase().as_str()).cloned()
    }

    /// Keeps a script.
    pub(super) fn add(&mut self, script: &Arc<Script>) {
        if self.scripts.insert(Arc::clone(&script.sha1), Arc::clone(script)).is_some() {
            return;
        }
        self.bytes += script.source.len();
        self.order.push_back(Arc::clone(&script.sha1));
        while self.order.len() > MOST_SCRIPTS || self.bytes > MOST_BYTES && self.order.len() > 1 {
            let Some(oldest) = self.order.pop_front() else { break };
            if let Some(script) = self.scripts.remove(&oldest) {
                self.bytes -= script.source.len();
            }
        }
    }

    /// Forgets all scripts.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn script(number: usize, bytes: usize) -> Arc<Script> {
        let (sha1, source) = (format!("{number:040x}").into(), vec![b' '; bytes]);
        Arc::new(Script { sha1, source, shebang: Shebang::default() })
    }

    #[test]
    fn the_oldest_scripts_make_room() {
        let mut cache = ScriptCache::default();
        (0..MOST_SCRIPTS + 5).for_each(|n| cache.add(&script(n, 1)));
        assert!(cache.find(script(4, 0).sha1.as_bytes()).is_none());
        assert!(cache.find(script(5, 0).sha1.as_bytes()).is_some());
        assert_eq!(cache.bytes, MOST_SCRIPTS);
        (0..5).for_each(|n| cache.add(&script(n + 1_000_000, MOST_BYTES / 2)));
        assert!(cache.bytes <= MOST_BYTES && cache.scripts.len() == cache.order.len());
        cache.add(&script(7, MOST_BYTES * 2));
        assert_eq!((cache.scripts.len(), cache.bytes), (1, MOST_BYTES * 2));
    }

    #[test]
    fn digests_are_found_in_any_case() {
        let mut cache = ScriptCache::default();
        cache.add(&script(0xabc, 1));
        assert!(cache.find(format!("{:040X}", 0xabc).as_bytes()).is_some());
        assert!(cache.find(b"\xff").is_none());
    }
}
