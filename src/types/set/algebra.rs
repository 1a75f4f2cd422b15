//! Unions, intersections and differences of sets.
//!
//! Members are in byte order in every set, so all of these are merges of walks: no set is held in
//! memory, only a result that is returned. A set that is much larger than the one whose members are
//! tested against it is looked up member by member instead.
//!
//! The result of a *STORE command is written as it comes: see `collection_builder`.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use bytes::Bytes;

use crate::encoding::meta::Type;
use crate::error::Result;
use crate::txn::collection::Collection;
use crate::txn::db::commands;
use crate::txn::{Tx, Walk};

/// The number of steps of a walk that cost about as much as one lookup.
const STEPS_PER_LOOK_UP: u64 = 8;

commands! {
    /// SINTERCARD: how many members all sets have; counts up to `limit`, unless that is 0.
    read fn sintercard(keys: &[&[u8]], limit: u64) -> i64;
}

/// How sets are combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SetOperation {
    /// The members of any set.
    Union,
    /// The members that all sets have.
    Intersection,
    /// The members of the first set that no other has.
    Difference,
}

/// The set of each key, `None` for a key that does not exist.
type Sets = Vec<Option<Collection>>;

/// Called with every member, in byte order and each once, until it returns `false`.
type Visit<'v> = &'v mut dyn FnMut(&[u8]) -> Result<bool>;

