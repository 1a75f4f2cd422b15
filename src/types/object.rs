//! OBJECT ENCODING: how the reference would hold a value.
//!
//! Clients and test suites ask for it. Values are stored in another way here, so the answer is
//! worked out from what the value is now, with the reference's default limits; what the reference
//! remembers of a value's past (a hash that was large once) has no influence.

use crate::encoding::meta::Type;
use crate::error::Result;
use crate::types::collection::Collection;
use crate::types::db::commands;
use crate::types::number::parse_integer;
use crate::types::txn::{Record, Tx};

/// Strings up to here are held beside their header.
const EMBEDDED: usize = 44;
/// Hashes and sets of integers up to here are compact.
const COMPACT_MEMBERS: u64 = 512;
/// Sorted sets up to here are compact.
const COMPACT_SCORED: u64 = 128;
/// Members and values of a compact collection are no longer than this.
const COMPACT_BYTES: usize = 64;

commands! {
    /// OBJECT ENCODING: the name of the encoding in which Redis would hold this value.
    read fn object_encoding(key: &[u8]) -> Option<&'static str>;
}

impl Tx<'_> {
    pub(crate) fn object_encoding(&self, key: &[u8]) -> Result<Option<&'static str>> {
        let Some(record) = self.record(key)? else { return Ok(None) };
        Ok(Some(match record.header.kind {
            Type::String => string_encoding(&record),
            Type::List => "quicklist",
            Type::Set if self.has_only(key, Type::Set, COMPACT_MEMBERS, is_integer)? => "intset",
            Type::Set => "hashtable",
            Type::Hash if self.has_only(key, Type::Hash, COMPACT_MEMBERS, is_short)? => "listpack",
            Type::Hash => "hashtable",
            Type::ZSet if self.has_only(key, Type::ZSet, COMPACT_SCORED, is_short)? => "listpack",
            Type::ZSet => "skiplist",
        }))
    }

    /// Whether there are at most so many members and each, with what is beside it, is `such`.
    fn has_only(
        &self,
        key: &[u8],
        kind: Type,
        most: u64,
        such: fn(&[u8], &[u8]) -> bool,
    ) -> Result<bool> {
        let found = self.collection(key, kind)?;
        let Some(collection) = found.filter(|collection: &Collection| collection.len() <= most)
        else {
            return Ok(false);
        };
        let mut walk = collection.walk(self)?;
        while walk.advance()? {
            if !such(collection.sub_key(walk.key()), walk.value()) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

fn is_integer(member: &[u8], _: &[u8]) -> bool {
    parse_integer(member).is_ok()
}

fn is_short(member: &[u8], beside: &[u8]) -> bool {
    member.len() <= COMPACT_BYTES && beside.len() <= COMPACT_BYTES
}

fn string_encoding(record: &Record) -> &'static str {
    let value = record.value();
    if parse_integer(&value).is_ok() {
        "int"
    } else if value.len() <= EMBEDDED {
        "embstr"
    } else {
        "raw"
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::Db;
    use crate::types::testing::unpacked;

    #[test]
    fn encodings_are_those_of_the_reference() {
        let db = Db::open(":memory:", unpacked()).unwrap();
        let encoding = |key: &[u8]| db.object_encoding(key).unwrap();
        assert_eq!(encoding(b"k"), None);
        for (value, name) in [
            ("12", "int"),
            ("012", "embstr"),
            ("", "embstr"),
            (&"x".repeat(44), "embstr"),
            (&"x".repeat(45), "raw"),
            ("9223372036854775807", "int"),
            ("9223372036854775808", "embstr"),
        ] {
            db.set(b"k", value.as_bytes()).unwrap();
            assert_eq!(encoding(b"k"), Some(name), "{value}");
        }
        let fill = |key: &[u8], kind: Type, members: &[&str]| {
            db.write(&[key], |tx| {
                let mut collection = tx.collection_or_new(key, kind)?;
                for member in members {
                    collection.put(tx, member.as_bytes(), Vec::new())?;
                }
                tx.save(collection)
            })
            .unwrap();
        };
        let long = "m".repeat(65);
        let many: Vec<String> = (0..513).map(|n| n.to_string()).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        for (kind, few, compact, loose) in [
            (Type::Set, &["1", "-5"][..], "intset", "hashtable"),
            (Type::Hash, &["a", "b"], "listpack", "hashtable"),
            (Type::ZSet, &["a", "b"], "listpack", "skiplist"),
        ] {
            db.del(&[b"c", b"d"]).unwrap();
            fill(b"c", kind, few);
            assert_eq!(encoding(b"c"), Some(compact));
            fill(b"c", kind, &[&long]);
            assert_eq!(encoding(b"c"), Some(loose));
            fill(b"d", kind, &many);
            assert_eq!(encoding(b"d"), Some(loose));
        }
    }
}
