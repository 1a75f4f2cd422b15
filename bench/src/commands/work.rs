//! The work: which commands with which arguments, the same for every store.
//!
//! Keys, fields and members have 16 digits, with a letter in front for those of small hashes. New
//! entries come in a seeded random order, reads and changes go to random ones.

use super::call::{Answer, Call, Store};
use super::rows::Row;
use super::session::Session;
use crate::Result;
use crate::keys::{KEY_BYTES, Key, Permutation, mix, stored};
use crate::values::Values;

/// Bytes of a string.
pub(super) const STRING_BYTES: usize = 100;
/// Bytes of a field's value, and of an element of a list.
pub(super) const ENTRY_BYTES: usize = 32;

const HASH: &[u8] = b"hash";
const LIST: &[u8] = b"list";
const SET: &[u8] = b"set";
const ZSET: &[u8] = b"zset";
/// Large hashes that are deleted; the median of their times counts.
const DELETED: [&[u8]; 3] = [b"deleted:1", b"deleted:2", b"deleted:3"];
/// Fields of one command where nothing is timed.
const CHUNK: u64 = 100;
/// Fewer commands of the rows that return a hundred entries.
const HEAVY: u64 = 10;

/// What the arguments are made of.
pub(super) struct Data {
    num: u64,
    order: Permutation,
    strings: Values,
    entries: Values,
}

/// Hashes that differ only in their keys.
#[derive(Clone, Copy)]
struct Hashes {
    letter: u8,
    fields: u64,
    count: u64,
}

impl Hashes {
    fn key(self, index: u64) -> [u8; KEY_BYTES + 1] {
        let mut key = [self.letter; KEY_BYTES + 1];
        if let Some((_, digits)) = key.split_first_mut() {
            digits.copy_from_slice(&stored(index));
        }
        key
    }

    /// One of them at random.
    fn any(self, step: u64) -> [u8; KEY_BYTES + 1] {
        self.key(mix(!step) % self.count)
    }
}

impl Data {
    pub(super) fn new(num: u64, seed: u64) -> Self {
        Self {
            num,
            order: Permutation::new(num, seed),
            strings: Values::new(STRING_BYTES, seed),
            entries: Values::new(ENTRY_BYTES, !seed),
        }
    }

    /// Fields of a hash that is deleted, in a store of `num` keys.
    pub(super) fn deleted_fields(num: u64) -> u64 {
        (num / 2).max(1)
    }

    fn new_key(&self, step: u64) -> Key {
        stored(self.order.at(step))
    }

    fn any(&self, step: u64) -> u64 {
        mix(step) % self.num
    }

    fn any_key(&self, step: u64) -> Key {
        stored(self.any(step))
    }

    fn small(&self) -> Hashes {
        Hashes { letter: b's', fields: 5, count: self.num }
    }

    fn of_10(&self) -> Hashes {
        Hashes { letter: b'm', fields: 10, count: (self.num / 10).max(1) }
    }

    fn of_100(&self) -> Hashes {
        Hashes { letter: b'l', fields: 100, count: (self.num / 100).max(1) }
    }

    fn counters(&self) -> u64 {
        (self.num / 20).max(1)
    }

    /// Adds a range of fields that are not there yet, in one command.
    fn hset<S: Store>(&self, store: &mut S, key: &[u8], from: u64, to: u64) -> Result<()> {
        let names: Vec<Key> = (from..to).map(stored).collect();
        let pairs: Vec<(&[u8], &[u8])> =
            names.iter().zip(from..).map(|(name, i)| (&name[..], self.entries.of(i))).collect();
        store.call(&Call::Hset(key, &pairs), Answer::Number(pairs.len().try_into()?))
    }
}

