//! Hashes: fields with values. A row of the data tree for each field.

use bytes::Bytes;

use crate::encoding::meta::Type;
use crate::error::{Error, ErrorKind, Result};
use crate::types::collection::Collection;
use crate::types::db::commands;
use crate::types::long_double::{LongDouble, not_finite};
use crate::types::number::{not_a_float, parse_integer};
use crate::types::sample::{Choice, Sampled};
use crate::types::string::length;
use crate::types::txn::Tx;

commands! {
    /// HDEL: removes fields; how many there were. A hash without fields ceases to exist.
    write [key] fn hdel(key: &[u8], fields: &[&[u8]]) -> i64;
    /// HEXISTS: whether the hash has the field.
    read fn hexists(key: &[u8], field: &[u8]) -> bool;
    /// HGET: the value of a field.
    read fn hget(key: &[u8], field: &[u8]) -> Option<Bytes>;
    /// HGETALL: all fields with their values, in the order of the fields' bytes.
    read fn hgetall(key: &[u8]) -> Vec<(Bytes, Bytes)>;
    /// HGETDEL: removes fields; their values.
    write [key] fn hgetdel(key: &[u8], fields: &[&[u8]]) -> Vec<Option<Bytes>>;
    /// HINCRBY: adds to the integer in a field, 0 if it is missing; the sum.
    write [key] fn hincrby(key: &[u8], field: &[u8], increment: i64) -> i64;
    /// HINCRBYFLOAT: adds to the number in a field, 0 if it is missing; the sum as text. Computes
    /// with the 80-bit floats of the reference.
    write [key] fn hincrbyfloat(key: &[u8], field: &[u8], increment: &[u8]) -> Bytes;
    /// HKEYS: all fields, in the order of their bytes.
    read fn hkeys(key: &[u8]) -> Vec<Bytes>;
    /// HLEN: how many fields.
    read fn hlen(key: &[u8]) -> i64;
    /// HMGET: the values of fields.
    read fn hmget(key: &[u8], fields: &[&[u8]]) -> Vec<Option<Bytes>>;
    /// HMSET: sets fields; see [`crate::Db::hset`].
    write [key] fn hmset(key: &[u8], pairs: &[(&[u8], &[u8])]) -> ();
    /// HRANDFIELD: a field chosen at random. Up to 64 fields all are equally likely; among more
    /// some may be a little less likely than others.
    read fn hrandfield(key: &[u8]) -> Option<Bytes>;
    /// HRANDFIELD with a count: that many different fields, all if there are fewer; of a negative
    /// one, as many as asked for, the same one perhaps several times.
    read fn hrandfield_count(key: &[u8], count: i64) -> Vec<Bytes>;
    /// HRANDFIELD with a count and WITHVALUES.
    read fn hrandfield_withvalues(key: &[u8], count: i64) -> Vec<(Bytes, Bytes)>;
    /// HSET: sets fields; how many are new. Of a field that is named twice the last value stays.
    write [key] fn hset(key: &[u8], pairs: &[(&[u8], &[u8])]) -> i64;
    /// HSETNX: sets a field unless it exists; whether it did.
    write [key] fn hsetnx(key: &[u8], field: &[u8], value: &[u8]) -> bool;
    /// HSTRLEN: bytes of a field's value, 0 if it does not exist.
    read fn hstrlen(key: &[u8], field: &[u8]) -> i64;
    /// HVALS: all values, in the order of the fields' bytes.
    read fn hvals(key: &[u8]) -> Vec<Bytes>;
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

    /// Made of every field, in order; `value` is only asked for when it is needed.
    fn each_field<T>(
        &self,
        key: &[u8],
        mut make: impl FnMut(&[u8], &dyn Fn() -> Bytes) -> T,
    ) -> Result<Vec<T>> {
        let mut made = Vec::new();
        if let Some(mut fields) = self.listing(key, Type::Hash)? {
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

    /// Gives `take` the values of fields, one after the other, until it says no.
    pub(crate) fn each_value(
        &self,
        key: &[u8],
        fields: &[&[u8]],
        mut take: impl FnMut(Option<Bytes>) -> bool,
    ) -> Result<()> {
        let hash = self.hash(key)?;
        let hash = hash.as_ref().map(|hash| hash.looks(fields.len() as u64)).transpose()?;
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
        Ok(added.cast_signed())
    }

    pub(crate) fn hsetnx(&mut self, key: &[u8], field: &[u8], value: &[u8]) -> Result<bool> {
        let mut hash = self.collection_or_new(key, Type::Hash)?;
        if hash.has(self, field)? {
            return Ok(false);
        }
        hash.put_over(self, field, Bytes::copy_from_slice(value), false)?;
        self.save(hash)?;
        Ok(true)
    }

    pub(crate) fn hstrlen(&self, key: &[u8], field: &[u8]) -> Result<i64> {
        let Some(hash) = self.hash(key)? else { return Ok(0) };
        Ok(hash.look(self, field, |value| length(value.len()))?.unwrap_or(0))
    }

    pub(crate) fn hvals(&self, key: &[u8]) -> Result<Vec<Bytes>> {
        self.each_field(key, |_, value| value())
    }
}

#[cfg(test)]
mod tests;
