//! Bodies of functions that neither one method nor one sequence of words can run: their parameters,
//! flags or outputs have no counterpart in the command. The generated code checks pointers first.

mod bits;
mod hash;
mod key;
mod scan;
mod string;
mod zset;

pub(super) use bits::{bitfield, bitfield_ro};
pub(super) use hash::hgetdel;
pub(super) use key::{r#type, type_number};
pub(super) use scan::{hscan, scan, sscan, zscan};
pub(super) use string::{get_into, getex, set_opt};
pub(super) use zset::{
    zadd, zadd_incr, zadd_many, zadd_opt, zpopmax, zpopmin, zrangebylex, zrangebyscore,
    zrangestore_bylex, zrangestore_byscore,
};
