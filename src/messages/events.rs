//! Key events: what happened to a key, by classes that `notify-keyspace-events` turns on.

use crate::error::{Error, ErrorKind, Result};

/// A set of classes of events, and where they are announced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Classes(u32);

/// The letters of the classes, in the order in which CONFIG GET shows them.
const LETTERS: [(char, Classes); 13] = [
    ('g', Classes::GENERIC),
    ('$', Classes::STRING),
    ('l', Classes::LIST),
    ('s', Classes::SET),
    ('h', Classes::HASH),
    ('z', Classes::ZSET),
    ('x', Classes::EXPIRED),
    ('e', Classes::EVICTED),
    ('t', Classes::STREAM),
    ('d', Classes::MODULE),
    ('n', Classes::NEW),
    ('m', Classes::KEY_MISS),
    ('K', Classes::KEYSPACE),
];

impl Classes {
    /// Events are sent to the channel of the key, `__keyspace@N__:key`.
    pub(crate) const KEYSPACE: Self = Self(1);
    /// Events are sent to the channel of the event, `__keyevent@N__:event`.
    pub(crate) const KEYEVENT: Self = Self(1 << 1);
    /// Commands on keys of any type.
    pub(crate) const GENERIC: Self = Self(1 << 2);
    /// Commands on strings.
    pub(crate) const STRING: Self = Self(1 << 3);
    /// Commands on lists.
    pub(crate) const LIST: Self = Self(1 << 4);
    /// Commands on sets.
    pub(crate) const SET: Self = Self(1 << 5);
    /// Commands on hashes.
    pub(crate) const HASH: Self = Self(1 << 6);
    /// Commands on sorted sets.
    pub(crate) const ZSET: Self = Self(1 << 7);
    /// Keys that have expired.
    pub(crate) const EXPIRED: Self = Self(1 << 8);
    /// Keys that were evicted; there are none.
    pub(crate) const EVICTED: Self = Self(1 << 9);
    /// Commands on streams.
    pub(crate) const STREAM: Self = Self(1 << 10);
    /// Reads of keys that do not exist.
    pub(crate) const KEY_MISS: Self = Self(1 << 11);
    /// Types of modules; there are none.
    pub(crate) const MODULE: Self = Self(1 << 13);
    /// Keys that did not exist before.
    pub(crate) const NEW: Self = Self(1 << 14);
    /// What `A` stands for: all but reads of missing keys and new keys.
    const ALL: Self = Self(
        Self::GENERIC.0
            | Self::STRING.0
            | Self::LIST.0
            | Self::SET.0
            | Self::HASH.0
            | Self::ZSET.0
            | Self::EXPIRED.0
            | Self::EVICTED.0
            | Self::STREAM.0
            | Self::MODULE.0,
    );

    pub(crate) fn bits(self) -> u32 {
        self.0
    }

    pub(crate) fn from_bits(bits: u32) -> Self {
        Self(bits)
    }

    /// Whether a class of `other` is in the set.
    pub(crate) fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Reads the letters of `notify-keyspace-events`.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let mut classes = Self::default();
        for letter in text.chars() {
            let found = LETTERS.iter().find(|(own, _)| *own == letter).map(|(_, class)| *class);
            let class = match (letter, found) {
                ('A', _) => Self::ALL,
                ('E', _) => Self::KEYEVENT,
                (_, Some(class)) => class,
                _ => {
                    let message = format!(
                        "there is no class of events '{letter}': use letters of KEg$lshzxetdmnA"
                    );
                    return Err(Error::new(ErrorKind::Invalid, message));
                }
            };
            classes.0 |= class.0;
        }
        Ok(classes)
    }

    /// The letters, as CONFIG GET shows them.
    pub(crate) fn letters(self) -> String {
        let mut text = String::new();
        let all = self.0 & Self::ALL.0 == Self::ALL.0;
        if all {
            text.push('A');
        }
        for (letter, class) in LETTERS {
            if self.has(class) && !(all && Self::ALL.has(class)) {
                // Redis shows K and E before m, and n before both.
                if letter == 'm' {
                    continue;
                }
                text.push(letter);
            }
        }
        if self.has(Self::KEYEVENT) {
            text.push('E');
        }
        if self.has(Self::KEY_MISS) {
            text.push('m');
        }
        text
    }
}

/// Letters of `notify-keyspace-events` in the order in which CONFIG GET shows them. Fails for a
/// letter that names no class.
pub fn normalized_event_classes(letters: &str) -> Result<String> {
    Classes::parse(letters).map(Classes::letters)
}

/// Something that happened to a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) class: Classes,
    /// The name, such as `lpush`.
    pub(crate) name: &'static str,
    pub(crate) database: u32,
    pub(crate) key: Box<[u8]>,
}

impl Event {
    /// The channel that carries the events of this key.
    pub(super) fn keyspace_channel(&self) -> Vec<u8> {
        let prefix = format!("__keyspace@{}__:", self.database);
        [prefix.as_bytes(), &self.key].concat()
    }

    /// The channel that carries the keys of this event.
    pub(super) fn keyevent_channel(&self) -> Vec<u8> {
        format!("__keyevent@{}__:{}", self.database, self.name).into_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_are_read_and_shown_as_redis_does() {
        for (given, shown) in [
            ("", ""),
            ("KEA", "AKE"),
            ("Elg", "glE"),
            ("Kx", "xK"),
            ("AKEm", "AKEm"),
            ("g$lshzxetdK", "AK"),
        ] {
            assert_eq!(Classes::parse(given).unwrap().letters(), shown, "{given}");
        }
        assert!(Classes::parse("Q").unwrap_err().message().contains("'Q'"));
    }

    #[test]
    fn an_event_has_two_channels() {
        let class = Classes::LIST;
        let event = Event { class, name: "lpush", database: 3, key: b"k"[..].into() };
        assert_eq!(event.keyspace_channel(), b"__keyspace@3__:k");
        assert_eq!(event.keyevent_channel(), b"__keyevent@3__:lpush");
    }
}
