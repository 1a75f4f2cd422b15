//! Checks at one read point that everything stored is consistent: what commands rely on and never
//! check themselves.

mod recount;

use std::collections::HashSet;

use bytes::Bytes;

use crate::encoding::chunked::{Chunks, is_chunked};
use crate::encoding::keys::{Prefix, Space, after_prefix, meta_key, prefix, row_key, score_key};
use crate::encoding::keys::{SPACE_BYTES, split_meta_key};
use crate::encoding::meta::{Body, Header, Type};
use crate::encoding::order::score_from_bytes;
use crate::encoding::tombstones::TombstoneStats;
use crate::engine::{CacheFill, Iter, IterOptions, Reader, TreeId};
use crate::error::Result;
use crate::keyspace::trees::{DATA, META, SCORE};
use crate::txn::store::Store;
use crate::types::packing::each_member;

use recount::Recount;

/// The largest number of problems listed.
const MOST: usize = 1000;

impl Store {
    pub(crate) fn check(&self) -> Result<Vec<String>> {
        let reader = self.engine().reader()?;
        let counted_from = self.counted_from();
        let (versions, problems) = (HashSet::new(), Vec::new());
        let mut check = Check { reader, counted_from, versions, problems };
        for database in 0..self.spaces().count() {
            check.space(self.spaces().of(database)?, database)?;
        }
        Ok(check.problems)
    }
}

struct Check {
    reader: Reader,
    /// The first version whose rows are counted.
    counted_from: u64,
    /// The versions of all collections met so far.
    versions: HashSet<u64>,
    problems: Vec<String>,
}

/// The collection being checked.
struct Subject {
    name: String,
    prefix: Prefix,
    /// Whether its rows are counted.
    is_counted: bool,
}

fn range(reader: &Reader, tree: TreeId, lower: &[u8], upper: Option<Vec<u8>>) -> Result<Iter> {
    let options = IterOptions {
        lower: Some(Bytes::copy_from_slice(lower)),
        upper: upper.map(Bytes::from),
        cache_fill: CacheFill::Skip,
    };
    let mut rows = reader.iter(tree, options)?;
    rows.seek_to_first()?;
    Ok(rows)
}

impl Check {
    fn problem(&mut self, name: &str, text: impl FnOnce() -> String) {
        if self.problems.len() < MOST {
            self.problems.push(format!("{name}: {}", text()));
        }
    }

    fn space(&mut self, space: Space, database: u32) -> Result<()> {
        let end = after_prefix(&space.to_bytes());
        let mut records = range(&self.reader, META, &meta_key(space, b""), end)?;
        while records.valid() {
            let user_key = split_meta_key(records.key()).map_or(&[][..], |(_, key)| key);
            debug_assert_eq!(user_key.len() + SPACE_BYTES, records.key().len());
            let shown = user_key.get(..64).unwrap_or(user_key).escape_ascii();
            let name = format!("database {database}, key \"{shown}\"");
            self.record(&name, space, user_key, records.value())?;
            records.next()?;
        }
        Ok(())
    }

    fn record(&mut self, name: &str, space: Space, key: &[u8], record: &[u8]) -> Result<()> {
        if Header::decode(record).is_ok() && is_chunked(record) {
            return self.string(name, space, key, record);
        }
        let decoded = Header::decode(record).and_then(|header| match header.kind {
            Type::String => Ok(None),
            kind => Body::decode(kind, record).map(|body| Some((kind, body))),
        });
        let (kind, body) = match decoded {
            Ok(None) => return Ok(()),
            Ok(Some(collection)) => collection,
            Err(why) => {
                self.problem(name, || why.to_string());
                return Ok(());
            }
        };
        let version = body.version().unwrap_or_default();
        if body.version().is_some() {
            self.claim(name, version);
        }
        let prefix = prefix(space, key, version);
        let is_counted = version >= self.counted_from;
        let subject = Subject { name: name.to_owned(), prefix, is_counted };
        match body {
            Body::Span { head, tail, .. } => self.list(&subject, head, tail),
            Body::Members { size, tombstones, .. } if kind == Type::ZSet => {
                self.sorted_set(&subject, size, &tombstones)
            }
            Body::Members { size, .. } => self.members(&subject, size, |_, _, _| Ok(())),
            Body::Packed(packed) => {
                let scored = |_: &[u8], _: &[u8], _: Option<f64>| ();
                if packed.validate().is_err() || each_member(&packed, key, kind, scored).is_err() {
                    self.problem(name, || "the members in its record cannot be read".to_owned());
                }
                Ok(())
            }
        }
    }

    /// Notes that a key has a version, which no other key may have.
    fn claim(&mut self, name: &str, version: u64) {
        if !self.versions.insert(version) {
            self.problem(name, || format!("version {version} is another key's too"));
        }
    }

