//! Iterators over keys and members: at one read point, in both directions, without a silent end.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may")]
#![allow(clippy::indexing_slicing, clippy::cast_possible_truncation, reason = "a test may")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use lsmkv::engine::MemFs;
use lsmkv::io::clock::ManualClock;
use lsmkv::io::splitmix::SplitMix64;
use lsmkv::types::{KeyEntry, KeyIter, KeyRange, Member, MemberIter, MemberRange, ZAdd};
use lsmkv::{CacheFill, Db, ErrorKind, Options, Type};

/// So small that a few hundred keys reach several levels.
fn tiny() -> Options {
    Options {
        write_buffer: 64 << 10,
        table_bytes: 4 << 10,
        block_bytes: 256,
        level_ratio: 3,
        log_segment_bytes: 16 << 10,
        memory_budget: 2 << 20,
        ttl_cleaner_interval_s: 0,
        ..Options::default()
    }
}

fn open(fs: &MemFs, clock: &Arc<ManualClock>) -> Db {
    Db::open_on(Arc::new(fs.clone()), Path::new("/db"), tiny(), clock.clone()).unwrap()
}

fn in_memory() -> Db {
    open(&MemFs::untracked(), &Arc::new(ManualClock::at(1000)))
}

fn all(iter: KeyIter) -> Vec<KeyEntry> {
    iter.collect::<lsmkv::Result<_>>().unwrap()
}

fn keys(db: &Db, range: KeyRange) -> Vec<Bytes> {
    all(db.iter(range).unwrap()).into_iter().map(|entry| entry.key).collect()
}

/// A key of the model: type, value of a string, expiry.
type Model = BTreeMap<Vec<u8>, (Type, Option<Vec<u8>>, u64)>;

/// What an iterator over `range` must show of the model at `now`.
fn expected(model: &Model, range: &KeyRange, now: u64) -> Vec<KeyEntry> {
    let within = |key: &[u8]| {
        range.lo.as_ref().is_none_or(|lo| key >= &lo[..])
            && range.hi.as_ref().is_none_or(|hi| key < &hi[..])
            && range.prefix.as_ref().is_none_or(|prefix| key.starts_with(prefix))
    };
    let mut entries: Vec<_> = model
        .iter()
        .filter(|(key, (kind, _, expiry))| {
            within(key) && *expiry > now && range.kind.is_none_or(|wanted| wanted == *kind)
        })
        .map(|(key, (kind, value, _))| KeyEntry {
            key: key.clone().into(),
            kind: *kind,
            value: value.clone().filter(|_| range.values).map(Bytes::from),
        })
        .collect();
    if range.reverse {
        entries.reverse();
    }
    entries
}

struct Story {
    random: SplitMix64,
    fs: MemFs,
    clock: Arc<ManualClock>,
    now: u64,
    db: Db,
    model: Model,
    /// Iterators that wait, with what they must still show.
    held: Vec<(KeyIter, Vec<KeyEntry>)>,
}

impl Story {
    fn new(seed: u64) -> Self {
        let (fs, clock) = (MemFs::untracked(), Arc::new(ManualClock::at(1000)));
        let db = open(&fs, &clock);
        let (model, held) = (Model::new(), Vec::new());
        Self { random: SplitMix64::new(seed), fs, clock, now: 1000, db, model, held }
    }

    /// Bytes at the edges of what can be, so that prefixes and neighbours meet.
    fn key(&mut self) -> Vec<u8> {
        let len = self.random.below(4);
        (0..len).map(|_| [0, 1, b'a', 0xfe, 0xff][self.random.below(5) as usize]).collect()
    }

    fn some_key(&mut self) -> Option<Vec<u8>> {
        self.random.one_in(3).then(|| self.key())
    }

    fn range(&mut self) -> KeyRange {
        let kinds = [Type::String, Type::Hash, Type::Set, Type::ZSet, Type::List];
        let kind = self.random.one_in(4).then(|| kinds[self.random.below(5) as usize]);
        KeyRange {
            lo: self.some_key(),
            hi: self.some_key(),
            prefix: self.some_key(),
            reverse: self.random.one_in(2),
            kind,
            values: self.random.one_in(2),
            cache_fill: CacheFill::skip_if(self.random.one_in(2)),
        }
    }

