//! OBJECT ENCODING: the encoding that Redis would use for a value.
//!
//! Clients and test suites ask for it. Values are stored differently here, so the answer is derived
//! from the current value with the default limits of Redis; the history of a value (a hash that was
//! large once) has no influence.

use crate::encoding::meta::Type;
use crate::error::Result;
use crate::txn::collection::Collection;
use crate::txn::db::commands;
use crate::txn::{Record, Tx};
use crate::types::number::parse_integer;
use crate::types::string::chunks::StringValue;

/// The longest string that Redis stores beside its header.
const EMBEDDED: usize = 44;
/// The most members of a compact hash or set of integers.
const COMPACT_MEMBERS: u64 = 512;
/// The most members of a compact sorted set.
const COMPACT_SCORED: u64 = 128;
/// The longest member or value of a compact collection.
const COMPACT_BYTES: usize = 64;

commands! {
    /// OBJECT ENCODING: the name of the encoding that Redis would use for this value.
    read fn object_encoding(key: &[u8]) -> Option<&'static str>;
}

impl Tx<'_> {
    pub(crate) fn object_encoding(&self, key: &[u8]) -> Result<Option<&'static str>> {
        let Some(record) = self.record(key)? else { return Ok(None) };
        Ok(Some(match record.header.kind {
            Type::String => self.string_encoding(key, record)?,
            Type::List => "quicklist",
            Type::Set if self.has_only(key, Type::Set, COMPACT_MEMBERS, is_integer)? => "intset",
            Type::Set => "hashtable",
            Type::Hash if self.has_only(key, Type::Hash, COMPACT_MEMBERS, is_short)? => "listpack",
            Type::Hash => "hashtable",
            Type::ZSet if self.has_only(key, Type::ZSet, COMPACT_SCORED, is_short)? => "listpack",
            Type::ZSet => "skiplist",
        }))
    }

    fn string_encoding(&self, key: &[u8], record: Record) -> Result<&'static str> {
        let value = StringValue::of(self, key, record.into_string(key)?);
        let Some(text) = value.if_short(self, EMBEDDED)? else { return Ok("raw") };
        Ok(if parse_integer(&text).is_ok() {
            "int"
        } else if text.len() <= EMBEDDED {
            "embstr"
        } else {
            "raw"
        })
    }

    /// Whether there are at most `most` members and `such` holds for each member and its value.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::txn::Db;
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