    /// Checks a string in chunks: each row belongs to the string, and none was lost.
    fn string(&mut self, name: &str, space: Space, key: &[u8], record: &[u8]) -> Result<()> {
        let chunks = match Chunks::decode(record) {
            Ok(chunks) => chunks,
            Err(why) => {
                self.problem(name, || why.to_string());
                return Ok(());
            }
        };
        self.claim(name, chunks.version);
        let prefix = prefix(space, key, chunks.version);
        let mut rows = range(&self.reader, DATA, &prefix, after_prefix(&prefix))?;
        let mut count = 0;
        while rows.valid() {
            count += 1;
            let index = rows.key().get(prefix.len()..).and_then(|it| it.try_into().ok());
            let index = index.map(u64::from_be_bytes);
            let len = rows.value().len() as u64;
            let begin = index.and_then(|index| index.checked_mul(chunks.chunk_bytes()));
            let end = begin.and_then(|begin| begin.checked_add(len));
            let fits = (1..=chunks.chunk_bytes()).contains(&len);
            if !fits || end.is_none_or(|end| end > chunks.len) {
                let text = || format!("the row of chunk {index:?} does not fit into it");
                self.problem(name, text);
            }
            rows.next()?;
        }
        if count != chunks.rows {
            let (stated, len) = (chunks.rows, chunks.len);
            let text = || format!("its {len} bytes are in {stated} chunks, it has {count} of them");
            self.problem(name, text);
        }
        Ok(())
    }

    /// Checks that the data tree has as many rows as the record and the engine say.
    fn members(
        &mut self,
        subject: &Subject,
        size: u64,
        mut each: impl FnMut(&mut Self, &[u8], &[u8]) -> Result<()>,
    ) -> Result<()> {
        let end = after_prefix(&subject.prefix);
        let mut rows = range(&self.reader, DATA, &subject.prefix, end)?;
        let reader = self.reader.clone();
        let mut recount = Recount::new(&reader, DATA, &subject.prefix, subject.is_counted);
        while rows.valid() {
            recount.row(rows.key())?;
            each(self, rows.key().get(subject.prefix.len()..).unwrap_or_default(), rows.value())?;
            rows.next()?;
        }
        let (count, miscounted) = recount.finish()?;
        if count != size {
            self.problem(&subject.name, || format!("its size is {size}, it has {count} members"));
        }
        miscounted.into_iter().for_each(|text| self.problem(&subject.name, || text));
        Ok(())
    }

    fn sorted_set(
        &mut self,
        subject: &Subject,
        size: u64,
        tombstones: &TombstoneStats,
    ) -> Result<()> {
        self.members(subject, size, |check, member, value| {
            let score = <[u8; 8]>::try_from(value).map(stored_score);
            let Some(score) = score.ok().filter(|score| !score.is_nan()) else {
                check.problem(&subject.name, || format!("{} has no score", shown(member)));
                return Ok(());
            };
            let row = score_key(&subject.prefix, score, member);
            if check.reader.get_with(SCORE, &row, CacheFill::Skip)?.is_none() {
                let text = || format!("{} is not among the scores", shown(member));
                check.problem(&subject.name, text);
            }
            Ok(())
        })?;
        self.scores(subject, tombstones)
    }

    /// Checks that every score row belongs to its member, lies within the bounds of the record and
    /// is counted.
    fn scores(&mut self, subject: &Subject, tombstones: &TombstoneStats) -> Result<()> {
        let end = after_prefix(&subject.prefix);
        let mut rows = range(&self.reader, SCORE, &subject.prefix, end)?;
        let reader = self.reader.clone();
        let mut recount = Recount::new(&reader, SCORE, &subject.prefix, subject.is_counted);
        while rows.valid() {
            recount.row(rows.key())?;
            let sub_key = rows.key().get(subject.prefix.len()..).unwrap_or_default();
            let Some((score, member)) = sub_key.split_first_chunk() else {
                self.problem(&subject.name, || "a score row is too short".to_owned());
                rows.next()?;
                continue;
            };
            let score = score_from_bytes(*score);
            let stored =
                self.reader.get_with(DATA, &row_key(&subject.prefix, member), CacheFill::Skip)?;
            let stored = stored.and_then(|it| <[u8; 8]>::try_from(&it[..]).ok()).map(stored_score);
            // Compared as numbers: only the member's row keeps the sign of zero.
            if stored != Some(score) {
                let text = || format!("{} has score {stored:?}, not {score}", shown(member));
                self.problem(&subject.name, text);
            }
            if !tombstones.allows(sub_key) {
                let text = || format!("{} is beyond where its scores end", shown(member));
                self.problem(&subject.name, text);
            }
            rows.next()?;
        }
        let (_, miscounted) = recount.finish()?;
        miscounted.into_iter().for_each(|text| self.problem(&subject.name, || text));
        Ok(())
    }

    fn list(&mut self, subject: &Subject, head: u64, tail: u64) -> Result<()> {
        let from = row_key(&subject.prefix, &head.to_be_bytes());
        let to = row_key(&subject.prefix, &tail.to_be_bytes()).to_vec();
        let mut rows = range(&self.reader, DATA, &from, Some(to))?;
        let mut expected = head;
        while rows.valid() {
            let sub_key = rows.key().get(subject.prefix.len()..).unwrap_or_default();
            match <[u8; 8]>::try_from(sub_key).map(u64::from_be_bytes) {
                Ok(index) if index == expected => {}
                Ok(index) => {
                    self.problem(&subject.name, || format!("a hole at {expected}..{index}"));
                    expected = index;
                }
                Err(_) => self.problem(&subject.name, || "a row without an index".to_owned()),
            }
            expected = expected.saturating_add(1);
            rows.next()?;
        }
        if expected < tail {
            self.problem(&subject.name, || format!("a hole at {expected}..{tail}"));
        }
        Ok(())
    }
}