    fn write(&mut self) {
        let key = self.key();
        self.db.del(&[&key]).unwrap();
        let value = vec![b'v'; self.random.below(60) as usize];
        let (kind, value, mut expiry) = match self.random.below(8) {
            0 => {
                self.model.remove(&key);
                return;
            }
            1 => {
                self.db.hset(&key, &[(b"f", &value)]).unwrap();
                (Type::Hash, None, u64::MAX)
            }
            2 => {
                self.db.sadd(&key, &[b"m"]).unwrap();
                (Type::Set, None, u64::MAX)
            }
            3 => {
                self.db.zadd(&key, &[(1.0, b"m")], ZAdd::default()).unwrap();
                (Type::ZSet, None, u64::MAX)
            }
            4 => {
                self.db.rpush(&key, &[b"e"]).unwrap();
                (Type::List, None, u64::MAX)
            }
            _ => {
                self.db.set(&key, &value).unwrap();
                (Type::String, Some(value), u64::MAX)
            }
        };
        if self.random.one_in(3) {
            let ms = 1 + self.random.below(2000);
            let condition = lsmkv::types::ExpireIf::default();
            self.db.pexpire(&key, ms as i64, condition).unwrap();
            expiry = self.now + ms;
        }
        self.model.insert(key, (kind, value, expiry));
    }

    fn hold(&mut self) {
        let range = self.range();
        let rest = expected(&self.model, &range, self.now);
        self.held.push((self.db.iter(range).unwrap(), rest));
    }

    /// Advances one of the held iterators, in chunks; it shows its own read point.
    fn go_on(&mut self) {
        if self.held.is_empty() {
            return;
        }
        let at = self.random.below(self.held.len() as u64) as usize;
        let (items, bytes) = (1 + self.random.below(5) as usize, self.random.below(100) as usize);
        let (iter, rest) = &mut self.held[at];
        let chunk = iter.next_chunk(items, bytes).unwrap();
        assert!(chunk.len() <= items && chunk.is_empty() == rest.is_empty());
        assert_eq!(chunk, rest.drain(..chunk.len()).collect::<Vec<_>>());
    }

    fn step(&mut self) {
        match self.random.below(60) {
            0 => self.db.flush().unwrap(),
            1 => self.db.compact().unwrap(),
            2..5 => {
                self.now += self.random.below(500);
                self.clock.set(self.now);
            }
            5 => {
                self.held.clear();
                self.db.close().unwrap();
                self.db = open(&self.fs, &self.clock);
            }
            6 => _ = self.db.clean_expired().unwrap(),
            7..12 => self.hold(),
            12..25 => self.go_on(),
            25..32 => {
                let range = self.range();
                let expected = expected(&self.model, &range, self.now);
                let found = all(self.db.iter(range.clone()).unwrap());
                assert_eq!(found, expected, "{range:?} at {}", self.now);
            }
            _ => self.write(),
        }
    }
}

#[test]
fn an_iterator_shows_what_a_sorted_map_holds_whatever_happens_meanwhile() {
    for seed in 0..40 {
        let mut story = Story::new(seed);
        for _ in 0..400 {
            story.step();
        }
        for (iter, rest) in story.held.drain(..) {
            assert_eq!(all(iter), rest, "seed {seed}");
        }
        assert_eq!(story.db.check().unwrap(), [""; 0], "seed {seed}");
    }
}

#[test]
fn databases_do_not_show_in_each_other_and_an_emptied_one_stays_in_its_iterators() {
    let db = in_memory();
    let one = db.select(1).unwrap();
    db.set(b"\xff\xff", b"0").unwrap();
    one.set(b"a", b"1").unwrap();
    let before = db.iter(KeyRange::default()).unwrap();
    db.flushdb().unwrap();
    assert_eq!(keys(&db, KeyRange::default()), [""; 0]);
    assert_eq!(keys(&one, KeyRange { reverse: true, ..KeyRange::default() }), ["a"]);
    assert_eq!(all(before).len(), 1);
}

