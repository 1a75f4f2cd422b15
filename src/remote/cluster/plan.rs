//! Which nodes of a cluster run a command, by its keys.

use super::slots::slot_of;
use crate::commands::keys_of;
use crate::error::{Error, ErrorKind, Result};
use crate::remote::call::Call;

/// How the replies of several nodes become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Join {
    /// The sum of numbers.
    Sum,
    /// All elements, one node after the other.
    Concatenation,
    /// The first reply; an error of one node is the error of all.
    First,
}

/// Which nodes run a command.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Plan {
    /// Any node.
    Any,
    /// The node of a slot.
    Slot(u16),
    /// Every node, and how their replies are joined.
    Every(Join),
    /// One node after the other, until one has a reply that is not nil.
    UntilFound,
    /// A page of a scan, which goes from node to node.
    Scan,
    /// Parts of the command, one per slot.
    Split(Split),
}

/// A command whose keys are in several slots, in parts that have one slot each.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Split {
    pub(super) parts: Vec<Part>,
    /// The number of arguments that belong to a key, itself included.
    pub(super) stride: usize,
    pub(super) join: SplitJoin,
}

/// How the replies to the parts become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SplitJoin {
    /// The sum of numbers.
    Sum,
    /// The elements, in the order of the keys.
    ByKey,
    /// `OK`, which each node replies.
    Ok,
}

/// The keys of one slot, by their places among the keys of the command.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) slot: u16,
    pub(super) places: Vec<usize>,
}

/// Commands without keys that concern every node.
const EVERY: [(&str, Join); 5] = [
    ("DBSIZE", Join::Sum),
    ("FLUSHALL", Join::First),
    ("FLUSHDB", Join::First),
    ("KEYS", Join::Concatenation),
    ("SCRIPT", Join::First),
];

/// Commands that can be split by their keys: the arguments per key, and how replies are joined.
const SPLITS: [(&str, usize, SplitJoin); 6] = [
    ("DEL", 1, SplitJoin::Sum),
    ("EXISTS", 1, SplitJoin::Sum),
    ("MGET", 1, SplitJoin::ByKey),
    ("MSET", 2, SplitJoin::Ok),
    ("TOUCH", 1, SplitJoin::Sum),
    ("UNLINK", 1, SplitJoin::Sum),
];

/// Checks that keys are in one slot, which `slot` names once it is known. `what` needs it.
pub(in crate::remote) fn join_slot(
    slot: &mut Option<u16>,
    keys: &[&[u8]],
    what: &str,
) -> Result<()> {
    for key in keys {
        let own = slot_of(key);
        if *slot.get_or_insert(own) != own {
            let message = format!(
                "the keys of {what} on a cluster need one slot, and '{}' is in another: give them \
                 a common hash tag, as in {{tag}}name",
                key.escape_ascii()
            );
            return Err(Error::new(ErrorKind::Unsupported, message));
        }
    }
    Ok(())
}

impl Plan {
    /// Plans a command. It fails if the keys are in several slots and the command cannot be split.
    pub(super) fn of(call: &Call<'_>) -> Result<Self> {
        let Some(entry) = call.entry else { return Ok(Self::Any) };
        let name = call.name();
        match name {
            "SCAN" => return Ok(Self::Scan),
            "RANDOMKEY" => return Ok(Self::UntilFound),
            "FUNCTION" if call.only_reads() => return Ok(Self::Any),
            "FUNCTION" => return Ok(Self::Every(Join::First)),
            // The channel of a shard has the slot of a key with its name.
            "SPUBLISH" => {
                let channel = call.argv.get(1).copied().unwrap_or_default();
                return Ok(Self::Slot(slot_of(channel)));
            }
            _ => {}
        }
        if let Some((_, join)) = EVERY.iter().find(|(known, _)| *known == name) {
            return Ok(Self::Every(*join));
        }
        let keys = keys_of(entry, call.argv);
        let mut slots = keys.iter().map(|key| slot_of(key));
        let Some(first) = slots.next() else { return Ok(Self::Any) };
        if slots.all(|slot| slot == first) {
            return Ok(Self::Slot(first));
        }
        let split = SPLITS.iter().find(|(known, ..)| *known == name);
        let Some((_, stride, join)) = split else {
            let message = format!(
                "{name} names keys of several slots, which no node of a cluster has together: give \
                 them a common hash tag, as in {{tag}}name"
            );
            return Err(Error::new(ErrorKind::Unsupported, message));
        };
        // Nothing of a command with too few words may run: a node refuses its name alone.
        if call.argv.len() != 1 + keys.len() * stride {
            let parts = vec![Part { slot: first, places: Vec::new() }];
            return Ok(Self::Split(Split { parts, stride: *stride, join: *join }));
        }
        let mut parts: Vec<Part> = Vec::new();
        for (place, slot) in keys.iter().map(|key| slot_of(key)).enumerate() {
            match parts.iter_mut().find(|part| part.slot == slot) {
                Some(part) => part.places.push(place),
                None => parts.push(Part { slot, places: vec![place] }),
            }
        }
        Ok(Self::Split(Split { parts, stride: *stride, join: *join }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(words: &str) -> Result<Plan> {
        let argv: Vec<&[u8]> = words.split(' ').map(str::as_bytes).collect();
        Plan::of(&Call::of(&argv))
    }

    #[test]
    fn keys_of_one_slot_go_to_its_node() {
        assert_eq!(plan("GET foo").unwrap(), Plan::Slot(12_182));
        assert_eq!(plan("MGET {foo}1 {foo}2").unwrap(), Plan::Slot(12_182));
        assert_eq!(plan("SUNIONSTORE {foo}1 {foo}2 foo").unwrap(), Plan::Slot(12_182));
        assert_eq!(plan("EVAL x 1 foo").unwrap(), Plan::Slot(12_182));
        assert_eq!(plan("SPUBLISH foo x").unwrap(), Plan::Slot(12_182));
        assert_eq!(plan("EVAL x 0").unwrap(), Plan::Any);
        assert_eq!(plan("PUBLISH foo x").unwrap(), Plan::Any);
        assert_eq!(plan("JSON.GET foo").unwrap(), Plan::Any);
        assert_eq!(plan("DBSIZE").unwrap(), Plan::Every(Join::Sum));
        assert_eq!(plan("SCAN 0").unwrap(), Plan::Scan);
    }

    #[test]
    fn keys_of_several_slots_are_split_or_refused_with_advice() {
        let Plan::Split(split) = plan("MSET foo 1 bar 2 {foo}x 3").unwrap() else { panic!() };
        assert_eq!((split.stride, split.join), (2, SplitJoin::Ok));
        let foo = Part { slot: 12_182, places: vec![0, 2] };
        let bar = Part { slot: slot_of(b"bar"), places: vec![1] };
        assert_eq!(split.parts, [foo, bar]);
        let Plan::Split(split) = plan("MSET foo 1 bar").unwrap() else { panic!() };
        assert_eq!(split.parts, [Part { slot: 12_182, places: vec![] }]);
        for words in ["SUNIONSTORE d a b", "RENAME a b", "MSETNX a 1 b 2", "EVAL x 2 a b"] {
            let error = plan(words).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unsupported);
            assert!(error.message().contains("hash tag"), "{error}");
        }
    }
}
