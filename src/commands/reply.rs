//! What a command answers. The kinds are those of RESP3, so that a server can speak both
//! protocols: a map stays a map, a double a double.

use bytes::Bytes;

/// See the module's documentation.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    /// No value.
    Nil,
    /// No array (RESP2 tells it from no value).
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
    /// Replies in pairs.
    Map(Vec<(Reply, Reply)>),
    /// Different replies in no order.
    Set(Vec<Reply>),
}

impl Reply {
    /// `OK`.
    pub const OK: Self = Self::Status("OK");

    /// Bytes, or nil.
    pub fn bulk(value: Option<Bytes>) -> Self {
        value.map_or(Self::Nil, Self::Bulk)
    }

    /// An array of byte strings.
    pub fn list(values: impl IntoIterator<Item = Bytes>) -> Self {
        Self::Array(values.into_iter().map(Self::Bulk).collect())
    }
}

/// From what the method of a regular command returns: one impl for each `spec::Answer`.
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
    Members, members => Reply::Set(members.0.into_iter().map(Reply::Bulk).collect());
}

/// Byte strings that are replied as a set.
pub(crate) struct Members(pub(crate) Vec<Bytes>);