#[test]
fn a_chunk_has_at_least_one_key_and_ends_when_it_is_full() {
    let db = in_memory();
    for n in 0..10 {
        db.set(format!("key{n}").as_bytes(), &[b'v'; 96]).unwrap();
    }
    let range = KeyRange { values: true, ..KeyRange::default() };
    let mut iter = db.iter(range).unwrap();
    assert_eq!(iter.next_chunk(0, 0).unwrap().len(), 1);
    assert_eq!(iter.next_chunk(usize::MAX, 250).unwrap().len(), 3, "100 bytes each");
    assert_eq!(iter.next_chunk(4, usize::MAX).unwrap().len(), 4);
    assert_eq!(iter.next_chunk(100, usize::MAX).unwrap().len(), 2);
    assert_eq!(iter.next_chunk(100, usize::MAX).unwrap(), []);
    assert_eq!(iter.next().unwrap(), None);
}

/// Damages the middle of every table of the store.
fn damage_tables(fs: &MemFs) {
    for path in fs.paths() {
        if path.extension() == Some("table".as_ref()) {
            let mut bytes = fs.read_file(&path).unwrap();
            let middle = bytes.len() / 2;
            bytes[middle] ^= 0x10;
            fs.write_file(&path, &bytes).unwrap();
        }
    }
}

#[test]
fn a_damaged_block_is_an_error_and_stays_one_and_is_never_an_end() {
    let (fs, clock) = (MemFs::new(), Arc::new(ManualClock::at(1000)));
    let options =
        Options { write_buffer: 1 << 20, memory_budget: 8 << 20, table_bytes: 1 << 20, ..tiny() };
    let db = Db::open_on(Arc::new(fs.clone()), Path::new("/db"), options, clock.clone()).unwrap();
    for n in 0..500u32 {
        db.set(format!("key{n:04}").as_bytes(), &n.to_be_bytes()).unwrap();
        db.hset(b"hash", &[(format!("f{n:04}").as_bytes(), b"a value of some length")]).unwrap();
    }
    db.close().unwrap();
    damage_tables(&fs);
    let db = open(&fs, &clock);
    for reverse in [false, true] {
        let mut iter = db.iter(KeyRange { reverse, ..KeyRange::default() }).unwrap();
        let mut shown = 0;
        let error = loop {
            match iter.next_chunk(7, usize::MAX) {
                Ok(chunk) => {
                    assert!(!chunk.is_empty(), "an end after {shown} of 501 keys");
                    shown += chunk.len();
                }
                Err(error) => break error,
            }
        };
        assert!(shown > 0 && shown < 501, "the damage is in the middle: {shown}");
        for _ in 0..3 {
            assert_eq!(error.kind(), ErrorKind::Corrupt);
            assert_eq!(iter.next().unwrap_err().kind(), ErrorKind::Corrupt);
            assert_eq!(iter.next_chunk(1, 1).unwrap_err().kind(), ErrorKind::Corrupt);
        }
        let told: Vec<_> = iter.collect();
        assert_eq!(told.len(), 1, "a loop that skips errors ends");
        assert!(told[0].is_err());

        let members = db.members(b"hash", MemberRange { reverse, ..MemberRange::default() });
        let steps: Vec<_> = members.unwrap().collect();
        assert!(steps.len() > 1 && steps.len() < 500);
        assert_eq!(steps.last().unwrap().as_ref().unwrap_err().kind(), ErrorKind::Corrupt);
    }
}

#[test]
fn an_iterator_may_go_to_another_thread_and_outlive_the_handle_it_came_from() {
    fn owns_what_it_needs<T: Send + 'static>(value: T) -> T {
        value
    }
    let db = in_memory();
    for n in 0..2000u32 {
        db.set(format!("key{n:04}").as_bytes(), &[b'v'; 30]).unwrap();
        db.sadd(b"set", &[&n.to_be_bytes()]).unwrap();
    }
    let keys = owns_what_it_needs(db.iter(KeyRange::default()).unwrap());
    let members = owns_what_it_needs(db.members(b"set", MemberRange::default()).unwrap());
    drop(db);
    let count = std::thread::spawn(move || (all(keys).len(), members.count()));
    assert_eq!(count.join().unwrap(), (2001, 2000));
}

#[test]
fn once_the_store_is_closed_iterators_say_so() {
    let db = in_memory();
    db.set(b"a", b"v").unwrap();
    db.rpush(b"l", &[b"e"]).unwrap();
    let mut keys = db.iter(KeyRange::default()).unwrap();
    let mut members = db.members(b"l", MemberRange::default()).unwrap();
    db.close().unwrap();
    assert_eq!(keys.next().unwrap_err().kind(), ErrorKind::Closed);
    assert_eq!(members.next_chunk(1, 1).unwrap_err().kind(), ErrorKind::Closed);
    assert_eq!(db.iter(KeyRange::default()).unwrap_err().kind(), ErrorKind::Closed);
}

