use super::*;

fn written(protocol: Protocol, write: impl FnOnce(&mut Writer<'_>)) -> String {
    let mut out = Vec::new();
    write(&mut Writer::new(&mut out, protocol));
    String::from_utf8(out).unwrap()
}

fn both(reply: &Reply) -> (String, String) {
    let form = |protocol| written(protocol, |writer| writer.reply(reply));
    (form(Protocol::Resp2), form(Protocol::Resp3))
}

#[test]
fn each_kind_of_reply_has_its_form_in_both_versions() {
    let bulk = |text: &'static str| Reply::Bulk(text.into());
    let pair = || vec![(bulk("a"), Reply::Double(1.5))];
    for (reply, resp2, resp3) in [
        (Reply::Nil, "$-1\r\n", "_\r\n"),
        (Reply::NilArray, "*-1\r\n", "_\r\n"),
        (Reply::OK, "+OK\r\n", "+OK\r\n"),
        (Reply::Int(-7), ":-7\r\n", ":-7\r\n"),
        (bulk("a\r\n"), "$3\r\na\r\n\r\n", "$3\r\na\r\n\r\n"),
        (Reply::Double(f64::INFINITY), "$3\r\ninf\r\n", ",inf\r\n"),
        (Reply::Array(vec![Reply::Int(1)]), "*1\r\n:1\r\n", "*1\r\n:1\r\n"),
        (Reply::Set(vec![Reply::Int(1)]), "*1\r\n:1\r\n", "~1\r\n:1\r\n"),
        (Reply::Map(pair()), "*2\r\n$1\r\na\r\n$3\r\n1.5\r\n", "%1\r\n$1\r\na\r\n,1.5\r\n"),
        (Reply::Pairs(pair()), "*2\r\n$1\r\na\r\n$3\r\n1.5\r\n", "*1\r\n*2\r\n$1\r\na\r\n,1.5\r\n"),
    ] {
        assert_eq!(both(&reply), (resp2.to_owned(), resp3.to_owned()), "{reply:?}");
    }
}

#[test]
fn an_error_is_one_line_whatever_it_says() {
    let text = written(Protocol::Resp2, |writer| writer.error("ERR no 'a\r\n+OK\n' here"));
    assert_eq!(text, "-ERR no 'a  +OK ' here\r\n");
}

#[test]
fn verbatim_text_counts_its_format() {
    let write = |writer: &mut Writer<'_>| writer.verbatim("ab\r\n");
    assert_eq!(written(Protocol::Resp3, write), "=8\r\ntxt:ab\r\n\r\n");
    assert_eq!(written(Protocol::Resp2, write), "$4\r\nab\r\n\r\n");
}

#[test]
fn bytes_in_parts_are_those_of_one_piece() {
    let text = written(Protocol::Resp2, |writer| {
        assert!(writer.begin_bulk(5));
        writer.bulk_part(b"ab");
        writer.bulk_part(b"\r\nc");
        writer.end_bulk();
        writer.integer(7);
    });
    assert_eq!(text, "$5\r\nab\r\nc\r\n:7\r\n");
}

#[test]
fn bytes_in_parts_that_find_no_room_are_left_out_and_the_writer_is_full() {
    let (mut out, room) = (Vec::new(), Most(1 << 20));
    let mut writer = Writer::with_limit(&mut out, Protocol::Resp2, &room);
    assert!(writer.begin_bulk(64 << 20));
    assert!(writer.is_full());
    writer.bulk_part(&[b'x'; 1000]);
    writer.end_bulk();
    assert!(out.len() < 1000, "{}", out.len());
}

/// A limit of this many bytes.
struct Most(usize);

impl crate::resp::GrowthLimit for Most {
    fn grant(&self, least: usize, likely: usize) -> Option<usize> {
        (least <= self.0).then_some(likely.min(self.0))
    }
}

/// Writes elements whose header comes last, after `before` headers of a transaction; returns
/// whether there was room.
fn counted_afterwards(out: &mut Vec<u8>, most: usize, before: usize, elements: usize) -> bool {
    let room = Most(most);
    let mut writer = Writer::with_limit(out, Protocol::Resp2, &room);
    (0..before).for_each(|_| writer.array(1));
    let begin = writer.position();
    (0..elements).for_each(|n| writer.bulk(format!("{n:08}").as_bytes()));
    writer.insert_head(begin, Head::Array, elements);
    !writer.is_full()
}

#[test]
fn a_head_that_comes_last_finds_no_room_or_stands_first() {
    // An element takes 14 bytes; the header is the last to need room.
    for (before, elements) in [(0, 10_000), (1, 10_000), (3, 6000), (0, 5000)] {
        for most in (70_000..70_100).chain([84_000, 140_000, 200_000]) {
            let mut out = b"+OK\r\n".to_vec();
            if counted_afterwards(&mut out, most, before, elements) {
                let head =
                    format!("+OK\r\n{}*{elements}\r\n$8\r\n00000000\r\n", "*1\r\n".repeat(before));
                assert!(out.starts_with(head.as_bytes()), "{most}, {before}, {elements}");
            } else {
                assert_eq!(out, b"+OK\r\n", "{most}, {before}, {elements}");
            }
        }
    }
}

#[test]
fn what_is_full_takes_nothing_more() {
    let (mut out, room) = (Vec::new(), Most(70_000));
    let mut writer = Writer::with_limit(&mut out, Protocol::Resp2, &room);
    writer.bulk(&[b'x'; 100_000]);
    writer.ok();
    writer.bulk(b"short");
    assert!(writer.is_full());
    assert_eq!(out, b"");
}
