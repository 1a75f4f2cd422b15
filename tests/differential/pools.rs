//! The pools that arguments are drawn from. Two things are in none of them, see `values`.

/// Byte strings to choose from.
pub(crate) type Pool = &'static [&'static [u8]];

pub(crate) const STRINGS: Pool = &[
    b"s1", b"s2", b"s3", b"w_1", b"w_2", b"w_a",
];
pub(crate) const HASHES: Pool = &[
    b"h1", b"h2", b"h3", b"o_1", b"o_a",
];
pub(crate) const LISTS: Pool = &[
    b"l1", b"l2", b"l3",
];
pub(crate) const SETS: Pool = &[
    b"t1", b"t2", b"t3",
];
pub(crate) const ZSETS: Pool = &[
    b"z1", b"z2", b"z3",
];
/// Sorted sets of one score, mostly.
pub(crate) const LEXSETS: Pool = &[
    b"x1", b"x2",
];
pub(crate) const OTHERS: Pool = &[
    b"", b"k\0\xff", b"missing", b"s*", b"h1\0", b"a:b",
];
pub(crate) const MEMBERS: Pool = &[
    b"a", b"b", b"c", b"d", b"e", b"f", b"1", b"2", b"3", b"10", b"-5", b"3.5", b"", b"a\0",
    b"\0\xff", b"\xff", b"A", b"foo", b"bar:1", b"01", b"9223372036854775807",
    b"a member that is too long for the small encodings of redis, which end at 64 bytes",
];
pub(crate) const VALUES: Pool = &[
    b"", b"0", b"1", b"-1", b"10", b"42", b"007", b" 1", b"1 ", b"+1", b"abc", b"Hello World",
    b"3.0", b"-0", b"1e5", b"0.1", b"1.5", b"inf", b"nan", b"\0", b"\xff\x00\xf0", b"ohmytext",
    b"mynewtext", b"9223372036854775807", b"-9223372036854775808", b"9223372036854775808",
    b"99999999999999999999999", b"3.14159265358979323846", b"5.0e3", b"0x10",
    b"a value beyond the 44 bytes of the embedded strings of redis, so a raw one",
];
pub(crate) const FLOATS: Pool = &[
    b"0", b"1", b"-1", b"2", b"3", b"1.5", b"-2.5", b"10", b"0.1", b"3.14", b"1e3", b"100",
];
pub(crate) const ODD_FLOATS: Pool = &[
    b"inf", b"-inf", b"+inf", b"Infinity", b"nan", b"-0", b"0.0", b"1e400", b"-1e400", b"1e-400",
    b"1e308", b"-1e308", b"2.2250738585072014e-308", b"0x10", b"0x1p3", b" 1", b"1 ", b"", b"abc", b"+5", b"1e",
    b"1e+", b".5", b"5.", b"--1", b"17179869184.25", b"9007199254740993", b"1_0", b"1e17", b"1e22",
    b"0.30000000000000004", b"1,5", b"infin", b"1\0",
];
pub(crate) const INDEXES: Pool = &[
    b"0", b"1", b"2", b"3", b"-1", b"-2", b"-3", b"5", b"-5", b"100", b"-100",
];
pub(crate) const ODD_INTEGERS: Pool = &[
    b"9223372036854775807", b"-9223372036854775808", b"9223372036854775806",
    b"-9223372036854775807", b"9223372036854775808", b"-9223372036854775809", b"01", b"+1", b" 1",
    b"1 ", b"1.0", b"", b"abc", b"-0", b"-", b"0x1", b"99999999999999999999", b"1\0",
    b"4294967296",
];
pub(crate) const COUNTS: Pool = &[
    b"0", b"1", b"2", b"3", b"10", b"-1", b"-3",
];
/// Without the large negative ones: some commands repeat members that often.
pub(crate) const ODD_COUNTS: Pool = &[
    b"9223372036854775807", b"-9223372036854775808", b"9223372036854775808",
    b"4611686018427387904", b"01", b"+1", b"", b"abc", b"1.5", b"-12", b"100",
];
pub(crate) const BITS: Pool = &[
    b"0", b"1", b"2", b"3", b"7", b"8", b"9", b"15", b"23", b"64", b"100", b"1000",
];
pub(crate) const ODD_OFFSETS: Pool = &[
    b"-1", b"4294967296", b"4294967295000", b"9223372036854775807", b"-9223372036854775808",
    b"9223372036854775808", b"", b"abc", b"01", b"1.0", b"536870912000",
];
pub(crate) const FIELD_TYPES: Pool = &[
    b"u8", b"i8", b"u1", b"i1", b"u4", b"i5", b"u16", b"i16", b"u32", b"i64", b"u63", b"i63",
];
pub(crate) const ODD_FIELD_TYPES: Pool = &[
    b"u64", b"i65", b"u0", b"i0", b"x8", b"u", b"8", b"", b"u-1", b"U8", b"u08", b"i64a",
];
pub(crate) const HASHED_OFFSETS: Pool = &[
    b"#0", b"#1", b"#2", b"#7", b"#-1", b"#", b"#4294967296", b"#a",
];
pub(crate) const LEX: Pool = &[
    b"-", b"+", b"[a", b"(a", b"[b", b"(c", b"[f", b"[", b"(", b"[1", b"(\xff", b"[a\0", b"[foo",
];
pub(crate) const ODD_LEX: Pool = &[
    b"", b"a", b"--", b"+a", b"-inf", b"]a", b"[[", b"\0",
];
pub(crate) const PATTERNS: Pool = &[
    b"*", b"?1", b"s*", b"[hl]*", b"[^s]*", b"[a-c]", b"[c-a]*", b"\\*", b"s\\*", b"", b"[", b"[a",
    b"*1*", b"**", b"?", b"a*", b"h1", b"\\", b"[\\]]", b"*\0*", b"[^", b"w_*", b"*a",
];
pub(crate) const SORT_BY: Pool = &[
    b"w_*", b"nosort", b"*", b"o_*->f", b"o_*->", b"h1", b"w_*_*", b"->", b"z*",
];
pub(crate) const SORT_GET: Pool = &[
    b"w_*", b"#", b"*", b"o_*->f", b"o_*->a", b"h1", b"##", b"*->b", b"",
];
pub(crate) const PAST_OR_REFUSED: Pool = &[
    b"0", b"-1", b"-1000", b"9223372036854775807", b"-9223372036854775808", b"9223372036854775",
    b"9223372036854776", b"9223372036854775808", b"abc", b"", b"1.5", b" 1", b"01", b"-0",
];
pub(crate) const INFINITE: Pool = &[b"-inf", b"+inf", b"inf"];
pub(crate) const BIT: Pool = &[b"0", b"1"];
pub(crate) const ODD_BIT: Pool = &[b"2", b"", b"-1", b"01"];
pub(crate) const CURSORS: Pool = &[b"0"];
pub(crate) const ODD_CURSORS: Pool =
    &[b"abc", b"", b"-1", b"0", b"01", b" 1", b"18446744073709551616", b"184467440737095516160"];
pub(crate) const DATABASES: Pool = &[b"0", b"1", b"2"];
pub(crate) const ODD_DATABASES: Pool = &[b"16", b"-1", b"abc", b"", b"4294967296"];
pub(crate) const WORDS: Pool = &[
    b"NX", b"xx", b"GET", b"LIMIT", b"WITHSCORES", b"COUNT", b"REV", b"BYSCORE", b"STORE",
    b"ALPHA", b"MATCH", b"INCR", b"KEEPTTL", b"PERSIST", b"LEFT", b"WEIGHTS", b"AGGREGATE",
    b"WITHVALUES",
];
