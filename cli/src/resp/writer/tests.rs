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
