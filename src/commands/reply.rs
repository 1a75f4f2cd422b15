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
    /// A status that a script made.
    Text(Bytes),
    /// An error, with its code: `ERR ...`.
    Error(String),
    /// A number.
    Int(i64),
    /// A byte string, such as the value of a key.
    Bulk(Bytes),
    /// A double.
    Double(f64),
    /// A boolean that a script returned after `redis.setresp(3)`.
    Bool(bool),
    /// A number of any size, as its digits, that a script returned.
    BigNumber(Bytes),
    /// Text that a script returned, with the three letters of its format, such as `txt`.
    Verbatim([u8; 3], Bytes),
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
    /// The status `OK`, by which commands say that they are done.
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

/// Turns the result of a regular command's method into a reply, if it is one value. Several are
/// written to a sink: see `WriteTo`.
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
}
