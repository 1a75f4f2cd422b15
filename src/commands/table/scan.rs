use super::spec::Access::Read;
use super::spec::Grammar::{self, Irregular};
use super::spec::Keys::{None, Range};
use super::spec::{Group, Row};

const ONE: super::spec::Keys = Range(1, 1, 1);
const SCAN: Grammar = Irregular("cursor [MATCH pattern] [COUNT count] [TYPE type]");
const OF_KEY: Grammar = Irregular("key cursor [MATCH pattern] [COUNT count]");

/// Walks, a few elements a call.
pub(crate) const GROUP: Group = Group { module: "scan", title: "Scans", rows: ROWS };

const ROWS: &[Row] = &[
    Row::new("HSCAN", -3, Read, ONE, OF_KEY, "Fields of a hash with their values, some a call."),
    Row::new("SCAN", -2, Read, None, SCAN, "Keys, some a call."),
    Row::new("SSCAN", -3, Read, ONE, OF_KEY, "Members of a set, some a call."),
    Row::new("ZSCAN", -3, Read, ONE, OF_KEY, "Members with their scores, some a call."),
];
