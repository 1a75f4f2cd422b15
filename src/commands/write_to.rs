//! Writes the results of commands that return several values to a sink, value by value.

use bytes::Bytes;

use super::sink::{Head, ReplySink};

/// A result that is written to a sink value by value.
pub(crate) trait WriteTo {
    fn write_to(self, sink: &mut dyn ReplySink);
}

/// A result of one value.
macro_rules! write_value {
    ($($type:ty, $value:ident, $sink:ident => $write:expr;)*) => {
        $(impl WriteTo for $type {
            fn write_to(self, $sink: &mut dyn ReplySink) {
                let $value = self;
                $write;
            }
        })*
    };
}

write_value! {
    Bytes, bytes, sink => sink.shared_bulk(bytes);
    i64, number, sink => sink.integer(number);
    f64, number, sink => sink.double(number);
    bool, yes, sink => sink.integer(i64::from(yes));
}

impl<T: WriteTo> WriteTo for Option<T> {
    fn write_to(self, sink: &mut dyn ReplySink) {
        match self {
            Some(value) => value.write_to(sink),
            None => sink.nil(),
        }
    }
}

/// An array.
impl<T: WriteTo> WriteTo for Vec<T> {
    fn write_to(self, sink: &mut dyn ReplySink) {
        write_all(self, Head::Array, sink, |value, sink| value.write_to(sink));
    }
}

/// Byte strings that form a set.
pub(crate) struct Members(pub(crate) Vec<Bytes>);

impl WriteTo for Members {
    fn write_to(self, sink: &mut dyn ReplySink) {
        write_all(self.0, Head::Set, sink, |member, sink| sink.shared_bulk(member));
    }
}

/// Pairs whose order counts, such as members with scores.
pub(crate) struct InPairs<A, B>(pub(crate) Vec<(A, B)>);

impl<A: WriteTo, B: WriteTo> WriteTo for InPairs<A, B> {
    fn write_to(self, sink: &mut dyn ReplySink) {
        write_all(self.0, Head::Pairs, sink, |(first, second), sink| {
            sink.pair();
            first.write_to(sink);
            second.write_to(sink);
        });
    }
}

fn write_all<T>(
    values: Vec<T>,
    head: Head,
    sink: &mut dyn ReplySink,
    write: impl Fn(T, &mut dyn ReplySink),
) {
    sink.head(head, values.len());
    for value in values {
        if sink.is_full() {
            return;
        }
        write(value, sink);
    }
}
