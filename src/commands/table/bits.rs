use super::spec::Access::{Read, Write};
use super::spec::Grammar::Irregular;
use super::spec::Keys::Range;
use super::spec::{Group, Row};

const ONE: super::spec::Keys = Range(1, 1, 1);

/// Strings as rows of bits.
pub(crate) const GROUP: Group = Group { module: "bits", title: "Bits", rows: ROWS };

const ROWS: &[Row] = &[
    Row::new(
        "BITCOUNT",
        -2,
        Read,
        ONE,
        Irregular("key [start end [BYTE | BIT]]"),
        "How many bits are set.",
    ),
    Row::new(
        "BITFIELD",
        -2,
        Write,
        ONE,
        Irregular(
            "key [[OVERFLOW WRAP | SAT | FAIL] GET type offset | SET type offset value | INCRBY type offset increment …]",
        ),
        "Reads and writes small integers inside a value.",
    ),
    Row::new(
        "BITFIELD_RO",
        -2,
        Read,
        ONE,
        Irregular("key [GET type offset …]"),
        "Reads small integers inside a value.",
    ),
    Row::new(
        "BITOP",
        -4,
        Write,
        Range(2, -1, 1),
        Irregular("AND | OR | XOR | NOT destination key [key …]"),
        "Combines values bit by bit.",
    ),
    Row::new(
        "BITPOS",
        -3,
        Read,
        ONE,
        Irregular("key bit [start [end [BYTE | BIT]]]"),
        "The first bit that is set, or clear.",
    ),
    Row::new("GETBIT", 3, Read, ONE, Irregular("key offset"), "The bit at an offset."),
    Row::new(
        "SETBIT",
        4,
        Write,
        ONE,
        Irregular("key offset value"),
        "Sets or clears the bit at an offset; what it was.",
    ),
];
