use super::spec::Access::{Read, Write};
use super::spec::Answer::Int;
use super::spec::Arg::Keys;
use super::spec::Grammar::{Irregular, Regular};
use super::spec::Keys::Range;
use super::spec::{Group, Row};

const ONE: super::spec::Keys = Range(1, 1, 1);
const ALL: super::spec::Keys = Range(1, -1, 1);

/// The key space.
pub(crate) const GROUP: Group = Group { module: "key", title: "Keys", rows: ROWS };

const ROWS: &[Row] = &[
    Row::new("DEL", -2, Write, ALL, Regular(&[Keys], Int), "Removes keys."),
    Row::new("EXISTS", -2, Read, ALL, Regular(&[Keys], Int), "How many of the keys exist."),
    Row::new("TYPE", 2, Read, ONE, Irregular("key"), "The type of a key."),
];