impl Tx<'_> {
    /// The sets at these keys; fails if one is of another type.
    fn sets(&self, keys: &[&[u8]]) -> Result<Sets> {
        keys.iter().map(|key| self.collection(key, Type::Set)).collect()
    }

    pub(crate) fn sdiff(&self, keys: &[&[u8]]) -> Result<Vec<Bytes>> {
        self.combined(SetOperation::Difference, keys)
    }

    pub(crate) fn sinter(&self, keys: &[&[u8]]) -> Result<Vec<Bytes>> {
        self.combined(SetOperation::Intersection, keys)
    }

    pub(crate) fn sunion(&self, keys: &[&[u8]]) -> Result<Vec<Bytes>> {
        self.combined(SetOperation::Union, keys)
    }

    fn combined(&self, operation: SetOperation, keys: &[&[u8]]) -> Result<Vec<Bytes>> {
        let mut members = Vec::new();
        self.each_combined(operation, keys, &mut |member| {
            members.push(Bytes::copy_from_slice(member));
            Ok(true)
        })?;
        Ok(members)
    }

    /// Visits the members of sets combined.
    pub(crate) fn each_combined(
        &self,
        operation: SetOperation,
        keys: &[&[u8]],
        visit: Visit<'_>,
    ) -> Result<()> {
        self.each_of_sets(operation, self.sets(keys)?, visit)
    }

    fn each_of_sets(&self, operation: SetOperation, sets: Sets, visit: Visit<'_>) -> Result<()> {
        match operation {
            SetOperation::Union => self.each_of_union(sets, visit),
            SetOperation::Intersection => self.each_common(sets, visit),
            SetOperation::Difference => self.each_of_difference(sets, visit),
        }
    }

    pub(crate) fn sintercard(&self, keys: &[&[u8]], limit: u64) -> Result<i64> {
        let limit = if limit == 0 { u64::MAX } else { limit };
        let mut count = 0;
        self.each_common(self.sets(keys)?, &mut |_| {
            count += 1;
            Ok(count < limit)
        })?;
        Ok(count.cast_signed())
    }

    fn each_of_difference(&self, sets: Sets, visit: Visit<'_>) -> Result<()> {
        let mut sets = sets.into_iter();
        let Some(first) = sets.next().flatten() else { return Ok(()) };
        let mut others = self.tests(sets.flatten(), first.len())?;
        let mut walk = first.walk(self)?;
        'members: while walk.advance()? {
            let member = first.sub_key(walk.key());
            for other in &mut others {
                if other.has(self, member)? {
                    continue 'members;
                }
            }
            if !visit(member)? {
                break;
            }
        }
        Ok(())
    }

    fn each_common(&self, sets: Sets, visit: Visit<'_>) -> Result<()> {
        let Some(mut sets) = sets.into_iter().collect::<Option<Vec<_>>>() else {
            return Ok(());
        };
        sets.sort_by_key(Collection::len);
        let mut sets = sets.into_iter();
        let Some(smallest) = sets.next() else { return Ok(()) };
        let mut others = self.tests(sets, smallest.len())?;
        let mut walk = smallest.walk(self)?;
        'members: while walk.advance()? {
            let member = smallest.sub_key(walk.key());
            for other in &mut others {
                if !other.has(self, member)? {
                    continue 'members;
                }
            }
            if !visit(member)? {
                break;
            }
        }
        Ok(())
    }

    fn each_of_union(&self, sets: Sets, visit: Visit<'_>) -> Result<()> {
        let mut walks = Vec::new();
        let mut next = BinaryHeap::new();
        for set in sets.into_iter().flatten() {
            let mut walk = Members::of(self, set)?;
            if let Some(member) = walk.next()? {
                next.push(Reverse((Bytes::copy_from_slice(member), walks.len())));
            }
            walks.push(walk);
        }
        let mut last: Option<Bytes> = None;
        while let Some(Reverse((member, from))) = next.pop() {
            if let Some(walk) = walks.get_mut(from)
                && let Some(following) = walk.next()?
            {
                next.push(Reverse((Bytes::copy_from_slice(following), from)));
            }
            if last.as_ref() != Some(&member) {
                if !visit(&member)? {
                    break;
                }
                last = Some(member);
            }
        }
        Ok(())
    }

    pub(crate) fn sdiffstore(&mut self, destination: &[u8], keys: &[&[u8]]) -> Result<i64> {
        self.store_set("sdiffstore", destination, keys, SetOperation::Difference)
    }

    pub(crate) fn sinterstore(&mut self, destination: &[u8], keys: &[&[u8]]) -> Result<i64> {
        self.store_set("sinterstore", destination, keys, SetOperation::Intersection)
    }

    pub(crate) fn sunionstore(&mut self, destination: &[u8], keys: &[&[u8]]) -> Result<i64> {
        self.store_set("sunionstore", destination, keys, SetOperation::Union)
    }

    /// Replaces whatever `key` holds by the sets at `from` combined.
    fn store_set(
        &mut self,
        name: &'static str,
        key: &[u8],
        from: &[&[u8]],
        operation: SetOperation,
    ) -> Result<i64> {
        let sets = self.as_read(|tx| tx.sets(from))?;
        let (mut build, mut size) = (self.build_collection(key)?, 0);
        self.each_of_sets(operation, sets, &mut |member| {
            size += 1;
            build.put_member(member, b"").map(|()| true)
        })?;
        self.store_built(name, key, build, Type::Set, size)
    }

    /// Prepares for testing `members` members in ascending order against each of the sets.
    fn tests(&self, sets: impl Iterator<Item = Collection>, members: u64) -> Result<Vec<Test>> {
        let test = |set: Collection| {
            if set.len() / STEPS_PER_LOOK_UP > members {
                return Ok(Test::LookUp(Box::new(set)));
            }
            let mut walk = Box::new(Members::of(self, set)?);
            let more = walk.next()?.is_some();
            Ok(Test::Merge { walk, more })
        };
        sets.map(test).collect()
    }
}

/// The members of one set, in order.
struct Members {
    set: Collection,
    walk: Walk,
}

impl Members {
    fn of(tx: &Tx<'_>, set: Collection) -> Result<Self> {
        Ok(Self { walk: set.walk(tx)?, set })
    }

    fn next(&mut self) -> Result<Option<&[u8]>> {
        Ok(if self.walk.advance()? { Some(self.current()) } else { None })
    }

    fn current(&self) -> &[u8] {
        self.set.sub_key(self.walk.key())
    }
}

/// Tests whether a set has members, asked for in ascending order.
enum Test {
    LookUp(Box<Collection>),
    Merge { walk: Box<Members>, more: bool },
}

impl Test {
    fn has(&mut self, tx: &Tx<'_>, member: &[u8]) -> Result<bool> {
        let (walk, more) = match self {
            Self::LookUp(set) => return set.has(tx, member),
            Self::Merge { walk, more } => (walk, more),
        };
        while *more {
            match walk.current().cmp(member) {
                Ordering::Less => *more = walk.next()?.is_some(),
                Ordering::Equal => return Ok(true),
                Ordering::Greater => break,
            }
        }
        Ok(false)
    }
}