impl<S: Store> Session<'_, S> {
    /// Writes everything; the rows of new entries.
    pub(super) fn load(&mut self, data: &Data) -> Result<()> {
        self.load_strings(data)?;
        self.load_hashes(data)?;
        self.load_others(data)
    }

    fn load_strings(&mut self, data: &Data) -> Result<()> {
        if self.plan.wants_any(&[Row::Set, Row::Get]) {
            self.grow(Row::Set, data.num, |store, step| {
                let value = data.strings.of(step);
                store.call(&Call::Set(&data.new_key(step), value), Answer::Done)
            })?;
        }
        if self.plan.wants(Row::Incr) {
            let counters = Hashes { letter: b'c', fields: 0, count: data.counters() };
            self.grow(Row::Incr, data.num, |store, step| {
                let rounds = i64::try_from(step / counters.count)? + 1;
                let key = counters.key(step % counters.count);
                store.call(&Call::Incr(&key), Answer::Number(rounds))
            })?;
        }
        Ok(())
    }

    fn load_hashes(&mut self, data: &Data) -> Result<()> {
        if self.plan.wants_any(&[Row::HsetNew, Row::HsetOverwrite, Row::HgetBig]) {
            self.grow(Row::HsetNew, data.num, |store, step| {
                let (field, value) = (data.new_key(step), data.entries.of(step));
                store.call(&Call::Hset(HASH, &[(&field, value)]), Answer::Number(1))
            })?;
        }
        for (row, hashes) in [(Row::Hgetall10, data.of_10()), (Row::Hgetall100, data.of_100())] {
            if self.plan.wants(row) {
                self.hurry(0..hashes.count, &mut |store, step| {
                    data.hset(store, &hashes.key(step), 0, hashes.fields)
                })?;
            }
        }
        let of_small = [Row::HsetSmall, Row::HgetSmall, Row::Hgetall5, Row::HsetSmallOverwrite];
        if self.plan.wants_any(&of_small) {
            let small = data.small();
            self.grow(Row::HsetSmall, small.count, |store, step| {
                data.hset(store, &small.key(data.order.at(step)), 0, small.fields)
            })?;
        }
        if self.plan.wants(Row::DelBig) {
            let fields = Data::deleted_fields(data.num);
            for key in DELETED {
                self.hurry(0..fields.div_ceil(CHUNK), &mut |store, step| {
                    data.hset(store, key, step * CHUNK, fields.min((step + 1) * CHUNK))
                })?;
            }
        }
        Ok(())
    }

    fn load_others(&mut self, data: &Data) -> Result<()> {
        if self.plan.wants_any(&[Row::Lpush, Row::Lpop, Row::Lrange100]) {
            self.grow(Row::Lpush, data.num, |store, step| {
                let len = i64::try_from(step)? + 1;
                store.call(&Call::Lpush(LIST, data.entries.of(step)), Answer::Number(len))
            })?;
        }
        if self.plan.wants_any(&[Row::Sadd, Row::Sismember, Row::Spop]) {
            self.grow(Row::Sadd, data.num, |store, step| {
                store.call(&Call::Sadd(SET, &data.new_key(step)), Answer::Number(1))
            })?;
        }
        let of_zset = [
            Row::ZaddNew,
            Row::ZaddUpdate,
            Row::Zscore,
            Row::Zrange10,
            Row::Zrangebyscore100,
            Row::Zpopmin,
        ];
        if self.plan.wants_any(&of_zset) {
            // A member's score is its place in the order of insertion: every score occurs once.
            self.grow(Row::ZaddNew, data.num, |store, step| {
                let call = Call::Zadd(ZSET, step as f64, &data.new_key(step));
                store.call(&call, Answer::Number(1))
            })?;
        }
        Ok(())
    }

    /// Reads, which find what they look for.
    pub(super) fn read(&mut self, data: &Data) -> Result<()> {
        self.measure(Row::Get, 1, |store, step| {
            store.call(&Call::Get(&data.any_key(step)), Answer::Bytes(STRING_BYTES))
        })?;
        self.measure(Row::HgetBig, 1, |store, step| {
            store.call(&Call::Hget(HASH, &data.any_key(step)), Answer::Bytes(ENTRY_BYTES))
        })?;
        self.measure(Row::HgetSmall, 1, |store, step| {
            let (key, field) = (data.small().any(step), stored(step % data.small().fields));
            store.call(&Call::Hget(&key, &field), Answer::Bytes(ENTRY_BYTES))
        })?;
        let whole = [
            (Row::Hgetall5, 1, data.small()),
            (Row::Hgetall10, 1, data.of_10()),
            (Row::Hgetall100, HEAVY, data.of_100()),
        ];
        for (row, share, hashes) in whole {
            let items = usize::try_from(2 * hashes.fields)?;
            self.measure(row, share, |store, step| {
                store.call(&Call::Hgetall(&hashes.any(step)), Answer::Items(items))
            })?;
        }
        self.measure(Row::Sismember, 1, |store, step| {
            store.call(&Call::Sismember(SET, &data.any_key(step)), Answer::Number(1))
        })?;
        self.measure(Row::Zscore, 1, |store, step| {
            store.call(&Call::Zscore(ZSET, &data.any_key(step)), Answer::Score)
        })?;
        self.read_ranges(data)
    }

    fn read_ranges(&mut self, data: &Data) -> Result<()> {
        let hundred = data.num.min(100);
        let items = Answer::Items(usize::try_from(hundred)?);
        let first = |step| mix(step) % (data.num - hundred + 1);
        self.measure(Row::Lrange100, HEAVY, |store, step| {
            let first = first(step);
            store.call(&Call::Lrange(LIST, first, first + hundred - 1), items)
        })?;
        self.measure(Row::Zrange10, 1, |store, _| {
            let ten = data.num.min(10);
            store.call(&Call::Zrange(ZSET, 0, ten - 1), Answer::Items(usize::try_from(ten)?))
        })?;
        self.measure(Row::Zrangebyscore100, HEAVY, |store, step| {
            let first = first(step);
            let (least, greatest) = (first as f64, (first + hundred - 1) as f64);
            store.call(&Call::Zrangebyscore(ZSET, least, greatest), items)
        })
    }

    /// Writes over what is there.
    pub(super) fn change(&mut self, data: &Data) -> Result<()> {
        self.measure(Row::HsetOverwrite, 1, |store, step| {
            let (field, value) = (data.any_key(step), data.entries.of(!step));
            store.call(&Call::Hset(HASH, &[(&field, value)]), Answer::Number(0))
        })?;
        self.measure(Row::HsetSmallOverwrite, 1, |store, step| {
            let (key, field) = (data.small().any(step), stored(step % data.small().fields));
            let value = data.entries.of(!step);
            store.call(&Call::Hset(&key, &[(&field, value)]), Answer::Number(0))
        })?;
        self.measure(Row::ZaddUpdate, 1, |store, step| {
            // Beyond every score so far, so that each is a change.
            let score = (data.num + step) as f64;
            store.call(&Call::Zadd(ZSET, score, &data.any_key(step)), Answer::Number(0))
        })
    }

    /// Takes members away, one by one.
    pub(super) fn take(&mut self) -> Result<()> {
        self.consume(Row::Lpop, |store, _| {
            store.call(&Call::Lpop(LIST), Answer::Bytes(ENTRY_BYTES))
        })?;
        self.consume(Row::Zpopmin, |store, _| store.call(&Call::Zpopmin(ZSET), Answer::Items(2)))?;
        if !S::can(&Call::Spop(SET)) {
            return Ok(());
        }
        self.consume(Row::Spop, |store, _| store.call(&Call::Spop(SET), Answer::Bytes(KEY_BYTES)))
    }

    pub(super) fn delete(&mut self) -> Result<()> {
        if !self.plan.wants(Row::DelBig) || !S::can(&Call::Del(b"")) {
            return Ok(());
        }
        self.time_deletes(Row::DelBig, &DELETED)
    }
}
