//! Random arguments: small pools, so that keys and members meet again, with what breaks parsers
//! among them.
//!
//! Two things are never drawn: a time to live that ends while the sequence runs, since then the
//! two sides would differ by chance, and an offset for which both would build a huge string.

use lsmkv::io::splitmix::SplitMix64;

use super::grammar::pick;
use super::pools::*;

/// Numbers that no two draws of a sequence share: relative times, which are thus never within
/// the few milliseconds by which the two sides' clocks differ.
#[derive(Debug, Default)]
pub(crate) struct Fresh(u64);

impl Fresh {
    fn next(&mut self) -> u64 {
        self.0 += 1;
        100_000 + self.0 * 100
    }
}

/// A value of this name.
pub(crate) fn draw(name: &str, random: &mut SplitMix64, fresh: &mut Fresh) -> Vec<u8> {
    let odd = |random: &mut SplitMix64, usual: Pool, strange: Pool, one_in: u64| {
        pick(if random.one_in(one_in) { strange } else { usual }, random).to_vec()
    };
    match name {
        "skey" => key(STRINGS, random),
        "hkey" => key(HASHES, random),
        "lkey" => key(LISTS, random),
        "tkey" => key(SETS, random),
        "zkey" => key(ZSETS, random),
        "xkey" => key(LEXSETS, random),
        "key" => any_key(random),
        "member" | "element" | "field" => pick(MEMBERS, random).to_vec(),
        "value" => odd(random, VALUES, MEMBERS, 4),
        "float" => odd(random, FLOATS, ODD_FLOATS, 4),
        "bound" => bound(random),
        "lex" => odd(random, LEX, ODD_LEX, 12),
        "index" => odd(random, INDEXES, ODD_INTEGERS, 10),
        "integer" => odd(random, INDEXES, ODD_INTEGERS, 4),
        "count" => odd(random, COUNTS, ODD_COUNTS, 8),
        "bit" => odd(random, BIT, ODD_BIT, 8),
        "bitat" => odd(random, BITS, ODD_OFFSETS, 12),
        "fieldtype" => odd(random, FIELD_TYPES, ODD_FIELD_TYPES, 20),
        "fieldat" => {
            let usual = if random.one_in(3) { HASHED_OFFSETS } else { BITS };
            odd(random, usual, ODD_OFFSETS, 20)
        }
        "byteat" => odd(random, &BITS[..9], ODD_OFFSETS, 8),
        "pattern" => pick(PATTERNS, random).to_vec(),
        "sortby" => pick(SORT_BY, random).to_vec(),
        "sortget" => pick(SORT_GET, random).to_vec(),
        "cursor" => odd(random, CURSORS, ODD_CURSORS, 8),
        "database" => odd(random, DATABASES, ODD_DATABASES, 6),
        "seconds" => time(random, fresh, 1),
        "millis" => time(random, fresh, 1000),
        "at" => unix_time(random, 1),
        "msat" => unix_time(random, 1000),
        _ => panic!("no value is named {name}"),
    }
}

fn key(own: Pool, random: &mut SplitMix64) -> Vec<u8> {
    if random.one_in(10) { any_key(random) } else { pick(own, random).to_vec() }
}

fn any_key(random: &mut SplitMix64) -> Vec<u8> {
    let pools = [STRINGS, HASHES, LISTS, SETS, ZSETS, LEXSETS, OTHERS];
    let pool: &Pool = pick(&pools, random);
    pick(pool, random).to_vec()
}

fn bound(random: &mut SplitMix64) -> Vec<u8> {
    let pool = match random.below(10) {
        0 => ODD_FLOATS,
        1..=3 => INFINITE,
        _ => FLOATS,
    };
    let open: &[u8] = if random.one_in(4) { b"(" } else { b"" };
    let float: &&[u8] = pick(pool, random);
    [open, *float].concat()
}

/// A time to live of more than a day, none, or one that is refused.
fn time(random: &mut SplitMix64, fresh: &mut Fresh, scale: u64) -> Vec<u8> {
    if random.one_in(4) {
        return pick(PAST_OR_REFUSED, random).to_vec();
    }
    (fresh.next() * scale).to_string().into_bytes()
}

/// A Unix time after the year 2100, one in the past, or one that is refused.
fn unix_time(random: &mut SplitMix64, scale: u64) -> Vec<u8> {
    match random.below(5) {
        0 => pick(PAST_OR_REFUSED, random).to_vec(),
        1 => (1 + random.below(1000)).to_string().into_bytes(),
        _ => ((5_000_000_000 + random.below(8) * 1000) * scale).to_string().into_bytes(),
    }
}

/// Whether an argument of the command may be a time.
pub(crate) fn is_timed(name: &str) -> bool {
    name.contains("EXPIRE") || name.starts_with("SET") || name.ends_with("EX")
}

/// An argument that does not belong where it is put.
pub(crate) fn strange(name: &str, random: &mut SplitMix64) -> Vec<u8> {
    match random.below(4) {
        0 => pick(WORDS, random).to_vec(),
        1 if !is_timed(name) => pick(ODD_FLOATS, random).to_vec(),
        2 => pick(OTHERS, random).to_vec(),
        _ => pick(PAST_OR_REFUSED, random).to_vec(),
    }
}