#[test]
fn a_walk_that_will_not_come_again_leaves_the_cache_as_it_is() {
    let (fs, clock) = (MemFs::untracked(), Arc::new(ManualClock::at(1000)));
    let db = open(&fs, &clock);
    // Smaller tables are in the cache from the open on.
    for n in 0..2000u32 {
        db.set(format!("key{n:04}").as_bytes(), &[b'v'; 30]).unwrap();
        db.sadd(b"set", &[&n.to_be_bytes()]).unwrap();
    }
    db.close().unwrap();
    let cached = |db: &Db| db.engine_stats().cache_bytes;
    // Once in two seconds the maintenance thread may open a table, and then the cache holds that.
    let unchanged = (0..3).find_map(|_| {
        let db = open(&fs, &clock);
        db.kind(b"set").unwrap();
        let before = cached(&db);
        let range = KeyRange { cache_fill: CacheFill::Skip, ..KeyRange::default() };
        assert_eq!(keys(&db, range).len(), 2001);
        let range = MemberRange { cache_fill: CacheFill::Skip, ..MemberRange::default() };
        assert_eq!(db.members(b"set", range).unwrap().count(), 2000);
        (cached(&db) == before).then_some((db, before))
    });
    let (db, before) = unchanged.expect("one of three walks leaves the cache as it is");
    keys(&db, KeyRange::default());
    let filled = cached(&db);
    assert!(filled > before);
    db.members(b"set", MemberRange::default()).unwrap().count();
    assert!(cached(&db) > filled);
}

/// All members by chunks of one iterator, and again by many that each go on where the last ended.
fn members(db: &Db, key: &[u8], reverse: bool) -> Vec<Member> {
    let range = |after| MemberRange { after, reverse, cache_fill: CacheFill::Fill };
    let mut iter = db.members(key, range(None)).unwrap();
    let mut together = Vec::new();
    loop {
        let chunk = iter.next_chunk(3, usize::MAX).unwrap();
        if chunk.is_empty() {
            break;
        }
        together.extend(chunk);
    }
    let (mut apart, mut after) = (Vec::new(), None);
    loop {
        let mut iter: MemberIter = db.members(key, range(after)).unwrap();
        let chunk = iter.next_chunk(2, usize::MAX).unwrap();
        if chunk.is_empty() {
            break;
        }
        after = iter.resume_point().map(<[u8]>::to_vec);
        apart.extend(chunk);
    }
    assert_eq!(together, apart, "resumed or not");
    together
}

#[test]
fn members_of_every_type_come_in_order_both_ways_and_can_be_taken_up_again() {
    let mut random = SplitMix64::new(7);
    let (fs, clock) = (MemFs::untracked(), Arc::new(ManualClock::at(1000)));
    let mut db = open(&fs, &clock);
    let names: BTreeSet<Vec<u8>> = (0..150)
        .map(|_| {
            (0..random.below(4)).map(|_| [0, 1, b'm', 0xff][random.below(4) as usize]).collect()
        })
        .collect();
    assert!(names.contains(&vec![]), "the empty member is one like any other");
    for (n, name) in names.iter().enumerate() {
        db.hset(b"h", &[(name, format!("v{n}").as_bytes())]).unwrap();
        db.sadd(b"s", &[name]).unwrap();
        db.zadd(b"z", &[(-(n as f64), name)], ZAdd::default()).unwrap();
        if n % 2 == 0 { db.rpush(b"l", &[name]) } else { db.lpush(b"l", &[name]) }.unwrap();
        if n == 40 {
            db.flush().unwrap();
        }
    }
    let bytes = |name: &Vec<u8>| Bytes::from(name.clone());
    let numbered = || names.iter().map(bytes).enumerate();
    let elements = db.lrange(b"l", 0, -1).unwrap();
    let expected: [(&[u8], Vec<Member>); 4] = [
        (
            b"h",
            numbered()
                .map(|(n, field)| Member::Field { field, value: format!("v{n}").into() })
                .collect(),
        ),
        (b"s", numbered().map(|(_, member)| Member::Member(member)).collect()),
        (
            b"z",
            numbered().map(|(n, member)| Member::Scored { member, score: -(n as f64) }).collect(),
        ),
        (
            b"l",
            (0..)
                .zip(elements)
                .map(|(index, element)| Member::Element { index, element })
                .collect(),
        ),
    ];
    for life in 0..2 {
        for (key, expected) in &expected {
            assert_eq!(members(&db, key, false), *expected, "life {life}");
            let mut backward = members(&db, key, true);
            backward.reverse();
            assert_eq!(backward, *expected, "life {life}");
        }
        db.close().unwrap();
        db = open(&fs, &clock);
    }
}

