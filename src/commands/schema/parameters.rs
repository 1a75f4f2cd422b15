//! Short forms for the parameters and outputs of C functions.

use super::spec::{Nil, Output, OutputKind, Parameter, ParameterKind};

/// The conditions that exclude each other: NX with XX, GT or LT, and GT with LT.
pub(super) const CONDITIONS: &[&[&str]] =
    &[&["NX", "XX"], &["NX", "GT"], &["NX", "LT"], &["GT", "LT"]];

pub(super) const KEY: Parameter = key("key");
pub(super) const KEYS: Parameter = Parameter::new("keys", ParameterKind::Keys);
pub(super) const ITEMS: Parameter = Parameter::new("items", ParameterKind::Items);
pub(super) const DESTINATION: Parameter = key("destination");
/// The number of elements that a range skips.
pub(super) const OFFSET: Parameter = int("offset").or("0");
pub(super) const COUNT: Parameter = int("count").or("-1");

pub(super) const fn key(name: &'static str) -> Parameter {
    Parameter::new(name, ParameterKind::Key)
}

pub(super) const fn bytes(name: &'static str) -> Parameter {
    Parameter::new(name, ParameterKind::Bytes)
}

pub(super) const fn int(name: &'static str) -> Parameter {
    Parameter::new(name, ParameterKind::Int)
}

pub(super) const fn unsigned(name: &'static str) -> Parameter {
    Parameter::new(name, ParameterKind::Unsigned)
}

pub(super) const fn double(name: &'static str) -> Parameter {
    Parameter::new(name, ParameterKind::Double)
}

pub(super) const fn database(name: &'static str) -> Parameter {
    Parameter::new(name, ParameterKind::Database)
}

pub(super) const fn signed_count() -> Parameter {
    Parameter::new("count", ParameterKind::SignedCount)
}

pub(super) const fn optional(name: &'static str) -> Parameter {
    Parameter::new(name, ParameterKind::Optional).or("std::nullopt")
}

pub(super) const fn choice(name: &'static str, words: &'static [&'static str]) -> Parameter {
    Parameter::new(name, ParameterKind::Choice(words))
}

/// Options as flags that can all be combined.
pub(super) const fn flags(words: &'static [&'static str]) -> Parameter {
    exclusive_flags(words, &[])
}

/// Options as flags. At most one flag of each set may be given.
pub(super) const fn exclusive_flags(
    words: &'static [&'static str],
    sets: &'static [&'static [&'static str]],
) -> Parameter {
    Parameter::new("flags", ParameterKind::Flags(words, sets)).or("0")
}

pub(super) const fn score_bound(name: &'static str, excluded_by: &'static str) -> Parameter {
    Parameter::new(name, ParameterKind::ScoreBound(excluded_by))
}

/// A member bound. An absent minimum is the least member, an absent maximum the greatest.
pub(super) const fn member_bound(
    name: &'static str,
    excluded_by: &'static str,
    open: &'static str,
) -> Parameter {
    Parameter::new(name, ParameterKind::MemberBound(excluded_by, open))
}

pub(super) const fn int_out(name: &'static str, receives: &'static str) -> Output {
    Output::new(name, OutputKind::Int, receives)
}

/// A number, or the status NOT_FOUND.
pub(super) const fn maybe_int_out(receives: &'static str) -> Output {
    int_out("out", receives).nil(Nil::NotFound)
}

pub(super) const fn flag_out(name: &'static str, receives: &'static str) -> Output {
    Output::new(name, OutputKind::Flag, receives)
}

pub(super) const fn double_out(receives: &'static str) -> Output {
    Output::new("out", OutputKind::Double, receives)
}

pub(super) const fn bytes_out(receives: &'static str) -> Output {
    Output::new("out", OutputKind::Bytes, receives)
}

/// Bytes, or the status NOT_FOUND.
pub(super) const fn maybe_bytes_out(receives: &'static str) -> Output {
    bytes_out(receives).nil(Nil::NotFound)
}

pub(super) const fn reply_out(receives: &'static str) -> Output {
    Output::new("out", OutputKind::Reply, receives)
}