/// Decodes the score of a member.
fn stored_score(bytes: [u8; 8]) -> f64 {
    f64::from_bits(u64::from_le_bytes(bytes))
}

fn shown(member: &[u8]) -> String {
    format!("member \"{}\"", member.get(..64).unwrap_or(member).escape_ascii())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encoding::meta::encode_collection;
    use crate::txn::Db;
    use crate::types::testing::unpacked;

    /// A store with a collection of each type, and what a check finds after `damage` to the rows.
    fn problems(damage: impl FnOnce(&mut crate::txn::Tx<'_>) -> Result<()>) -> Vec<String> {
        let db = Db::open(":memory:", unpacked()).unwrap();
        for command in [
            &[&b"HSET"[..], b"h", b"f", b"v", b"g", b"v"][..],
            &[b"RPUSH", b"l", b"a", b"b", b"c", b"d"],
            &[b"ZADD", b"z", b"1", b"a", b"2", b"b"],
        ] {
            db.command(command).unwrap();
        }
        assert_eq!(db.check().unwrap(), [""; 0]);
        db.write(&[b"h", b"l", b"z"], damage).unwrap();
        db.check().unwrap()
    }

    fn rows_of(tx: &crate::txn::Tx<'_>, key: &[u8]) -> (Body, Prefix) {
        let record = tx.record(key).unwrap().unwrap();
        let body = record.body(key).unwrap();
        let prefix = prefix(tx.space(), key, body.version().unwrap());
        (body, prefix)
    }

    #[test]
    fn a_size_that_is_not_the_number_of_members_is_found() {
        let found = problems(|tx| {
            let row = row_key(&rows_of(tx, b"h").1, b"f");
            tx.remove_counted(DATA, &row);
            Ok(())
        });
        assert_eq!(found, ["database 0, key \"h\": its size is 2, it has 1 members"]);
    }

    #[test]
    fn a_row_of_wrong_weight_is_found_in_either_tree() {
        let found = problems(|tx| {
            let (hash, zset) = (rows_of(tx, b"h").1, rows_of(tx, b"z").1);
            tx.put_counted(DATA, &row_key(&hash, b"f"), Bytes::new(), false);
            tx.put_counted(SCORE, &score_key(&zset, 2.0, b"b"), Bytes::new(), false);
            Ok(())
        });
        assert_eq!(
            found,
            [
                "database 0, key \"h\": 3 members are counted where there are 2",
                "database 0, key \"z\": 3 scores are counted where there are 2",
            ]
        );
    }

    #[test]
    fn a_hole_in_a_list_is_found_wherever_it_is() {
        for (index, text) in [(0, "0..1"), (1, "1..2"), (3, "3..4")] {
            let mut hole = String::new();
            let found = problems(|tx| {
                let (body, prefix) = rows_of(tx, b"l");
                let Body::Span { head, .. } = body else { panic!("{body:?}") };
                hole = format!("a hole at {}..{}", head + index, head + index + 1);
                tx.remove_row(DATA, &row_key(&prefix, &(head + index).to_be_bytes()));
                Ok(())
            });
            assert_eq!(found, [format!("database 0, key \"l\": {hole}")], "{text}");
        }
    }

    #[test]
    fn members_and_scores_that_disagree_are_found_both_ways() {
        let found = problems(|tx| {
            let prefix = rows_of(tx, b"z").1;
            tx.remove_counted(SCORE, &score_key(&prefix, 1.0, b"a"));
            for member in [&b"b"[..], b"nobody"] {
                tx.put_counted(SCORE, &score_key(&prefix, 7.0, member), Bytes::new(), false);
            }
            Ok(())
        });
        assert_eq!(
            found,
            [
                "database 0, key \"z\": member \"a\" is not among the scores",
                "database 0, key \"z\": member \"b\" has score Some(2.0), not 7",
                "database 0, key \"z\": member \"nobody\" has score None, not 7",
            ]
        );
    }

    #[test]
    fn records_that_cannot_be_read_or_share_a_version_are_found() {
        let found = problems(|tx| {
            let (body, _) = rows_of(tx, b"h");
            let header = tx.record(b"h")?.unwrap().header;
            tx.put_record(b"twin", encode_collection(header, &body))?;
            tx.put_record(b"broken", vec![0x81, 0])
        });
        assert_eq!(found.len(), 3, "{found:?}");
        assert!(found[0].contains("\"broken\": a record needs"), "{found:?}");
        assert!(found[1].contains("\"twin\": version"), "{found:?}");
        assert!(found[2].contains("\"twin\": its size is 2, it has 0"), "{found:?}");
    }
}
