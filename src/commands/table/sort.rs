use super::spec::Access::{AloneWith, Read};
use super::spec::Grammar::Irregular;
use super::spec::Keys::Range;
use super::spec::{Group, Row};

const ONE: super::spec::Keys = Range(1, 1, 1);

/// Sorting.
pub(crate) const GROUP: Group = Group { module: "sort", title: "Sorting", rows: ROWS };

const ROWS: &[Row] = &[
    Row::new(
        "SORT",
        -2,
        AloneWith("STORE"),
        ONE,
        Irregular(
            "key [BY pattern] [LIMIT offset count] [GET pattern …] [ASC | DESC] [ALPHA] [STORE key]",
        ),
        "The elements of a list, set or sorted set in order.",
    ),
    Row::new(
        "SORT_RO",
        -2,
        Read,
        ONE,
        Irregular("key [BY pattern] [LIMIT offset count] [GET pattern …] [ASC | DESC] [ALPHA]"),
        "SORT without STORE.",
    ),
];
