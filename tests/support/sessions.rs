//! Sessions of the library: commands as text, and messages as text.

use lsmkv::{Reply, Session};

pub(crate) fn run(session: &mut Session, line: &str) -> Reply {
    let argv: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
    session.command(&argv).unwrap()
}

/// A message or confirmation as text.
pub(crate) fn text(reply: &Reply) -> String {
    match reply {
        Reply::Push(items) => items.iter().map(text).collect::<Vec<_>>().join(" "),
        Reply::Array(items) => items.iter().map(text).collect::<Vec<_>>().join(", "),
        Reply::Bulk(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        Reply::Int(number) => number.to_string(),
        Reply::Nil => "nil".to_owned(),
        other => format!("{other:?}"),
    }
}

pub(crate) fn received(session: &mut Session) -> Vec<String> {
    std::iter::from_fn(|| session.take_message().unwrap()).map(|reply| text(&reply)).collect()
}
