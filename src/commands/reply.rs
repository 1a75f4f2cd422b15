//! The reply of a command. The kinds are those of RESP3, so that a server can speak both protocols:
//! a map stays a map, a double a double.

use bytes::Bytes;

use crate::types::number::format_double;

/// The reply of a command, in the kinds of RESP3.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    /// No value.
    Nil,
    /// No array, which RESP2 distinguishes from no value.
    NilArray,
    /// A status such as `OK`.
    Status(&'static str),
    /// An error, with its code: `ERR ...`.
    Error(String),
    /// A number.
    Int(i64),
    /// Bytes.
    Bulk(Bytes),
    /// A double.
    Double(f64),
    /// Several replies.
    Array(Vec<Reply>),
    /// Pairs of a key and a value.
    Map(Vec<(Reply, Reply)>),
    /// Distinct replies in no order.
    Set(Vec<Reply>),
    /// A message that no command asked for, or the confirmation of a subscription. RESP2 sends an
    /// array.
    Push(Vec<Reply>),
    /// Pairs whose order counts, such as members with scores. RESP3 sends an array of arrays of
    /// two, RESP2 one flat array.
    Pairs(Vec<(Reply, Reply)>),
}

impl Reply {
    /// `OK`.
    pub const OK: Self = Self::Status("OK");

    /// Bytes, or nil.
    pub fn bulk(value: Option<Bytes>) -> Self {
        value.map_or(Self::Nil, Self::Bulk)
    }

    /// A double as text, in the form of RESP2.
    pub fn double_text(value: f64) -> String {
        format_double(value)
    }

    /// An array of byte strings.
    pub fn list(values: impl IntoIterator<Item = Bytes>) -> Self {
        Self::Array(values.into_iter().map(Self::Bulk).collect())
    }
}

/// Turns the result of a regular command's method into a reply. Each `spec::Answer` has one impl.
pub(crate) trait IntoReply {
    fn into_reply(self) -> Reply;
}

macro_rules! into_reply {
    ($($type:ty, $value:ident => $reply:expr;)*) => {
        $(impl IntoReply for $type {
            fn into_reply(self) -> Reply {
                let $value = self;
                $reply
            }
        })*
    };
}

into_reply! {
    (), _nothing => Reply::OK;
    i64, number => Reply::Int(number);
    bool, yes => Reply::Int(i64::from(yes));
    Option<i64>, number => number.map_or(Reply::Nil, Reply::Int);
    Bytes, value => Reply::Bulk(value);
    Option<Bytes>, value => Reply::bulk(value);
    f64, number => Reply::Double(number);
    Option<f64>, number => number.map_or(Reply::Nil, Reply::Double);
    Vec<Bytes>, values => Reply::list(values);
    Vec<Option<Bytes>>, values => Reply::Array(values.into_iter().map(Reply::bulk).collect());
    Vec<Option<f64>>, values => Reply::Array(values.into_iter().map(IntoReply::into_reply).collect());
    Vec<bool>, values => Reply::Array(values.into_iter().map(IntoReply::into_reply).collect());
    Vec<(Bytes, Bytes)>, pairs => {
        Reply::Map(pairs.into_iter().map(|(a, b)| (Reply::Bulk(a), Reply::Bulk(b))).collect())
    };
    Reply, reply => reply;
    Vec<(Bytes, f64)>, pairs => {
        let pair = |(member, score)| (Reply::Bulk(member), Reply::Double(score));
        Reply::Pairs(pairs.into_iter().map(pair).collect())
    };
    Members, members => Reply::Set(members.0.into_iter().map(Reply::Bulk).collect());
}

/// Byte strings that form a set in the reply.
pub(crate) struct Members(pub(crate) Vec<Bytes>);
