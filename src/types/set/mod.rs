//! Sets: members with nothing beside them.
//!
//! - here: members one by one, and some at random;
//! - `algebra`: unions, intersections, differences.

mod algebra;

use bytes::Bytes;

use crate::encoding::meta::Type;
use crate::error::Result;
use crate::types::collection::Collection;
use crate::types::db::commands;
use crate::types::listing::Listing;
use crate::types::sample::Choice;
use crate::types::txn::Tx;

commands! {
    /// SADD: adds members; how many are new.
    write [key] fn sadd(key: &[u8], members: &[&[u8]]) -> i64;
    /// SCARD: how many members.
    read fn scard(key: &[u8]) -> i64;
    /// SISMEMBER: whether it is a member.
    read fn sismember(key: &[u8], member: &[u8]) -> bool;
    /// SMEMBERS: all members, in the order of their bytes.
    read fn smembers(key: &[u8]) -> Vec<Bytes>;
    /// SMISMEMBER: which of these are members.
    read fn smismember(key: &[u8], members: &[&[u8]]) -> Vec<bool>;
    /// SMOVE: moves a member from one set to another; whether it was there.
    write [source, destination]
        fn smove(source: &[u8], destination: &[u8], member: &[u8]) -> bool;
    /// SPOP: removes a member chosen at random; see [`crate::Db::srandmember`].
    write [key] fn spop(key: &[u8]) -> Option<Bytes>;
    /// SPOP with a count: removes that many members chosen at random.
    write [key] fn spop_count(key: &[u8], count: u64) -> Vec<Bytes>;
    /// SRANDMEMBER: a member chosen at random. Up to 64 members all are equally likely; among
    /// more some may be a little less likely than others.
    read fn srandmember(key: &[u8]) -> Option<Bytes>;
    /// SRANDMEMBER with a count: that many different members, all if there are fewer; of a
    /// negative one, as many as asked for, the same one perhaps several times.
    read fn srandmember_count(key: &[u8], count: i64) -> Vec<Bytes>;
    /// SREM: removes members; how many there were. A set without members ceases to exist.
    write [key] fn srem(key: &[u8], members: &[&[u8]]) -> i64;
}

impl Tx<'_> {
    fn set_at(&self, key: &[u8]) -> Result<Option<Collection>> {
        self.collection(key, Type::Set)
    }

    pub(crate) fn sadd(&mut self, key: &[u8], members: &[&[u8]]) -> Result<i64> {
        let mut set = self.collection_or_new(key, Type::Set)?;
        let before = set.len();
        for member in members {
            // A row that is there already is left as it is: nothing to write.
            if !set.has(self, member)? {
                set.put_over(self, member, Bytes::new(), false)?;
            }
        }
        let added = set.len().saturating_sub(before);
        self.save(set)?;
        Ok(added.cast_signed())
    }

    pub(crate) fn scard(&self, key: &[u8]) -> Result<i64> {
        Ok(self.set_at(key)?.map_or(0, |set| set.len().cast_signed()))
    }

    pub(crate) fn sismember(&self, key: &[u8], member: &[u8]) -> Result<bool> {
        self.set_at(key)?.map_or(Ok(false), |set| set.has(self, member))
    }

    pub(crate) fn smembers(&self, key: &[u8]) -> Result<Vec<Bytes>> {
        self.listing(key, Type::Set)?.map_or_else(|| Ok(Vec::new()), Listing::collect)
    }

    pub(crate) fn smismember(&self, key: &[u8], members: &[&[u8]]) -> Result<Vec<bool>> {
        let Some(set) = self.set_at(key)? else { return Ok(vec![false; members.len()]) };
        let set = set.looks(members.len() as u64)?;
        members.iter().map(|member| set.has(self, member)).collect()
    }

    pub(crate) fn smove(
        &mut self,
        source: &[u8],
        destination: &[u8],
        member: &[u8],
    ) -> Result<bool> {
        // A missing source wins over a destination of another type.
        let Some(mut from) = self.set_at(source)? else { return Ok(false) };
        let to = self.set_at(destination)?;
        if source == destination {
            return from.has(self, member);
        }
        if from.remove(self, member)?.is_none() {
            return Ok(false);
        }
        self.save(from)?;
        let mut to = match to {
            Some(to) => to,
            None => self.new_collection(destination, Type::Set)?,
        };
        to.put(self, member, Bytes::new())?;
        self.save(to)?;
        Ok(true)
    }

    pub(crate) fn spop(&mut self, key: &[u8]) -> Result<Option<Bytes>> {
        Ok(self.spop_count(key, 1)?.pop())
    }

    pub(crate) fn spop_count(&mut self, key: &[u8], count: u64) -> Result<Vec<Bytes>> {
        self.frees_space();
        let Some(mut set) = self.set_at(key)? else { return Ok(Vec::new()) };
        if count >= set.len() {
            let members = Listing::of(self, set)?.collect()?;
            // Without its record the rows are unreachable: no need to remove each.
            self.delete_record(key);
            return Ok(members);
        }
        let sampled = self.sample(&set, Choice::Different(count))?;
        let members: Vec<_> = sampled.into_iter().map(|sampled| sampled.member).collect();
        for member in &members {
            set.remove_present(self, member)?;
        }
        self.save(set)?;
        Ok(members)
    }

    pub(crate) fn srandmember(&self, key: &[u8]) -> Result<Option<Bytes>> {
        match self.set_at(key)? {
            Some(set) => Ok(self.sample_one(&set)?.map(|sampled| sampled.member)),
            None => Ok(None),
        }
    }

    pub(crate) fn srandmember_count(&self, key: &[u8], count: i64) -> Result<Vec<Bytes>> {
        let Some(set) = self.set_at(key)? else { return Ok(Vec::new()) };
        let sampled = self.sample(&set, Choice::of_count(count))?;
        Ok(sampled.into_iter().map(|sampled| sampled.member).collect())
    }

    pub(crate) fn srem(&mut self, key: &[u8], members: &[&[u8]]) -> Result<i64> {
        self.frees_space();
        let Some(mut set) = self.set_at(key)? else { return Ok(0) };
        let before = set.len();
        for member in members {
            set.remove(self, member)?;
        }
        let removed = before.saturating_sub(set.len());
        self.save(set)?;
        Ok(removed.cast_signed())
    }
}

#[cfg(test)]
mod tests;
