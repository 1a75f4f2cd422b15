use super::spec::Access::{Read, Write};
use super::spec::Answer::{Bulk, Int};
use super::spec::Arg::{Bytes, Key};
use super::spec::Grammar::{Irregular, Regular};
use super::spec::Keys::Range;
use super::spec::{Group, Row};

const ONE: super::spec::Keys = Range(1, 1, 1);

/// Strings.
pub(crate) const GROUP: Group = Group { module: "string", title: "Strings", rows: ROWS };

const ROWS: &[Row] = &[
    Row::new(
        "APPEND",
        3,
        Write,
        ONE,
        Regular(&[Key, Bytes("value")], Int),
        "Adds to the end of a value.",
    ),
    Row::new("GET", 2, Read, ONE, Regular(&[Key], Bulk), "The value of a key."),
    Row::new(
        "SET",
        -3,
        Write,
        ONE,
        Irregular("key value [NX | XX] [GET] [EX s | PX ms | EXAT s | PXAT ms | KEEPTTL]"),
        "Sets a value of a key.",
    ),
    Row::new("STRLEN", 2, Read, ONE, Regular(&[Key], Int), "Bytes of a value."),
];