#[test]
fn members_are_those_of_one_read_point_though_the_key_changes_expires_and_goes() {
    let (fs, clock) = (MemFs::untracked(), Arc::new(ManualClock::at(1000)));
    let db = open(&fs, &clock);
    for n in 0..300u32 {
        db.hset(b"h", &[(format!("f{n:03}").as_bytes(), b"old")]).unwrap();
        db.rpush(b"l", &[format!("{n}").as_bytes()]).unwrap();
    }
    db.pexpire(b"l", 500, lsmkv::types::ExpireIf::default()).unwrap();
    let mut hash = db.members(b"h", MemberRange::default()).unwrap();
    let mut list =
        db.members(b"l", MemberRange { reverse: true, ..MemberRange::default() }).unwrap();
    assert_eq!(hash.next_chunk(10, usize::MAX).unwrap().len(), 10);
    db.hset(b"h", &[(b"f200", b"new"), (b"g", b"new")]).unwrap();
    db.hdel(b"h", &[b"f100"]).unwrap();
    db.lpop(b"l").unwrap();
    clock.advance(1000);
    db.compact().unwrap();
    db.del(&[b"h"]).unwrap();
    db.compact().unwrap();
    let rest = hash.next_chunk(1000, usize::MAX).unwrap();
    assert_eq!(rest.len(), 290);
    let old = |member: &Member| matches!(member, Member::Field { value, .. } if value == "old");
    assert!(rest.iter().all(old));
    let rest = list.next_chunk(1000, usize::MAX).unwrap();
    assert_eq!(rest.len(), 300);
    assert_eq!(rest[299], Member::Element { index: 0, element: "0".into() });
    assert_eq!(db.members(b"l", MemberRange::default()).unwrap().kind(), None);
}

#[test]
fn a_list_is_taken_up_behind_its_element_though_the_ends_moved() {
    let db = in_memory();
    db.rpush(b"l", &[b"a", b"b", b"c", b"d", b"e"]).unwrap();
    let mut iter = db.members(b"l", MemberRange::default()).unwrap();
    assert_eq!(iter.next_chunk(3, usize::MAX).unwrap().len(), 3);
    let after = iter.resume_point().map(<[u8]>::to_vec);
    db.lpush(b"l", &[b"new"]).unwrap();
    db.rpop(b"l").unwrap();
    let shown = |after: &Option<Vec<u8>>, reverse| {
        let range = MemberRange { after: after.clone(), reverse, cache_fill: CacheFill::Fill };
        let elements = db.members(b"l", range).unwrap().map(|element| match element.unwrap() {
            Member::Element { element, .. } => String::from_utf8(element.to_vec()).unwrap(),
            other => panic!("{other:?}"),
        });
        elements.collect::<String>()
    };
    assert_eq!(shown(&after, false), "d");
    assert_eq!(shown(&after, true), "banew");
    db.ltrim(b"l", -1, -1).unwrap();
    assert_eq!(shown(&after, false), "d", "what it had passed is gone");
    assert_eq!(shown(&after, true), "");
    let no_place = MemberRange { after: Some(b"c".to_vec()), ..MemberRange::default() };
    assert_eq!(db.members(b"l", no_place).unwrap_err().kind(), ErrorKind::Invalid);
}

#[test]
fn a_string_has_no_members_and_a_missing_key_none() {
    let db = in_memory();
    db.set(b"s", b"v").unwrap();
    let error = db.members(b"s", MemberRange::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::WrongType);
    let mut none = db.members(b"none", MemberRange::default()).unwrap();
    assert_eq!((none.kind(), none.next_chunk(9, 9).unwrap()), (None, vec![]));
    assert_eq!(none.resume_point(), None);
}
