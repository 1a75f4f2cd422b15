//! Hashes: fields with values.

use bytes::Bytes;

use crate::encoding::meta::Type;
use crate::error::{Error, ErrorKind, Result};
use crate::messages::events::Classes;
use crate::txn::Tx;
use crate::txn::collection::Collection;
use crate::txn::db::commands;
use crate::types::long_double::{LongDouble, not_finite};
use crate::types::number::{not_a_float, parse_integer};
use crate::types::random_members::{Choice, Sampled};
use crate::types::string::length;

commands! {
    /// HGETDEL: removes fields and returns their values.
    write [key] fn hgetdel(key: &[u8], fields: &[&[u8]]) -> Vec<Option<Bytes>>;
    /// HRANDFIELD: a random field. All are equally likely.
    read fn hrandfield(key: &[u8]) -> Option<Bytes>;
    /// HRANDFIELD with a count: that many different random fields, all if there are fewer. A
    /// negative count returns that many, with repetitions.
    read fn hrandfield_count(key: &[u8], count: i64) -> Vec<Bytes>;
    /// HRANDFIELD with a count and WITHVALUES: random fields with their values.
    read fn hrandfield_withvalues(key: &[u8], count: i64) -> Vec<(Bytes, Bytes)>;
}

impl Tx<'_> {
    fn hash(&self, key: &[u8]) -> Result<Option<Collection>> {
        self.collection(key, Type::Hash)
    }

    pub(crate) fn hdel(&mut self, key: &[u8], fields: &[&[u8]]) -> Result<i64> {
        let removed = self.hgetdel(key, fields)?;
        Ok(length(removed.iter().flatten().count()))
    }

    pub(crate) fn hexists(&self, key: &[u8], field: &[u8]) -> Result<bool> {
        self.hash(key)?.map_or(Ok(false), |hash| hash.has(self, field))
    }

    pub(crate) fn hget(&self, key: &[u8], field: &[u8]) -> Result<Option<Bytes>> {
        match self.hash(key)? {
            Some(hash) => hash.get(self, field),
            None => Ok(None),
        }
    }

    pub(crate) fn hgetall(&self, key: &[u8]) -> Result<Vec<(Bytes, Bytes)>> {
        self.each_field(key, |field, value| (Bytes::copy_from_slice(field), value()))
    }

    /// Collects something of every field in order; `value` is read only when it is needed.
    fn each_field<T>(
        &self,
        key: &[u8],
        mut make: impl FnMut(&[u8], &dyn Fn() -> Bytes) -> T,
    ) -> Result<Vec<T>> {
        let mut made = Vec::new();
        if let Some(mut fields) = self.all_members(key, Type::Hash)? {
            while fields.advance()? {
                made.push(make(fields.member(), &|| fields.value_bytes()));
            }
        }
        Ok(made)
    }

    pub(crate) fn hgetdel(&mut self, key: &[u8], fields: &[&[u8]]) -> Result<Vec<Option<Bytes>>> {
        self.frees_space();
        let Some(mut hash) = self.hash(key)? else { return Ok(vec![None; fields.len()]) };
        let mut values = Vec::with_capacity(fields.len());
        for field in fields {
            values.push(hash.remove(self, field)?);
        }
        self.save(hash)?;
        if values.iter().any(Option::is_some) {
            self.notify_taken(Classes::HASH, "hdel", key)?;
        }
        Ok(values)
    }

    pub(crate) fn hincrby(&mut self, key: &[u8], field: &[u8], increment: i64) -> Result<i64> {
        let mut hash = self.collection_or_new(key, Type::Hash)?;
        let old = hash.get(self, field)?;
        let number = match &old {
            Some(text) => parse_integer(text).map_err(|_| {
                Error::new(ErrorKind::NotInteger, "ERR hash value is not an integer")
            })?,
            None => 0,
        };
        let sum = number.checked_add(increment).ok_or_else(|| {
            Error::new(ErrorKind::Overflow, "ERR increment or decrement would overflow")
        })?;
        hash.put_over(self, field, sum.to_string(), old.is_some())?;
        self.save(hash)?;
        self.notify(Classes::HASH, "hincrby", key);
        Ok(sum)
    }

    pub(crate) fn hincrbyfloat(
        &mut self,
        key: &[u8],
        field: &[u8],
        increment: &[u8],
    ) -> Result<Bytes> {
        let increment = LongDouble::parse(increment).ok_or_else(not_a_float)?;
        if increment == LongDouble::Infinite {
            return Err(Error::new(ErrorKind::NotFloat, "ERR value is NaN or Infinity"));
        }
        let mut hash = self.collection_or_new(key, Type::Hash)?;
        let old = hash.get(self, field)?;
        let number = LongDouble::parse(old.as_deref().unwrap_or(b"0"));
        let number = number
            .ok_or_else(|| Error::new(ErrorKind::NotFloat, "ERR hash value is not a float"))?;
        let sum = Bytes::from(number.plus(increment).ok_or_else(not_finite)?.to_string());
        hash.put_over(self, field, sum.clone(), old.is_some())?;
        self.save(hash)?;
        self.notify(Classes::HASH, "hincrbyfloat", key);
        Ok(sum)
    }

    pub(crate) fn hkeys(&self, key: &[u8]) -> Result<Vec<Bytes>> {
        self.each_field(key, |field, _| Bytes::copy_from_slice(field))
    }

    pub(crate) fn hlen(&self, key: &[u8]) -> Result<i64> {
        Ok(self.hash(key)?.map_or(0, |hash| hash.len().cast_signed()))
    }

    pub(crate) fn hmget(&self, key: &[u8], fields: &[&[u8]]) -> Result<Vec<Option<Bytes>>> {
        let mut values = Vec::with_capacity(fields.len());
        self.each_value(key, fields, |value| {
            values.push(value);
            true
        })?;
        Ok(values)
    }

    /// Calls `take` with the value of each field until it returns `false`.
    pub(crate) fn each_value(
        &self,
        key: &[u8],
        fields: &[&[u8]],
        mut take: impl FnMut(Option<Bytes>) -> bool,
    ) -> Result<()> {
        let hash = self.hash(key)?;
        let hash = hash.as_ref().map(|hash| hash.multi_lookup(fields.len() as u64)).transpose()?;
        for field in fields {
            let value = hash.as_ref().map_or(Ok(None), |hash| hash.get(self, field))?;
            if !take(value) {
                break;
            }
        }
        Ok(())
    }

    pub(crate) fn hmset(&mut self, key: &[u8], pairs: &[(&[u8], &[u8])]) -> Result<()> {
        self.hset(key, pairs).map(|_| ())
    }

    pub(crate) fn hrandfield(&self, key: &[u8]) -> Result<Option<Bytes>> {
        match self.hash(key)? {
            Some(hash) => Ok(self.sample_one(&hash)?.map(|sampled| sampled.member)),
            None => Ok(None),
        }
    }

    fn sampled_fields(&self, key: &[u8], count: i64) -> Result<Vec<Sampled>> {
        match self.hash(key)? {
            Some(hash) => self.sample(&hash, Choice::of_count(count)),
            None => Ok(Vec::new()),
        }
    }

    pub(crate) fn hrandfield_count(&self, key: &[u8], count: i64) -> Result<Vec<Bytes>> {
        let sampled = self.sampled_fields(key, count)?;
        Ok(sampled.into_iter().map(|sampled| sampled.member).collect())
    }

    pub(crate) fn hrandfield_withvalues(
        &self,
        key: &[u8],
        count: i64,
    ) -> Result<Vec<(Bytes, Bytes)>> {
        let sampled = self.sampled_fields(key, count)?;
        Ok(sampled.into_iter().map(|sampled| (sampled.member, sampled.value)).collect())
    }

    pub(crate) fn hset(&mut self, key: &[u8], pairs: &[(&[u8], &[u8])]) -> Result<i64> {
        let mut hash = self.collection_or_new(key, Type::Hash)?;
        let before = hash.len();
        for (field, value) in pairs {
            hash.put(self, field, Bytes::copy_from_slice(value))?;
        }
        let added = hash.len().saturating_sub(before);
        self.save(hash)?;
        self.notify(Classes::HASH, "hset", key);
        Ok(added.cast_signed())
    }

    pub(crate) fn hsetnx(&mut self, key: &[u8], field: &[u8], value: &[u8]) -> Result<bool> {
        let mut hash = self.collection_or_new(key, Type::Hash)?;
        if hash.has(self, field)? {
            return Ok(false);
        }
        hash.put_over(self, field, Bytes::copy_from_slice(value), false)?;
        self.save(hash)?;
        self.notify(Classes::HASH, "hset", key);
        Ok(true)
    }

    pub(crate) fn hstrlen(&self, key: &[u8], field: &[u8]) -> Result<i64> {
        let Some(hash) = self.hash(key)? else { return Ok(0) };
        Ok(hash.with_value(self, field, |value| length(value.len()))?.unwrap_or(0))
    }

    pub(crate) fn hvals(&self, key: &[u8]) -> Result<Vec<Bytes>> {
        self.each_field(key, |_, value| value())
    }
}

#[cfg(test)]
mod tests;
