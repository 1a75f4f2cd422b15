//! Sets: members without values.
//!
//! - here: members one by one, and some at random;
//! - `algebra`: unions, intersections, differences.

mod algebra;

pub(crate) use algebra::SetOperation;

use bytes::Bytes;

use crate::encoding::meta::Type;
use crate::error::Result;
use crate::messages::events::Classes;
use crate::txn::Tx;
use crate::txn::collection::Collection;
use crate::txn::db::commands;
use crate::types::all_members::AllMembers;
use crate::types::random_members::Choice;

commands! {
    /// SPOP: removes a random member. All are equally likely.
    write [key] fn spop(key: &[u8]) -> Option<Bytes>;
    /// SPOP with a count: removes that many random members.
    write [key] fn spop_count(key: &[u8], count: u64) -> Vec<Bytes>;
    /// SRANDMEMBER: a random member. All are equally likely.
    read fn srandmember(key: &[u8]) -> Option<Bytes>;
    /// SRANDMEMBER with a count: that many different random members, all if there are fewer. A
    /// negative count returns that many, with repetitions.
    read fn srandmember_count(key: &[u8], count: i64) -> Vec<Bytes>;
}

impl Tx<'_> {
    fn set_at(&self, key: &[u8]) -> Result<Option<Collection>> {
        self.collection(key, Type::Set)
    }

    pub(crate) fn sadd(&mut self, key: &[u8], members: &[&[u8]]) -> Result<i64> {
        let mut set = self.collection_or_new(key, Type::Set)?;
        let before = set.len();
        for member in members {
            // An existing row is left as it is: nothing to write.
            if !set.has(self, member)? {
                set.put_over(self, member, Bytes::new(), false)?;
            }
        }
        let added = set.len().saturating_sub(before);
        self.save(set)?;
        if added > 0 {
            self.notify(Classes::SET, "sadd", key);
        }
        Ok(added.cast_signed())
    }

    pub(crate) fn scard(&self, key: &[u8]) -> Result<i64> {
        Ok(self.set_at(key)?.map_or(0, |set| set.len().cast_signed()))
    }

    pub(crate) fn sismember(&self, key: &[u8], member: &[u8]) -> Result<bool> {
        self.set_at(key)?.map_or(Ok(false), |set| set.has(self, member))
    }

    pub(crate) fn smembers(&self, key: &[u8]) -> Result<Vec<Bytes>> {
        self.all_members(key, Type::Set)?.map_or_else(|| Ok(Vec::new()), AllMembers::collect)
    }

    pub(crate) fn smismember(&self, key: &[u8], members: &[&[u8]]) -> Result<Vec<bool>> {
        let Some(set) = self.set_at(key)? else { return Ok(vec![false; members.len()]) };
        let set = set.multi_lookup(members.len() as u64)?;
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
        self.notify_taken(Classes::SET, "srem", source)?;
        let mut to = match to {
            Some(to) => to,
            None => self.new_collection(destination, Type::Set)?,
        };
        // A destination that has the member does not change, as WATCH can tell.
        if !to.has(self, member)? {
            to.put_over(self, member, Bytes::new(), false)?;
            self.save(to)?;
            self.notify(Classes::SET, "sadd", destination);
        }
        Ok(true)
    }

    pub(crate) fn spop(&mut self, key: &[u8]) -> Result<Option<Bytes>> {
        Ok(self.spop_count(key, 1)?.pop())
    }

    pub(crate) fn spop_count(&mut self, key: &[u8], count: u64) -> Result<Vec<Bytes>> {
        self.frees_space();
        let Some(mut set) = self.set_at(key)? else { return Ok(Vec::new()) };
        if count >= set.len() {
            let members = AllMembers::of(self, set)?.collect()?;
            // Without its record the rows are unreachable: no need to remove each.
            self.delete_record(key);
            self.notify_taken(Classes::SET, "spop", key)?;
            return Ok(members);
        }
        let sampled = self.sample(&set, Choice::Different(count))?;
        let members: Vec<_> = sampled.into_iter().map(|sampled| sampled.member).collect();
        for member in &members {
            set.remove_present(self, member)?;
        }
        self.save(set)?;
        if !members.is_empty() {
            self.notify(Classes::SET, "spop", key);
        }
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
        if removed > 0 {
            self.notify_taken(Classes::SET, "srem", key)?;
        }
        Ok(removed.cast_signed())
    }
}

#[cfg(test)]
mod tests;
